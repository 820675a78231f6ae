//! Servers on directories of the engine's.

use crate::{DataDir, LogTarget, ReceivedLog};
use jiff::Timestamp;
use offshoot_domain::{Exposure, Secret, TiesCut};
use offshoot_os::process::{Preload, ProcessId};
use offshoot_types::{Failure, LogPosition, Remote, Share};
use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What to start a server on.
#[derive(Clone)]
pub struct ServerSpec {
    /// A name for people, shown in process titles: `vdb dev1`, `staging shop`.
    pub name: String,
    /// The version of the database, as its source reports it.
    pub version: String,
    /// The data directory as the engine reaches it.
    pub files: Arc<dyn DataDir>,
    /// The same as the server sees it (absolute).
    pub data_dir: PathBuf,
    /// A directory for this server alone, on a plain disk, not on anything the engine delivers, with a
    /// short path (it holds the socket). Made when missing.
    pub runtime_dir: PathBuf,
    /// The server's log is appended here. The engine cuts it in place when it grows too large:
    /// `offshoot_os::bounded_log`.
    pub log_file: PathBuf,
    /// Port on loopback; none: no TCP at all.
    pub tcp_port: Option<u16>,
    /// What it gets of the processors.
    pub share: Share,
    /// What is loaded into it, where it is confined, so that it reads without asking; it works without that, too.
    pub preload: Option<Preload>,
}

/// What a server is for.
#[derive(Debug, Clone)]
pub enum Role {
    /// Replays the source's log as it is fed to it; nobody but the engine can reach it.
    Staging {
        /// Bytes of memory for its buffers.
        buffers: u64,
    },
    /// Opened for a check or a recovery; nobody but the engine can reach it.
    Private,
    /// A user's.
    Vdb(VdbOptions),
}

/// How a user wants a VDB.
#[derive(Debug, Clone, Default)]
pub struct VdbOptions {
    /// Settings by the database's own names.
    pub settings: BTreeMap<String, String>,
    /// Memory it may use, in bytes; none: small defaults.
    pub memory_bytes: Option<u64>,
    /// Whether the logins of the source's roles stay.
    pub keep_source_logins: bool,
    /// How other hosts reach it; none: not at all.
    pub network: Option<Network>,
    /// The ports of other hosts that programs in it may connect to.
    pub reaches: Vec<Remote>,
}

/// How other hosts reach a VDB: by TLS and a password, and only those that may.
#[derive(Debug, Clone)]
pub struct Network {
    /// Where it listens, and who may connect.
    pub exposure: Exposure,
    /// What the server shows, in PEM.
    pub certificate: String,
    /// The certificate's key, in PEM.
    pub key: Secret,
}

/// How to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Sessions are ended and everything is written: opens without recovery next time.
    Fast,
    /// Immediately, like a crash: for data that is discarded afterwards.
    Immediate,
}

/// A replay to ask for.
pub struct Replay<'a> {
    /// The log to replay.
    pub log: &'a dyn ReceivedLog,
    /// The clone.
    pub target: &'a dyn LogTarget,
    /// Where it ends: everything that ends at or before it is replayed, nothing that begins at or
    /// after it.
    pub to: LogPosition,
    /// How long it may take.
    pub deadline: Duration,
    /// Puts what the clone's servers have written into its files. To be called after one has stopped, before its files
    /// are read or changed.
    pub flush: &'a dyn Fn() -> Result<(), Failure>,
    /// Called every 10 to 100 ms with how far it has come, if known; `false` cancels.
    pub tick: &'a mut dyn FnMut(Option<LogPosition>) -> bool,
}

/// How far a staging server or a replay has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The end of the last record replayed.
    pub position: LogPosition,
    /// The epoch of the log it follows.
    pub epoch: u32,
    /// When the last transaction replayed was committed, by the source's clock.
    pub last_commit: Option<Timestamp>,
}

/// A server that has replayed what it was asked to.
pub struct Replayed {
    /// It takes writes from the engine.
    pub server: Arc<dyn Server>,
    /// The end of the last record replayed.
    pub end: LogPosition,
    /// From the start of its server until it had replayed that record.
    pub took: Duration,
}

/// Who may use a VDB.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The password of [`Connector::login`](crate::Connector::login).
    pub password: Secret,
    /// Whether they may do everything, programs on the server's host included.
    pub superuser: bool,
    /// Whether the source's logins work again.
    pub keep_source_logins: bool,
    /// Whether addresses of other databases, and passwords for them, stay as the source has them.
    pub keep_foreign_servers: bool,
    /// The database that users will connect to first.
    pub preferred_database: Option<String>,
}

impl Grant {
    /// The least: nothing of the source's stays, and the user is no superuser.
    pub fn new(password: Secret) -> Grant {
        Grant {
            password,
            superuser: false,
            keep_source_logins: false,
            keep_foreign_servers: false,
            preferred_database: None,
        }
    }
}

/// A VDB that its users may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The database that its URI opens.
    pub database: String,
    /// What of the source is not in it; none where its image does not tell, as of one that users had before.
    pub ties: Option<TiesCut>,
}

/// A server that the engine started or found again. Dropping it leaves it running. All methods may be called
/// from several threads.
pub trait Server: Any + Send + Sync {
    /// Its first process, which outlives all others of it.
    fn process_id(&self) -> ProcessId;

    /// Whether it runs.
    fn running(&self) -> bool;

    /// What it is recovering, in its own words, as long as it answers nothing. The text changes each time it
    /// has made progress.
    fn recovering(&self) -> Option<String>;

    /// Waits until it takes connections of the engine.
    ///
    /// # Errors
    /// With the last lines of its log if it ends before that. It is stopped when `deadline` passes.
    fn wait_ready(&self, deadline: Duration) -> Result<(), Failure>;

    /// The end of what it has written to its own log and flushed.
    ///
    /// # Errors
    /// When it does not answer.
    fn position(&self) -> Result<LogPosition, Failure>;

    /// How far a staging server has replayed.
    ///
    /// # Errors
    /// When it does not answer (yet).
    fn replayed(&self) -> Result<Progress, Failure>;

    /// Cuts every way from a copy to its source. Doing it twice is the same as once.
    ///
    /// # Errors
    /// If the server cannot do it; nobody may get the copy then.
    fn cut_ties(&self) -> Result<TiesCut, Failure>;

    /// As [`Server::wait_ready`]; then gives a VDB to its users.
    ///
    /// # Errors
    /// As there, and if the server cannot do it.
    fn grant(&self, grant: &Grant, deadline: Duration) -> Result<Granted, Failure>;

    /// Writes everything to its files, so that the room of its log is freed.
    ///
    /// # Errors
    /// If it does not do it within `deadline`.
    fn checkpoint(&self, deadline: Duration) -> Result<(), Failure>;

    /// Stops it; it is no error if it does not run. Returns whether it stopped as asked: only then is the data
    /// clean after a `Fast` stop. A server that does not stop is killed before `deadline`.
    ///
    /// # Errors
    /// If it does not end even when killed.
    fn stop(&self, mode: StopMode, deadline: Duration) -> Result<bool, Failure>;
}
