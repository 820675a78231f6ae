//! One kind of database.

use crate::{
    DataDir, Differ, Gateways, ImageChecker, Inquirer, Keepsakes, Masker, PointMaker, ReceivedLog,
    Replay, Replayed, Role, ScriptRunner, Server, ServerSpec, Source, SourceUri,
};
use offshoot_domain::{ConnectorState, Secret};
use offshoot_os::process::User;
use offshoot_types::{Failure, LogPosition};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How a kind of database lays out the datasets that the engine makes for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The directory of a staging, VDB or image dataset that is the server's data directory.
    pub data: &'static str,
    /// The directory of a log dataset with received log.
    pub log: &'static str,
    /// The directory of a log dataset with the index of commits.
    pub index: &'static str,
    /// Directories of `data` (including itself as "") whose files a server cannot work without: they may
    /// be written while the pool is nearly full.
    pub vital: &'static [&'static str],
}

/// One kind of database. The capabilities that not every kind has are behind methods that return an
/// option: `None` means there is none, and the engine does without.
pub trait Connector: Send + Sync {
    /// Its name in commands and records, e.g. what `--connector` takes.
    fn kind(&self) -> &'static str;

    /// How datasets are laid out.
    fn layout(&self) -> Layout;

    /// Who servers run as; none: the engine's own user.
    fn server_user(&self) -> Option<&User>;

    /// The role that users of VDBs connect as.
    fn login(&self) -> &'static str;

    /// Whether this host has the programs for a version of the database.
    ///
    /// # Errors
    /// `HostUnprepared` that names what is missing and the package.
    fn check_programs(&self, version: &str) -> Result<(), Failure>;

    /// Parses a user's URI and takes out a secret in it.
    ///
    /// # Errors
    /// `InvalidInput`.
    fn parse_source(&self, uri: &str, secret: Option<Secret>) -> Result<SourceUri, Failure>;

    /// What of the engine's own host a user's URI would have it use to get in: a socket, a key. Users of other hosts
    /// have none of these.
    ///
    /// # Errors
    /// `InvalidInput`.
    fn local_ways(&self, _uri: &str) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    /// A source to talk to, by the URI that [`Connector::parse_source`] returned. Nothing is connected yet.
    ///
    /// # Errors
    /// `InvalidInput`.
    fn source(&self, uri: &SourceUri) -> Result<Box<dyn Source>, Failure>;

    /// Opens what was received of a source's log, in a directory of its own, and its index, in another.
    ///
    /// # Errors
    /// `DataDamaged` when a directory cannot be used.
    fn open_log(
        &self,
        state: &ConnectorState,
        log: Arc<dyn DataDir>,
        index: Arc<dyn DataDir>,
    ) -> Result<Arc<dyn ReceivedLog>, Failure>;

    /// A position as users of this kind of database write it.
    fn write_position(&self, state: &ConnectorState, position: LogPosition) -> String;

    /// Reads what a user wrote.
    ///
    /// # Errors
    /// `InvalidInput` that says how positions are written.
    fn read_position(&self, state: &ConnectorState, text: &str) -> Result<LogPosition, Failure>;

    /// The least memory that a VDB's server runs in, in bytes.
    fn memory_min(&self) -> u64 {
        0
    }

    /// Whether a server of that version accepts these settings.
    ///
    /// # Errors
    /// `InvalidInput` naming the setting.
    fn validate_settings(
        &self,
        version: &str,
        settings: &BTreeMap<String, String>,
    ) -> Result<(), Failure>;

    /// Whether servers of a version can listen to other hosts, as [`Network`](crate::Network) says.
    ///
    /// # Errors
    /// `InvalidInput` if they cannot.
    fn check_network(&self, version: &str) -> Result<(), Failure>;

    /// The position from which a data directory needs log: anything that begins at or after it may not be
    /// in its files.
    ///
    /// # Errors
    /// `DataDamaged` when the directory does not say.
    fn replay_begins(&self, spec: &ServerSpec) -> Result<LogPosition, Failure>;

    /// Configures a data directory for a role and starts a server on it. Returns immediately; see
    /// [`Server::wait_ready`].
    ///
    /// # Errors
    /// `AlreadyExists` for a port that is taken; `HostUnprepared`; whatever made the server end
    /// immediately.
    fn start(&self, spec: ServerSpec, role: Role) -> Result<Arc<dyn Server>, Failure>;

    /// Puts log into a clone of an image as taken, replays it up to a position and leaves a server that takes
    /// writes, which nobody but the engine can reach. Refused on a clone that was opened before: make a new
    /// clone.
    ///
    /// # Errors
    /// `MomentUnavailable` if the log ends before it; `Cancelled`; `DataDamaged` when recovery fails. Nothing
    /// runs then.
    fn replay(&self, spec: ServerSpec, replay: Replay<'_>) -> Result<Replayed, Failure>;

    /// Removes what a replay left in a data directory, after its server has been stopped cleanly.
    ///
    /// # Errors
    /// When a file cannot be written.
    fn finish_image(&self, files: &dyn DataDir) -> Result<(), Failure>;

    /// The server that an earlier engine started with this runtime directory, when it still runs.
    ///
    /// # Errors
    /// `WrongState` when one runs, but with another data directory or port.
    fn adopt(&self, spec: ServerSpec) -> Result<Option<Arc<dyn Server>>, Failure>;

    /// Stops whatever server an earlier engine left in a runtime directory; none there is no error.
    ///
    /// # Errors
    /// If it does not end even when killed.
    fn stop_leftover(&self, runtime_dir: &Path, deadline: Duration) -> Result<(), Failure>;

    /// A new password for [`Connector::login`].
    fn new_password(&self) -> String;

    /// A URI that opens a VDB as it is.
    fn vdb_uri(&self, port: u16, password: &Secret, database: &str) -> String;

    /// The database that a source's URI names; none where it names none.
    fn database_of(&self, source: &str) -> Option<String>;

    /// Checks of images, if the kind has any.
    fn image_checker(&self) -> Option<&dyn ImageChecker> {
        None
    }

    /// Makes recovery points of its own, if the kind can: [`Connector::replay`] then also takes clones of them.
    fn point_maker(&self) -> Option<&dyn PointMaker> {
        None
    }

    /// Masks copies of this kind of database.
    fn masker(&self) -> Option<&dyn Masker> {
        None
    }

    /// Says what differs between copies of this kind of database.
    fn differ(&self) -> Option<&dyn Differ> {
        None
    }

    /// Asks copies of this kind of database.
    fn inquirer(&self) -> Option<&dyn Inquirer> {
        None
    }

    /// Runs what users have written in VDBs of this kind.
    fn script_runner(&self) -> Option<&dyn ScriptRunner> {
        None
    }

    /// Takes along what users made in VDBs of this kind when their data is replaced.
    fn keepsakes(&self) -> Option<&dyn Keepsakes> {
        None
    }

    /// Holds connections of VDBs of this kind while their servers are away. [`Connector::stop_leftover`] also ends
    /// gateways.
    fn gateways(&self) -> Option<&dyn Gateways> {
        None
    }
}
