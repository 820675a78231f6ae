//! What most benchmarks start from: a source of a fixed state and an engine on a fresh pool.

use crate::figures::millis;
use crate::order_entry::{FillPlan, Filled, fill};
use anyhow::{Context, Result, ensure};
use offshoot_api::{Dsource, JobList, JobStep, PoolStatus, Snapshot, Vdb};
use offshoot_os::process::{self, ProcessId};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, Engine, EngineOptions, Scratch, Source, SourceOptions, find_newest};
use std::time::Duration;

/// Longest a link may take: of a source of tens of GB.
const LINK_SECONDS_MAX: u64 = 7_200;
/// Longest that log may be on its way.
const RECEIVED_SECONDS_MAX: u64 = 300;
/// Longest a snapshot may take to be proved.
const READY_SECONDS_MAX: u64 = 900;

/// PostgreSQL's own defaults, for all that are compared: the sample source checkpoints more often.
pub const CHECKPOINTS: [(&str, &str); 2] =
    [("checkpoint_timeout", "5min"), ("max_wal_size", "1GB")];

/// A source, an engine and the directory of both. The order of the fields is the order in which they
/// end.
#[derive(Debug)]
pub struct Stage {
    /// The engine.
    pub engine: Engine,
    /// The source.
    pub source: Source,
    /// Where everything lies.
    pub scratch: Scratch,
}

impl Stage {
    /// A source of a pgbench scale (0 for no such data) on the newest server here, and an engine.
    ///
    /// # Errors
    /// What did not start, with the end of its log.
    pub fn start(engine: &EngineOptions, scale: u32, settings: &[(&str, &str)]) -> Result<Self> {
        let scratch = Scratch::new("bench")?;
        let source = Source::start(&scratch, source_options(scale, settings)?)?;
        let engine = Engine::start(&scratch, engine.clone())?;
        Ok(Stage { engine, source, scratch })
    }

    /// Fills the source with order entry.
    ///
    /// # Errors
    /// What the server says.
    pub fn fill(&self, scale: f64, seed: u64) -> Result<Filled> {
        fill_source(&self.source, scale, seed)
    }

    /// The engine and all processes that work in its pool or name it.
    pub fn engine_processes(&self) -> Vec<ProcessId> {
        let pool = self.engine.pool();
        let named = pool.to_string_lossy();
        let of_pool = |process: &ProcessId| {
            process.cwd().is_some_and(|cwd| cwd.starts_with(pool))
                || process.arguments().iter().any(|argument| argument.contains(&*named))
        };
        self.scratch.processes().into_iter().filter(of_pool).collect()
    }

    /// Links the source; seconds it took.
    ///
    /// # Errors
    /// What the command says.
    pub fn link(&self, name: &str) -> Result<f64> {
        self.link_source(name, &self.source)
    }

    /// Links any source; seconds it took.
    ///
    /// # Errors
    /// What the command says.
    pub fn link_source(&self, name: &str, source: &Source) -> Result<f64> {
        let uri = source.link_uri();
        let arguments = ["dsource", "link", name, "--connector", "postgres", "--source", &uri];
        let password = [("PGPASSWORD", source.link_password())];
        let began = SystemClock.elapsed();
        let limit = Duration::from_secs(LINK_SECONDS_MAX);
        self.engine.command_within(arguments, &password, limit)?;
        Ok((SystemClock.elapsed() - began).as_secs_f64())
    }

    /// What each step of the newest job of a kind took, in seconds.
    ///
    /// # Errors
    /// What the command says, or when there is no such job.
    pub fn steps(&self, kind: &str) -> Result<Vec<(String, f64)>> {
        let list: JobList = self.engine.ask(["job", "list"])?;
        let job = list.jobs.into_iter().find(|job| job.kind == kind);
        let took = |step: JobStep| {
            let ms = step.ended_at?.as_millisecond() - step.started_at?.as_millisecond();
            Some((step.name, ms as f64 / 1e3))
        };
        let steps = job.with_context(|| format!("there is no job {kind}"))?.steps;
        Ok(steps.into_iter().filter_map(took).collect())
    }

    /// Shows a dSource.
    ///
    /// # Errors
    /// What the command says.
    pub fn dsource(&self, name: &str) -> Result<Dsource> {
        self.engine.ask(["dsource", "show", name])
    }

