//! What tests of two engines ask and do alike.

use crate::small_disk::SmallDisk;
use crate::testbed::{PATIENCE, Testbed, binary, wait_until};
use anyhow::{Context, Result, ensure};
use offshoot_api::{Dsource, PeerInvitation, Replication, Status, Vdb, VdbState};
use offshoot_rig::{CommandError, Database, Engine, EngineOptions, SourceOptions, find_newest};
use std::time::Duration;

/// An engine with a source, called `west` there, and another one, called `east` here.
pub struct Two {
    /// The one that sends.
    pub here: Testbed,
    /// The one that is sent to.
    pub there: Engine,
    /// Where that is.
    pub address: String,
}

fn options(listen: &str) -> EngineOptions {
    let mut options = EngineOptions::new(binary());
    options.cache_size = "64MiB".into();
    options.listen = listen.into();
    options
}

/// An engine with a source that has these settings.
fn sender(settings: &[(&str, &str)]) -> Result<Testbed> {
    let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let settings = settings.collect();
    let source = SourceOptions { bin_dir: find_newest()?, scale: 1, settings };
    Testbed::with_engine(source, options("127.0.0.1:0"))
}

/// An engine beside a testbed's, that others can send to.
fn other(bed: &Testbed, name: &str) -> Result<Engine> {
    let mut engine = Engine::prepare(bed.scratch.path().join(name), options("0.0.0.0:0"));
    engine.restart()?;
    let status: Status = engine.ask(["status"])?;
    let port = status.listen.rsplit_once(':').context("a port")?.1;
    // It is found again after it was killed.
    engine.options.listen = format!("0.0.0.0:{port}");
    Ok(engine)
}

/// One more engine that others can send to.
///
/// # Errors
/// When it does not start.
pub fn third(bed: &Testbed) -> Result<Engine> {
    other(bed, "third")
}

impl Two {
    /// Both run; they do not know each other.
    ///
    /// # Errors
    /// When one does not start.
    pub fn start() -> Result<Two> {
        Two::start_with(&[])
    }

    /// The same with settings of the source.
    ///
    /// # Errors
    /// When one does not start.
    pub fn start_with(settings: &[(&str, &str)]) -> Result<Two> {
        Two::beside(sender(settings)?)
    }

    /// The one that is sent to has its pool on another file system.
    ///
    /// # Errors
    /// When one does not start.
    pub fn start_on(disk: &SmallDisk) -> Result<Two> {
        let here = sender(&[])?;
        let pool = disk.root().join("there");
        std::fs::create_dir(&pool)?;
        // The engine's log stays here: it is wanted most when the other file system is full.
        std::os::unix::fs::symlink(pool, here.scratch.path().join("there"))?;
        Two::beside(here)
    }

    fn beside(here: Testbed) -> Result<Two> {
        let there = other(&here, "there")?;
        let address = there.options.listen.replace("0.0.0.0", "127.0.0.1");
        Ok(Two { here, there, address })
    }

    /// Waits until a VDB runs on the engine that took over.
    ///
    /// # Errors
    /// When it does not.
    pub fn made_again(&self, engine: &Engine, name: &str) -> Result<Vdb> {
        let shown = || engine.ask::<Vdb, _>(["vdb", "show", name]);
        let runs = || Ok(shown().is_ok_and(|vdb| vdb.state == VdbState::Running));
        wait_until("it is made again", PATIENCE, runs)?;
        shown()
    }

    /// A code of the one that is sent to.
    ///
    /// # Errors
    /// What it says.
    pub fn code(&self, arguments: &[&str]) -> Result<PeerInvitation> {
        self.there.ask([&["peer", "invite"][..], arguments].concat())
    }

    /// Adds it to the one that sends.
    ///
    /// # Errors
    /// What either says.
    pub fn add(&self, name: &str, code: &str) -> Result<serde_json::Value, CommandError> {
        let words = ["peer", "add", name, "--address", &self.address, "--code", code];
        self.here.engine.command(words)
    }

