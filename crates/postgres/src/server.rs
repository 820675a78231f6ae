//! Starting and stopping servers.
//!
//! The postmaster is started directly and leads a session of its own. What identifies it (pid,
//! start time, data directory) is written to its runtime directory on a plain disk *before* anyone
//! uses it, so that an engine that was killed finds what it left ([`adopt`], [`stop_leftover`])
//! even where the data directory's file system is gone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_os::process::{ProcessId, User};
use offshoot_types::Failure;

use crate::session::Session;

/// What to start.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// A name for people, shown in process titles: `vdb dev1`, `staging shop`.
    pub name: String,
    /// Directory of the server's programs, of the cluster's major version.
    pub bin_dir: PathBuf,
    /// The data directory as the server sees it (absolute).
    pub data_dir: PathBuf,
    /// A directory for this server alone, on a plain disk outside of the pool's mounts, with a
    /// short path (it holds the socket): created when missing.
    pub runtime_dir: PathBuf,
    /// The server's log is appended here (outside of the data directory).
    pub log_file: PathBuf,
    /// Who it runs as: as root the `postgres` user, else `None`. See [`server_user`].
    pub user: Option<User>,
    /// Port on 127.0.0.1; `None`: no TCP at all.
    pub tcp_port: Option<u16>,
    /// More settings that nobody may override, passed as arguments (never a secret).
    pub forced: Vec<(String, String)>,
}

impl ServerSpec {
    /// The directory of the private socket.
    pub fn socket_dir(&self) -> PathBuf {
        self.runtime_dir.join("s")
    }

    /// The port in the socket's name.
    pub fn socket_port(&self) -> u16 {
        self.tcp_port.unwrap_or(5432)
    }
}

/// Who servers run as: as root the `postgres` user of this host, else `None` (ourselves).
///
/// # Errors
/// `HostUnprepared` as root without such a user.
pub fn server_user() -> Result<Option<User>, Failure> {
    todo!()
}

/// How to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Sessions are ended, a checkpoint is written: opens without recovery next time.
    Fast,
    /// At once, as a crash would: for what is thrown away afterwards.
    Immediate,
}

/// A server this engine started or found again. Dropping it leaves it running.
#[derive(Debug)]
pub struct Server {
    spec: ServerSpec,
}

/// Starts a server and returns at once; see [`Server::wait_ready`].
///
/// # Errors
/// `AlreadyExists` when the TCP port is taken or a server of this runtime directory still runs;
/// `HostUnprepared` when the program cannot be started or the socket's path is too long.
pub fn start(spec: ServerSpec) -> Result<Server, Failure> {
    Ok(Server { spec })
}

/// The server that an earlier engine process started with this runtime directory, when it still
/// runs.
///
/// # Errors
/// `Internal` when the record cannot be read.
pub fn adopt(spec: ServerSpec) -> Result<Option<Server>, Failure> {
    let _ = spec;
    todo!()
}

/// Stops what an earlier engine process left running with this runtime directory, by force after
/// a third of `deadline`; its data directory need not be reachable. Also kills its orphaned child
/// processes. Whether there was anything. Never touches a process that is not surely that server.
///
/// # Errors
/// `Internal` when it does not end (a process stuck in a dead file system) within `deadline`.
pub fn stop_leftover(runtime_dir: &Path, deadline: Duration) -> Result<bool, Failure> {
    let _ = (runtime_dir, deadline);
    todo!()
}

impl Server {
    /// What was asked for.
    pub fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// The postmaster.
    pub fn process_id(&self) -> ProcessId {
        todo!()
    }

    /// Whether the postmaster runs.
    pub fn running(&mut self) -> bool {
        todo!()
    }

    /// Waits until it takes connections on its private socket (a standby: read-only ones).
    ///
    /// # Errors
    /// With the log's last lines when it ends before, or `deadline` passes (it is then stopped):
    /// `AlreadyExists` for a taken port, `HostUnprepared`, `InvalidInput` for a setting it refuses,
    /// else `Internal`.
    pub fn wait_ready(&mut self, deadline: Duration) -> Result<(), Failure> {
        let _ = deadline;
        todo!()
    }

    /// Connects as a superuser to a database that exists (`postgres`, else `template1`). Tries the
    /// VDB role, then the superusers named in the data directory; see [`crate::superuser`].
    ///
    /// # Errors
    /// `Internal`, or `SourceRefused` when no superuser of the source may log in.
    pub fn connect(&self) -> Result<Session, Failure> {
        todo!()
    }

    /// Connects as the superuser that [`Server::connect`] found, to another database.
    ///
    /// # Errors
    /// As [`Server::connect`].
    pub fn connect_to(&self, database: &str) -> Result<Session, Failure> {
        let _ = database;
        todo!()
    }

    /// Makes it read its configuration again.
    ///
    /// # Errors
    /// `Internal` when it cannot be signalled.
    pub fn reload(&self) -> Result<(), Failure> {
        todo!()
    }

    /// Stops it; not running is no error. After `deadline` it is stopped immediately, then killed.
    /// Whether it stopped in the asked way (only then is a `Fast` stop's data clean).
    ///
    /// # Errors
    /// `Internal` when it does not even end when killed.
    pub fn stop(&mut self, mode: StopMode, deadline: Duration) -> Result<bool, Failure> {
        let _ = (mode, deadline);
        todo!()
    }

    /// Ends a standby's recovery and waits until it takes writes.
    ///
    /// # Errors
    /// `Internal` when that does not happen within `deadline`.
    pub fn promote(&mut self, deadline: Duration) -> Result<(), Failure> {
        let _ = deadline;
        todo!()
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        offshoot_os::process::last_lines(&self.spec.log_file, lines)
    }
}
