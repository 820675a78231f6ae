//! A plain standby of a stage's source: what following is compared with.

use crate::benchmarks::link::base_backup;
use crate::server::Server;
use crate::stage::Stage;
use anyhow::{Context, Result, ensure};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, Source};
use std::path::PathBuf;
use std::time::Duration;

/// What a source needs for one: it has no slot there.
pub const KEPT_LOG: (&str, &str) = ("wal_keep_size", "64GB");
/// Longest that catching up may take.
const CATCH_UP_SECONDS_MAX: u64 = 3_600;

/// Its files, and its server while it follows.
#[derive(Debug)]
pub struct Standby {
    directory: PathBuf,
    server: Option<Server>,
}

impl Standby {
    /// Copies the source; it does not follow yet.
    ///
    /// # Errors
    /// What the tool says.
    pub fn make(stage: &Stage) -> Result<Self> {
        let (copy, _) = base_backup(stage, "standby", &["--write-recovery-conf"])?;
        Ok(Standby { directory: copy.join("data"), server: None })
    }

    /// Begins to follow.
    ///
    /// # Errors
    /// The end of its log, when it does not start.
    pub fn start(&mut self, source: &Source) -> Result<()> {
        let server = self.server.insert(Server::spawn(source, &self.directory, [])?);
        server.wait_ready()
    }

    /// Stops to follow.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn stop(&mut self) -> Result<()> {
        self.server.take().map_or(Ok(()), Server::stop)
    }

    /// The id of its first process while it follows.
    pub fn pid(&self) -> Option<i32> {
        self.server.as_ref().map(Server::pid)
    }

    /// Waits until it has replayed up to a position.
    ///
    /// # Errors
    /// When it does not in time.
    pub fn wait_for(&self, position: &str) -> Result<()> {
        let server = self.server.as_ref().context("a standby that follows")?;
        let (began, db) = (SystemClock.elapsed(), Database::connect(server.uri())?);
        let behind = format!("SELECT (pg_last_wal_replay_lsn() < '{position}')::int");
        while db.number(&behind)? == 1 {
            let waited = (SystemClock.elapsed() - began).as_secs();
            ensure!(waited < CATCH_UP_SECONDS_MAX, "the standby does not reach {position}");
            SystemClock.sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Follows until it has replayed what the source has flushed, and stops; seconds from its start up to there.
    ///
    /// # Errors
    /// As [`Standby::start`] and [`Standby::wait_for`].
    pub fn catch_up(&mut self, source: &Source) -> Result<f64> {
        let position = source.connect("postgres")?.text("SELECT pg_current_wal_flush_lsn()")?;
        let began = SystemClock.elapsed();
        self.start(source)?;
        self.wait_for(&position)?;
        let seconds = (SystemClock.elapsed() - began).as_secs_f64();
        self.stop()?;
        Ok(seconds)
    }
}