    /// Waits until all log of its source has been received.
    ///
    /// # Errors
    /// What the command says, or when it is not in time.
    pub fn wait_received(&self, dsource: &str) -> Result<()> {
        let deadline = SystemClock.elapsed() + Duration::from_secs(RECEIVED_SECONDS_MAX);
        while self.dsource(dsource)?.lag_bytes != Some(0) {
            ensure!(SystemClock.elapsed() < deadline, "the engine does not receive all log");
            SystemClock.sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// Provisions a VDB.
    ///
    /// # Errors
    /// What the command says.
    pub fn provision(&self, name: &str, from: &str, more: &[&str]) -> Result<Vdb> {
        let mut arguments = vec!["vdb", "provision", name, "--from", from];
        arguments.extend(more);
        self.engine.ask(arguments)
    }

    /// What the pool holds.
    ///
    /// # Errors
    /// What the command says.
    pub fn pool(&self) -> Result<PoolStatus> {
        self.engine.ask(["pool", "status"])
    }

    /// The first snapshot of a dSource, once it is proved to open.
    ///
    /// # Errors
    /// When it fails or is not ready in time.
    pub fn ready_snapshot(&self, dsource: &str) -> Result<Snapshot> {
        let first = self.dsource(dsource)?.snapshots.into_iter().next();
        self.wait_ready(&first.context("a link ends in a snapshot")?)
    }

    /// Takes a snapshot and waits until it is proved to open.
    ///
    /// # Errors
    /// What the command says, or when it fails or is not ready in time.
    pub fn take_snapshot(&self, dsource: &str) -> Result<Snapshot> {
        self.engine.command(["snapshot", "take", dsource])?;
        let last = self.dsource(dsource)?.snapshots.into_iter().next_back();
        self.wait_ready(&last.context("the snapshot taken is not listed")?)
    }

    fn wait_ready(&self, snapshot: &Snapshot) -> Result<Snapshot> {
        let id = snapshot.id.to_string();
        let deadline = SystemClock.elapsed() + Duration::from_secs(READY_SECONDS_MAX);
        loop {
            let shown: Snapshot = self.engine.ask(["snapshot", "show", &id])?;
            ensure!(shown.error.is_none(), "the snapshot failed: {:?}", shown.error);
            if shown.ready {
                return Ok(shown);
            }
            ensure!(SystemClock.elapsed() < deadline, "{id} is not ready in time");
            SystemClock.sleep(Duration::from_millis(100));
        }
    }

    /// Transactions per second of one run of pgbench.
    ///
    /// # Errors
    /// What pgbench says.
    pub fn pgbench(&self, uri: &str, clients: u32, seconds: u32, flags: &[&str]) -> Result<f64> {
        let spec = self
            .source
            .pgbench_on(uri, flags)
            .args(["--no-vacuum", "--jobs=2"])
            .arg(format!("--client={clients}"))
            .arg(format!("--time={seconds}"));
        let limit = Duration::from_secs(u64::from(seconds) * 3 + 60);
        let output = process::run(&spec, limit)?;
        ensure!(output.success(), "pgbench: {}", output.stderr_text());
        let text = output.stdout_text();
        let line = text.lines().find_map(|line| line.strip_prefix("tps = "));
        let rate = line.and_then(|rest| rest.split_whitespace().next());
        rate.and_then(|rate| rate.parse().ok()).with_context(|| format!("no rate in: {text}"))
    }

    /// Provisions a VDB and asks it something over a new connection; milliseconds from the request to
    /// the answer.
    ///
    /// # Errors
    /// What the command or the database says.
    pub fn provision_and_ask(&self, name: &str, from: &str, more: &[&str]) -> Result<(Vdb, f64)> {
        let began = SystemClock.elapsed();
        let vdb = self.provision(name, from, more)?;
        Database::connect(&vdb.uri)?.number("SELECT count(*) FROM pg_class")?;
        Ok((vdb, millis(SystemClock.elapsed() - began)))
    }
}

/// Options of a source on the newest server here.
///
/// # Errors
/// When there is none.
pub fn source_options(scale: u32, settings: &[(&str, &str)]) -> Result<SourceOptions> {
    let settings = settings.iter().map(|(key, value)| ((*key).into(), (*value).into()));
    Ok(SourceOptions { bin_dir: find_newest()?, scale, settings: settings.collect() })
}

/// Fills any source with order entry.
///
/// # Errors
/// What the server says.
pub fn fill_source(source: &Source, scale: f64, seed: u64) -> Result<Filled> {
    let uri = source.superuser_uri("postgres");
    let connections = std::thread::available_parallelism().map_or(2, |count| count.get() * 2);
    fill(&FillPlan { uri, scale, seed, connections: connections as u32 })
}

/// How much log a source has written, in bytes.
///
/// # Errors
/// What the server says.
pub fn log_bytes(source: &Source) -> Result<u64> {
    let position = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint";
    Ok(source.connect("postgres")?.number(position)?.unsigned_abs())
}
