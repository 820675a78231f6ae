//! How soon an engine goes on for one whose host is lost, and what it lacks then.

use super::Arguments;
use super::lag::now;
use super::pair::Pair;
use crate::benchmarks::engine_options;
use crate::figures::millis;
use crate::record::Record;
use anyhow::{Context, Result, anyhow, ensure};
use jiff::Timestamp;
use offshoot_api::{Dsource, PeerInvitation, Replication, SnapshotList, Vdb, VdbState};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, Engine, Writer};
use std::path::PathBuf;
use std::time::Duration;

/// Time between two recorded commits of the source.
const TICK: Duration = Duration::from_millis(5);
/// How long a profile sends before its engine is lost; each round a little longer, so that not each is lost at the same
/// moment of a round of it.
const BEFORE: Duration = Duration::from_secs(5);
const LONGER: Duration = Duration::from_millis(137);
/// Longest that anything here may be waited for.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// What one loss showed.
struct Seen {
    /// From the kill until `offshoot failover` had ended.
    command_ms: f64,
    /// From the kill until the VDB answered.
    vdb_ms: f64,
    /// From the kill until a commit made after it opened.
    follows_ms: f64,
    /// Commits acknowledged before the kill that had not been sent.
    lacking: f64,
    /// How long before the kill the last commit was that had been sent.
    lacking_ms: f64,
}

/// Loses an engine again and again that sends a dSource and a VDB to the one that stays, beside pgbench and a client whose commits
/// are recorded.
pub fn measure(pair: &Pair, arguments: &Arguments, record: &mut Record) -> Result<()> {
    if arguments.failovers == 0 {
        return Ok(());
    }
    let source = &pair.stage.source;
    let password = pair.stage.scratch.path().join("password");
    std::fs::write(&password, source.link_password()).context("a file of the password")?;
    let writer = source.start_writes(TICK);
    let rate = format!("--rate={}", arguments.rate);
    let spec = source.pgbench(&["--client=4", "--time=100000", "--no-vacuum", &rate]);
    let mut load = spec.die_with_parent(true).spawn()?;
    let mut seen = Vec::new();
    for number in 1..=arguments.failovers {
        let round = Round { pair, writer: &writer, password: &password, number };
        let one = round.run(arguments).with_context(|| format!("loss {number}"));
        let one = one.inspect_err(|_| load.kill_group())?;
        eprintln!(
            "  loss {number}: the VDB answers after {:.0} ms, the dSource follows after {:.0} ms, {} commits lacked",
            one.vdb_ms, one.follows_ms, one.lacking
        );
        seen.push(one);
    }
    load.kill_group();
    let all = |of: fn(&Seen) -> f64| seen.iter().map(of).collect::<Vec<f64>>();
    let figures = &mut record.figures;
    figures.note("failover_kill_to_command_end_ms", all(|one| one.command_ms));
    figures.note("failover_kill_to_vdb_answers_ms", all(|one| one.vdb_ms));
    figures.note("failover_kill_to_dsource_follows_ms", all(|one| one.follows_ms));
    figures.note("failover_commits_not_sent", all(|one| one.lacking));
    figures.note("failover_commits_not_sent_ms", all(|one| one.lacking_ms));
    Ok(())
}

/// One loss.
struct Round<'a> {
    pair: &'a Pair,
    writer: &'a Writer,
    password: &'a PathBuf,
    number: u32,
}