    /// Both know each other.
    ///
    /// # Errors
    /// What either says.
    pub fn know(&self) -> Result<()> {
        introduce(&self.here.engine, "west", &self.there, "east")
    }

    /// Sends `shop` and the VDB `dev`, which has a table `mine`, by the profile `nightly`. Returns a moment of `shop`, which has the
    /// bookmark `v1`, and what it holds.
    ///
    /// # Errors
    /// What either says.
    pub fn send_shop_and_dev(&self) -> Result<(String, String)> {
        let Two { here, .. } = self;
        here.link("shop")?;
        load(here)?;
        let moment = received_moment(here)?;
        let then = here.provision("then", "shop", &["--at", &moment])?;
        let then = sums(&Database::connect(&then.uri)?)?;
        here.engine.command(["vdb", "delete", "then"])?;
        here.engine.command(["bookmark", "create", "v1", "--on", "shop", "--at", &moment])?;
        here.engine.command(["policy", "set", "shop", "--log", "30d"])?;
        load(here)?;
        here.provision("dev", "shop", &[])?;
        here.open("dev")?.execute("CREATE TABLE mine AS SELECT 7 AS n")?;
        here.wait_ready(&here.snapshot("dev")?)?;
        here.wait_ready(&here.snapshot("shop")?)?;
        self.know()?;
        self.create("nightly", &["--include", "all"])?;
        self.run("nightly")?;
        Ok((moment, then))
    }

    /// Makes a profile.
    ///
    /// # Errors
    /// What the engine says.
    pub fn create(&self, name: &str, more: &[&str]) -> Result<Replication> {
        let words = ["replication", "create", name, "--to", "east"];
        self.here.engine.ask([&words[..], more].concat())
    }

    /// Runs it.
    ///
    /// # Errors
    /// Why it failed.
    ///
    /// # Panics
    /// Where it is not shown.
    pub fn run(&self, name: &str) -> Result<Replication, CommandError> {
        self.here.engine.command(["replication", "run", name])?;
        Ok(self.show(name).expect("a profile that has run"))
    }

    /// How it is.
    ///
    /// # Errors
    /// What the engine says.
    pub fn show(&self, name: &str) -> Result<Replication> {
        self.here.engine.ask(["replication", "show", name])
    }

    /// What is wrong with a profile.
    ///
    /// # Errors
    /// What the engine says.
    pub fn faults(&self, name: &str) -> Result<Vec<String>> {
        let status: Status = self.here.engine.ask(["status"])?;
        let of_it = status.faults.into_iter().filter(|fault| fault.object == name);
        Ok(of_it.map(|fault| fault.message).collect())
    }

    /// Commits at the source, and waits until that commit of `shop` opens there. Returns a moment before it.
    ///
    /// # Errors
    /// When it does not in time.
    pub fn follows(&self) -> Result<String> {
        let time = received_moment(&self.here)?;
        wait_until("the commit is there", PATIENCE, || {
            match self.there.ask::<Dsource, _>(["dsource", "show", "west/shop"]) {
                Ok(replica) => synced_after(&replica, &time),
                Err(_) => Ok(false),
            }
        })?;
        Ok(time)
    }

    /// A VDB of what was sent.
    ///
    /// # Errors
    /// What the engine says.
    pub fn open_there(&self, name: &str, from: &str, moment: &[&str]) -> Result<Database> {
        open_vdb(&self.there, name, from, moment)
    }

    /// Stops both, and checks all that is in their pools.
    ///
    /// # Errors
    /// What is found.
    pub fn check(mut self) -> Result<()> {
        self.here.check_pool()?;
        stop_and_check(&mut self.here.engine)?;
        stop_and_check(&mut self.there)
    }
}

