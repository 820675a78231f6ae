//! Databases in production.

use crate::{DataDir, LogStream, ServerSpec};
use jiff::Timestamp;
use offshoot_domain::{ConnectorState, Secret};
use offshoot_os::Clock;
use offshoot_types::{Failure, LogPosition};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// Where a source is and how to get in.
#[derive(Debug, Clone)]
pub struct SourceUri {
    /// The URI without a secret, as it may be shown and stored.
    pub uri: String,
    /// The secret, where one was given.
    pub secret: Option<Secret>,
}

/// What a check found out about a source; may be stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckedSource {
    /// What the connector remembers about it with the dSource.
    pub state: ConnectorState,
    /// Identifies the database: the same for all its replicas, different for every other database.
    pub identity: String,
    /// The version as the server prints it.
    pub version: String,
    /// Its clock.
    pub clock: Timestamp,
    /// What does not prevent a link, but users should know.
    #[serde(default)]
    pub warnings: Vec<Failure>,
    /// For the copy alone: the connector's own, opaque like its state.
    #[serde(default)]
    pub facts: serde_json::Value,
}

/// A copy to make.
pub struct CopyRequest<'a> {
    /// What the check found.
    pub checked: &'a CheckedSource,
    /// Where it goes: name, version and both ways to the data directory. No server runs on it.
    pub target: &'a ServerSpec,
    /// Told bytes done and bytes in all.
    pub progress: &'a dyn Fn(u64, u64),
    /// Whether the user has given up.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// A copy that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// Log is needed from here on.
    pub start: LogPosition,
    /// From here on it is consistent.
    pub end: LogPosition,
    /// Whether it was already compared with what the source said about it.
    pub verified: bool,
}

/// A stream to start.
pub struct StreamRequest {
    /// The connector's state of the dSource.
    pub state: ConnectorState,
    /// The version of the source.
    pub version: String,
    /// The reservation of log that was made for it.
    pub reservation: Option<String>,
    /// Where received log goes, as the engine reaches it.
    pub log: Arc<dyn DataDir>,
    /// The same as a program sees it.
    pub directory: PathBuf,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// A database in production. Nothing here writes to it except the reservation of log.
pub trait Source: Send + Sync {
    /// Finds out whether it can be linked.
    ///
    /// # Errors
    /// `SourceRefused`, `SourceUnreachable`, `HostUnprepared`: all that is missing, and the statements that
    /// provide it.
    fn check(&self) -> Result<CheckedSource, Failure>;

    /// A name for a reservation of log, unlike any other; none where the kind needs none.
    fn reservation_name(&self, unique: &str) -> Option<String>;

    /// Makes the source keep its log for us from now on. An existing reservation is no error.
    ///
    /// # Errors
    /// The source's.
    fn reserve_log(&self, name: &str) -> Result<(), Failure>;

    /// Gives a reservation up; one that is gone is no error.
    ///
    /// # Errors
    /// The source's.
    fn release_log(&self, name: &str) -> Result<(), Failure>;

    /// How a user releases a reservation by hand, for a source that cannot be reached any more.
    fn release_hint(&self, name: &str) -> String;

    /// Whether a copy is written by a program that needs the path: the data directory must be delivered then, and
    /// what the copy makes is the engine's.
    fn copies_by_path(&self, checked: &CheckedSource) -> bool;

    /// Copies it. What an interrupted copy left must be removed before another.
    ///
    /// # Errors
    /// The source's, the pool's, `Cancelled`.
    fn copy(&self, request: &CopyRequest<'_>) -> Result<Copied, Failure>;

    /// Compares a copy with what the source said about it.
    ///
    /// # Errors
    /// `DataDamaged`; `HostUnprepared` if this host cannot do it.
    fn verify(&self, target: &ServerSpec, cancelled: &dyn Fn() -> bool) -> Result<(), Failure>;

    /// Writes into a copy those of the source's settings that its servers here need. Returns what is left out,
    /// and why.
    ///
    /// # Errors
    /// The source's; if a file cannot be written.
    fn adopt_settings(&self, target: &ServerSpec) -> Result<Vec<(String, String)>, Failure>;

    /// Starts the stream of its log.
    ///
    /// # Errors
    /// `HostUnprepared` when its program cannot be started; later trouble is in the stream's status.
    fn stream(&self, request: StreamRequest) -> Result<Arc<dyn LogStream>, Failure>;
}
