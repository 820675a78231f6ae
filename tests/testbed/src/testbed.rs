//! A source and an engine in one directory.

use anyhow::{Context, Result, ensure};
use offshoot_api::{Dsource, PoolStatus, Snapshot, SnapshotList, Status, Vdb};
use offshoot_catalog::{Catalog, Keyring, SecretKey};
use offshoot_os::process::{ProcessId, Signal};
use offshoot_rig::{
    CommandError, Database, Engine, EngineOptions, Scratch, Source, SourceOptions, find_newest,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest a link may take: of a benchmark's source of several GiB.
const LINK_SECONDS_MAX: u64 = 1_800;

/// Longest any wait of a test may take: far longer than what it waits for takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// The binary under test.
///
/// # Panics
/// When it is not built: a test without it proves nothing.
pub fn binary() -> PathBuf {
    let built = || {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        target.join("debug/offshoot")
    };
    let binary = std::env::var_os("OFFSHOOT_BIN").map_or_else(built, PathBuf::from);
    assert!(binary.exists(), "{} is missing: cargo build -p offshoot-cli", binary.display());
    binary
}

/// The URI with another database in it.
pub fn in_database(uri: &str, database: &str) -> String {
    let mut uri = url::Url::parse(uri).expect("a URI");
    uri.set_path(database);
    uri.into()
}

/// The server of a major version among those of `OFFSHOOT_TEST_PG_BINS`.
///
/// # Panics
/// When it is not among them.
pub fn other_server(major: u32) -> PathBuf {
    let bins = std::env::var_os("OFFSHOOT_TEST_PG_BINS").unwrap_or_default();
    std::env::split_paths(&bins)
        .find(|bin| {
            !bin.as_os_str().is_empty()
                && offshoot_rig::major_version(bin).is_ok_and(|version| version == major)
        })
        .unwrap_or_else(|| {
            panic!("no PostgreSQL {major} in OFFSHOOT_TEST_PG_BINS: see scripts/test-postgres.sh")
        })
}

/// Waits until `holds` returns true; an error naming `what` after `limit`.
pub fn wait_until(what: &str, limit: Duration, holds: impl FnMut() -> Result<bool>) -> Result<()> {
    offshoot_rig::wait_until(what, limit, LOOK, holds)
}

/// A source, an engine and the directory of both. The order of the fields is the order in which they
/// end.
#[derive(Debug)]
pub struct Testbed {
    /// The engine.
    pub engine: Engine,
    /// The source.
    pub source: Source,
    /// [`Testbed::taken_bytes`] before anything was in the pool.
    pub empty_bytes: u64,
    /// Where everything lies.
    pub scratch: Scratch,
}

impl Testbed {
    /// A source with little data on the distribution's server, and an engine.
    ///
    /// # Errors
    /// What did not start, with the end of its log.
    pub fn start() -> Result<Self> {
        Testbed::with(SourceOptions { bin_dir: find_newest()?, scale: 1, settings: vec![] })
    }

    /// A custom source, and an engine that finds its server's programs.
    ///
    /// # Errors
    /// As [`Testbed::start`].
    pub fn with(options: SourceOptions) -> Result<Self> {
        let mut engine_options = EngineOptions::new(binary());
        engine_options.cache_size = "128MiB".into();
        Testbed::with_engine(options, engine_options)
    }

    /// A custom source and a custom engine.
    ///
    /// # Errors
    /// As [`Testbed::start`].
    pub fn with_engine(options: SourceOptions, mut engine_options: EngineOptions) -> Result<Self> {
        let scratch = Scratch::new("testbed")?;
        if !options.bin_dir.starts_with("/usr/lib/postgresql") {
            engine_options.path_before.push(options.bin_dir.clone());
        }
        let pool = scratch.path().join("pool");
        Testbed::assemble(scratch, options, Engine::prepare(pool, engine_options))
    }

    /// A source with little data, and an engine whose pool is in a directory of another file system.
    ///
    /// # Errors
    /// As [`Testbed::start`].
    pub fn on(directory: &Path) -> Result<Self> {
        let mut engine_options = EngineOptions::new(binary());
        engine_options.cache_size = "64MiB".into();
        let source = SourceOptions { bin_dir: find_newest()?, scale: 1, settings: vec![] };
        let scratch = Scratch::new("testbed")?;
        // The engine's log stays here: it is wanted most when the other file system is full.
        let pool = scratch.path().join("pool");
        std::fs::create_dir(directory.join("pool"))?;
        std::os::unix::fs::symlink(directory.join("pool"), &pool)?;
        Testbed::assemble(scratch, source, Engine::prepare(pool, engine_options))
    }

    fn assemble(scratch: Scratch, source: SourceOptions, mut engine: Engine) -> Result<Self> {
        let source = Source::start(&scratch, source)?;
        engine.restart()?;
        let mut bed = Testbed { engine, source, empty_bytes: 0, scratch };
        bed.empty_bytes = bed.taken_bytes()?;
        Ok(bed)
    }

    /// Links the source.
    ///
    /// # Errors
    /// What the command says.
    pub fn link(&self, name: &str) -> Result<Dsource> {
        self.link_as(name, &self.source.link_uri(), self.source.link_password())?;
        self.dsource(name)
    }

    /// Links any source.
    ///
    /// # Errors
    /// What the command says.
    pub fn link_as(&self, name: &str, uri: &str, password: &str) -> Result<Value, CommandError> {
        let arguments = ["dsource", "link", name, "--connector", "postgres", "--source", uri];
        let limit = Duration::from_secs(LINK_SECONDS_MAX);
        self.engine.command_within(arguments, &[("PGPASSWORD", password)], limit)
    }

    /// Shows a dSource.
    ///
    /// # Errors
    /// What the command says.
    pub fn dsource(&self, name: &str) -> Result<Dsource> {
        self.engine.ask(["dsource", "show", name])
    }

    /// Provisions a VDB.
    ///
    /// # Errors
    /// What the command says.
    pub fn provision(&self, name: &str, from: &str, moment: &[&str]) -> Result<Vdb> {
        let mut arguments = vec!["vdb", "provision", name, "--from", from];
        arguments.extend(moment);
        self.engine.ask(arguments)
    }

    /// Shows a VDB.
    ///
    /// # Errors
    /// What the command says.
    pub fn vdb(&self, name: &str) -> Result<Vdb> {
        self.engine.ask(["vdb", "show", name])
    }

    /// Connects to a VDB by the URI it shows.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn open(&self, name: &str) -> Result<Database> {
        Database::connect(&self.vdb(name)?.uri)
    }

    /// Takes a snapshot and returns it as listed: the newest of the object.
    ///
    /// # Errors
    /// What the command says.
    pub fn snapshot(&self, object: &str) -> Result<Snapshot> {
        self.engine.command(["snapshot", "take", object])?;
        let list: SnapshotList = self.engine.ask(["snapshot", "list", object])?;
        list.snapshots.into_iter().last().context("the snapshot taken is not listed")
    }

    /// Waits until a snapshot is proved to open.
    ///
    /// # Errors
    /// When it is not within [`PATIENCE`].
    pub fn wait_ready(&self, snapshot: &Snapshot) -> Result<()> {
        let id = snapshot.id.to_string();
        wait_until("the snapshot is ready", PATIENCE, || {
            let shown: Snapshot = self.engine.ask(["snapshot", "show", &id])?;
            ensure!(shown.error.is_none(), "the snapshot failed: {:?}", shown.error);
            Ok(shown.ready)
        })
    }

    /// Replication slots the source has.
    ///
    /// # Errors
    /// When the source does not answer.
    pub fn source_slots(&self) -> Result<i64> {
        self.source.connect("postgres")?.number("SELECT count(*) FROM pg_replication_slots")
    }

    /// Whether the engine holds no object, the source no slot, and no server or mount is left.
    ///
    /// # Errors
    /// What is left.
    pub fn assert_no_trace(&self) -> Result<()> {
        wait_until("nothing is left behind", PATIENCE, || {
            for (noun, list) in
                [("dsource", "dsources"), ("vdb", "vdbs"), ("snapshot", "snapshots")]
            {
                let document = self.engine.command([noun, "list"])?;
                let entries = document[list].as_array().context("a list of objects")?;
                ensure!(entries.is_empty(), "left behind: {document}");
            }
            ensure!(self.source_slots()? == 0, "the source has a replication slot left");
            let mounts = self.scratch.mounts();
            ensure!(mounts.is_empty(), "left mounted: {mounts:?}");
            let servers = self.servers();
            ensure!(servers.is_empty(), "left running: {servers:?}");
            Ok(true)
        })
    }

    /// The catalog, while there is no engine.
    ///
    /// # Errors
    /// When it does not open.
    pub fn catalog(&self) -> Result<Catalog> {
        let key = std::fs::read_to_string(self.engine.pool().with_extension("key"))?;
        let key = key.lines().find_map(SecretKey::parse).context("a key")?;
        Ok(Catalog::open(&self.engine.pool().join("catalog.db"), Keyring::from(key))?)
    }

    /// The process that replays, of the staging of a dSource.
    ///
    /// # Errors
    /// If there is none.
    pub fn replaying(&self, dsource: &str) -> Result<ProcessId> {
        let title = format!("offshoot staging {dsource}: startup");
        let is_it = |one: &ProcessId| one.arguments().iter().any(|text| text.contains(&title));
        let found = self.scratch.processes().into_iter().find(is_it);
        found.context("nothing replays")
    }

    /// Servers and tools of PostgreSQL that run below the pool, as their arguments.
    pub fn servers(&self) -> Vec<String> {
        let pool = self.engine.pool();
        let named = pool.to_string_lossy();
        let processes = self.scratch.processes().into_iter();
        let others = processes.filter(|process| Some(process.pid) != self.engine.pid());
        // The keeper serves no database and ends with the engine.
        let others = others.filter(|process| !is_keeper(process));
        let below = others.filter(|process| {
            process.cwd().is_some_and(|cwd| cwd.starts_with(pool))
                || process.arguments().iter().any(|argument| argument.contains(&*named))
        });
        below.map(|process| process.arguments().join(" ")).collect()
    }

    /// Kills the engine and the keeper: nothing that is not on the disk is left, as after a crash of the host.
    ///
    /// # Errors
    /// When one of them outlives that.
    pub fn kill_all(&mut self) -> Result<()> {
        self.engine.kill()?;
        for keeper in self.scratch.processes().into_iter().filter(is_keeper) {
            // It may have ended on its own.
            let _ = keeper.signal(Signal::Kill);
            ensure!(keeper.wait_end(PATIENCE), "the keeper outlived SIGKILL");
        }
        Ok(())
    }

    /// Starts an engine that aborts at a crash point. It may come to that before it is ready.
    ///
    /// # Errors
    /// If it did not get ready for another reason.
    pub fn restart_to_crash(&mut self, point: &str) -> Result<()> {
        self.engine.options.env = vec![("OFFSHOOT_CRASH_AT".into(), point.to_owned())];
        let started = self.engine.restart();
        let crashed = self.engine.log_end(3).contains("aborting, as asked for");
        if crashed { Ok(()) } else { started }
    }

    /// A scrub finds nothing, and nothing else is wrong.
    ///
    /// # Errors
    /// The faults.
    pub fn check_pool(&self) -> Result<()> {
        self.engine.command(["pool", "scrub"])?;
        let status: Status = self.engine.ask(["status"])?;
        ensure!(status.faults.is_empty(), "faults: {:?}", status.faults);
        Ok(())
    }

    /// What the pool takes, in bytes.
    ///
    /// # Errors
    /// What the command says.
    pub fn pool(&self) -> Result<PoolStatus> {
        self.engine.ask(["pool", "status"])
    }

    /// What the pool takes without its intent log, which load makes grow and nothing shrinks, in bytes.
    ///
    /// # Errors
    /// What the command says, or when the log cannot be listed.
    pub fn taken_bytes(&self) -> Result<u64> {
        let mut taken = self.pool()?.used_bytes;
        for file in std::fs::read_dir(self.engine.pool().join("log"))? {
            taken = taken.saturating_sub(file?.metadata()?.len());
        }
        Ok(taken)
    }

    /// Runs a command that must be refused as the contract says: exit code 1, a code, a message, and
    /// a hint that names the fix.
    ///
    /// # Panics
    /// When it succeeds or fails otherwise.
    pub fn refused(&self, arguments: &[&str]) -> CommandError {
        check_refusal(self.engine.command(arguments))
    }
}

fn is_keeper(process: &ProcessId) -> bool {
    process.arguments().get(1).is_some_and(|argument| argument == "keeper")
}

/// Checks that a command was refused as the contract says.
///
/// # Panics
/// When it succeeded or failed otherwise.
pub fn check_refusal(result: Result<Value, CommandError>) -> CommandError {
    match result {
        Ok(document) => panic!("must be refused, but printed {document}"),
        Err(error) => {
            assert_eq!(error.exit_code, 1, "{error}");
            assert!(!error.code.is_empty(), "{error}");
            assert_ne!(error.code, "internal", "{error}");
            assert!(!error.message.is_empty(), "{error}");
            assert!(!error.hint.is_empty(), "{error}");
            error
        }
    }
}

/// Prints what the engine logged if a test ends with an error or a panic: call it on the result.
///
/// # Errors
/// The same error, with the end of the engine's log.
pub fn with_log<T>(engine: &Engine, result: Result<T>) -> Result<T> {
    result.map_err(|error| {
        let log = engine.log_end(60);
        error.context(format!("the engine's log ends:\n{log}\n"))
    })
}