/// Lets one engine send to another one: what each is called by the other.
///
/// # Errors
/// What either says.
pub fn introduce(from: &Engine, its_name: &str, to: &Engine, called: &str) -> Result<()> {
    let invited: PeerInvitation = to.ask(["peer", "invite", "--as", its_name])?;
    let address = to.options.listen.replace("0.0.0.0", "127.0.0.1");
    from.command(["peer", "add", called, "--address", &address, "--code", &invited.code])?;
    Ok(())
}

/// A VDB of what an engine has.
///
/// # Errors
/// What the engine says.
pub fn open_vdb(engine: &Engine, name: &str, from: &str, moment: &[&str]) -> Result<Database> {
    let words = ["vdb", "provision", name, "--from", from];
    let vdb: Vdb = engine.ask([&words[..], moment].concat())?;
    Database::connect(&vdb.uri)
}

/// A table of rows of a kilobyte that hardly compress.
///
/// # Errors
/// The server's.
pub fn make_noise(database: &Database, table: &str, rows: u32) -> Result<()> {
    database.execute(&format!(
        "CREATE TABLE {table} AS SELECT i, (SELECT string_agg(md5(random()::text || i || j), '') \
         FROM generate_series(1, 30) j) AS t FROM generate_series(1, {rows}) i"
    ))
}

/// The time of a moment after all that was written, once the engine has its log.
///
/// # Errors
/// Those of the source and of the engine.
pub fn received_moment(bed: &Testbed) -> Result<String> {
    let time = moment(bed)?;
    let database = bed.source.connect("postgres")?;
    database.execute("CREATE TABLE IF NOT EXISTS after (at timestamptz)")?;
    database.execute("INSERT INTO after VALUES (now())")?;
    wait_synced(bed, &time)?;
    Ok(time)
}

/// What the accounts of pgbench hold.
///
/// # Errors
/// The server's.
pub fn sums(database: &Database) -> Result<String> {
    database.text(
        "SELECT concat(count(*), ' ', sum(abalance), ' ', md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid))) \
         FROM pgbench_accounts",
    )
}

/// Changes accounts of the source.
///
/// # Errors
/// What pgbench says.
pub fn load(bed: &Testbed) -> Result<()> {
    let spec = bed.source.pgbench(&["--transactions", "500", "--client", "2"]);
    let run = offshoot_os::process::run(&spec, Duration::from_secs(60))?;
    ensure!(run.status.success(), "{run:?}");
    Ok(())
}

/// The time of a moment after all that was written to the source; the engine may not have its log yet.
///
/// # Errors
/// The server's.
pub fn moment(bed: &Testbed) -> Result<String> {
    let database = bed.source.connect("postgres")?;
    let time = database.text(
        "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00'",
    )?;
    database.execute("SELECT pg_sleep(0.3)")?;
    Ok(time)
}

/// Waits until the dSource `shop` has the log of a moment.
///
/// # Errors
/// When it does not in time.
pub fn wait_synced(bed: &Testbed, time: &str) -> Result<()> {
    wait_until("the log is received", PATIENCE, || synced_after(&bed.dsource("shop")?, time))
}

/// Whether a dSource has the log of a moment.
///
/// # Errors
/// When the moment is none.
pub fn synced_after(dsource: &Dsource, time: &str) -> Result<bool> {
    let time: jiff::Timestamp = time.replace("+00", "Z").replace(' ', "T").parse()?;
    let synced = dsource.synced_to.as_ref().and_then(|synced| synced.time);
    Ok(synced.is_some_and(|synced| synced > time))
}

/// Stops an engine, and checks all that is in its pool.
///
/// # Errors
/// When it does not end well, or something is wrong in the pool.
pub fn stop_and_check(engine: &mut Engine) -> Result<()> {
    ensure!(engine.stop()? == 0, "the engine did not end well");
    let key = engine.pool().with_extension("key");
    let key = key.to_str().expect("a path of the test's");
    let checked = engine.command(["pool", "check", "--secret-key", key])?;
    ensure!(checked["findings"] == serde_json::json!([]), "{checked}");
    Ok(())
}