impl Round<'_> {
    fn run(&self, arguments: &Arguments) -> Result<Seen> {
        let there = &self.pair.there;
        let west = format!("west{}", self.number);
        let mut lost = self.sender(&west, arguments)?;
        SystemClock.sleep(BEFORE + LONGER * self.number);

        let acknowledged = self.writer.history().last_value();
        let (began, time) = (SystemClock.elapsed(), now()?);
        lost.lose_host()?;
        there.command(["failover", &west, "--force"])?;
        let command_ms = millis(SystemClock.elapsed() - began);
        let taken: Dsource = there.ask(["dsource", "show", "shop"])?;
        let sent = taken.synced_to.context("the end of the log that was sent")?;
        let (vdb_ms, follows_ms) = std::thread::scope(|scope| {
            let answers = scope.spawn(|| self.vdb_answers(began));
            let follows = self.follows(began, time);
            let answers = answers.join().map_err(|_| anyhow!("a thread panicked"))?;
            anyhow::Ok((answers?, follows?))
        })?;

        let last = self.value(&["--lsn", &sent.lsn])?;
        let history = self.writer.history();
        let tick = history.ticks().iter().find(|tick| tick.value == last);
        let tick = tick.context("the last commit that was sent is none of ours")?;
        let lacking_ms = time.duration_since(tick.after).as_millis().max(0) as f64;
        // What had not been sent was fetched from production: nothing of that is lost.
        let newest = self.value(&["--latest"])?;
        ensure!(newest > acknowledged, "{newest} commits are there of {acknowledged} acknowledged");
        self.clean_up()?;
        let lacking = (acknowledged - last).max(0) as f64;
        Ok(Seen { command_ms, vdb_ms, follows_ms, lacking, lacking_ms })
    }

    /// An engine that sends `shop`, always, and the VDB `dev` to the one that stays.
    fn sender(&self, west: &str, arguments: &Arguments) -> Result<Engine> {
        let Pair { stage, there, address } = self.pair;
        let pool = stage.scratch.path().join(west);
        let mut engine = Engine::prepare(pool, engine_options(&arguments.setting)?);
        engine.restart()?;
        let uri = stage.source.link_uri();
        let link = ["dsource", "link", "shop", "--connector", "postgres", "--source", &uri];
        engine.command_within(link, &[("PGPASSWORD", stage.source.link_password())], WAIT_MAX)?;
        let vdb: Vdb = engine.ask(["vdb", "provision", "dev", "--from", "shop"])?;
        Database::connect(&vdb.uri)?.execute("CREATE TABLE mine AS SELECT 7 AS n")?;
        engine.command(["snapshot", "take", "dev"])?;
        wait_until("the snapshot of dev is ready", || {
            let list: SnapshotList = engine.ask(["snapshot", "list", "dev"])?;
            Ok(list.snapshots.last().is_some_and(|one| one.ready))
        })?;
        let invited: PeerInvitation = there.ask(["peer", "invite", "--as", west])?;
        let address = address.to_string();
        engine.command(["peer", "add", "east", "--address", &address, "--code", &invited.code])?;
        let include = ["--include", "dsource:shop,vdb:dev", "--continuous"];
        engine
            .command(["replication", "create", "always", "--to", "east"].iter().chain(&include))?;
        wait_until("the first copy is sent", || {
            let shown: Replication = engine.ask(["replication", "show", "always"])?;
            Ok(shown.last_success_at.is_some())
        })?;
        Ok(engine)
    }

    /// Until the VDB that was sent answers where it was taken over.
    fn vdb_answers(&self, began: Duration) -> Result<f64> {
        wait_until("the VDB answers", || {
            let vdb: Vdb = self.pair.there.ask(["vdb", "show", "dev"])?;
            if vdb.state != VdbState::Running {
                return Ok(false);
            }
            let mine = Database::connect(&vdb.uri)?.number("SELECT n FROM mine")?;
            ensure!(mine == 7, "the VDB holds {mine}");
            Ok(true)
        })?;
        Ok(millis(SystemClock.elapsed() - began))
    }

    /// Until a commit opens that was made after the loss.
    fn follows(&self, began: Duration, lost: Timestamp) -> Result<f64> {
        let there = &self.pair.there;
        let file = self.password.display().to_string();
        there.command(["dsource", "set", "shop", "--password-file", &file])?;
        let history = self.writer.history();
        let later = history.ticks().iter().find(|tick| tick.before > lost);
        let later = later.context("the source takes no writes")?.after;
        wait_until("the dSource follows production", || {
            let shop: Dsource = there.ask(["dsource", "show", "shop"])?;
            Ok(shop.synced_to.and_then(|synced| synced.time).is_some_and(|time| time >= later))
        })?;
        Ok(millis(SystemClock.elapsed() - began))
    }

    /// The last recorded commit at a moment of `shop`, where everything before it is there too.
    fn value(&self, moment: &[&str]) -> Result<i64> {
        let there = &self.pair.there;
        let words = ["vdb", "provision", "probe", "--from", "shop"];
        let vdb: Vdb = there.ask(words.iter().chain(moment))?;
        let rows = Database::connect(&vdb.uri)?.rows("SELECT max(value), count(*) FROM ticks")?;
        there.command(["vdb", "delete", "probe"])?;
        let row = rows.first().context("a row")?;
        ensure!(row[0] == row[1], "the last commit is {}, and {} are there", row[0], row[1]);
        row[0].parse().context("a number of commits")
    }

    /// Room for the next one, which has the same names; and production keeps no log for the engine that is lost.
    fn clean_up(&self) -> Result<()> {
        let there = &self.pair.there;
        there.command(["vdb", "delete", "dev"])?;
        there.command(["dsource", "unlink", "shop"])?;
        let source = self.pair.stage.source.connect("postgres")?;
        wait_until("the slot of the lost engine is dropped", || {
            let free = "FROM pg_replication_slots WHERE NOT active";
            source.execute(&format!("SELECT pg_drop_replication_slot(slot_name) {free}"))?;
            Ok(source.number(&format!("SELECT count(*) {free}"))? == 0)
        })
    }
}

fn wait_until(what: &str, holds: impl FnMut() -> Result<bool>) -> Result<()> {
    offshoot_rig::wait_until(what, WAIT_MAX, LOOK, holds)
}
