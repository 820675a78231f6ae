//! What a launcher is.

use crate::record;
use offshoot_os::process::{ProcessId, Signal, Spec, User};
use offshoot_types::{ErrorKind, Failure, Remote, Share};
use std::fmt::Debug;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

/// What a server that is confined calls the engine's own user, where it runs as that one.
pub const OWN_ACCOUNT: &str = "server";

/// What distinguishes a server's first process from all others, including its children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// How the file name of its program begins.
    pub program: &'static str,
    /// An argument that no other server has, as it names the runtime directory.
    pub argument: String,
}

/// A server to start.
#[derive(Debug)]
pub struct Launch {
    /// A name for people.
    pub name: String,
    /// The program, its arguments and where its output goes. The launcher sets the user.
    pub command: Spec,
    /// A directory for this server alone, which exists.
    pub runtime_dir: PathBuf,
    /// Where its data is. Whose that is, the server runs as.
    pub data_dir: PathBuf,
    /// Whether it is to end, as no server does: it can only read `data_dir`, and is returned also if it has ended already.
    pub ends: bool,
    /// The directories of `runtime_dir` that belong to the server.
    pub own_dirs: Vec<PathBuf>,
    /// Where its programs and libraries are, beside the system's directories.
    pub program_dirs: Vec<PathBuf>,
    /// The port it listens on; it names its socket if it has no TCP.
    pub port: u16,
    /// Whether it listens on that port by TCP.
    pub tcp: bool,
    /// The ports that it may connect to, of whatever host.
    pub connects: Vec<u16>,
    /// Whether it talks to itself by UDP.
    pub udp: bool,
    /// The ports of other hosts that it may connect to; whoever is not confined reaches all.
    pub reaches: Vec<Remote>,
    /// Memory it may use with all its children, in bytes; none: no limit.
    pub memory_bytes: Option<u64>,
    /// How many processes and threads it may have with all its children. Held by a control group, or by a
    /// cell with a user namespace of its own.
    pub processes_max: u64,
    /// What it gets of the processors. Held by a control group.
    pub share: Share,
}

/// A server's processes.
pub trait Process: Debug + Send + Sync {
    /// Its first process, which outlives all others of it.
    fn id(&self) -> ProcessId;

    /// Whether it runs.
    fn running(&mut self) -> bool;

    /// Sends a signal to its first process; returns whether it existed.
    ///
    /// # Errors
    /// When the signal is not permitted.
    fn signal(&self, signal: Signal) -> io::Result<bool>;

    /// What its child processes call themselves.
    fn titles(&self) -> Vec<String>;

    /// Ends it: by `first`, by `then` after two thirds of `deadline`, finally by force. `None` if a
    /// process of it still runs.
    fn end(&mut self, first: Signal, then: Signal, deadline: Duration) -> Option<Ended>;
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Whether the first signal was enough.
    pub gently: bool,
    /// Whether it reported success; unknown for one that an earlier engine started.
    pub success: Option<bool>,
    /// How its first process ended, where that is known.
    pub status: Option<ExitStatus>,
}

/// A server that runs.
#[derive(Debug)]
pub struct Found {
    /// Its processes.
    pub process: Box<dyn Process>,
    /// Where its data is, if known.
    pub data_dir: Option<PathBuf>,
    /// Its port, where that is known.
    pub port: Option<u16>,
}

impl Found {
    /// The refusal of a second start.
    pub fn runs_already(&self, name: &str) -> Failure {
        let message = format!("the server {name} runs already (pid {})", self.process.id().pid);
        Failure::new(ErrorKind::AlreadyExists, message, "stop it first")
    }

    /// Whether it is the wanted server, as far as is known.
    ///
    /// # Errors
    /// `WrongState` when it has another data directory or port.
    pub fn check_is_on(&self, data_dir: &Path, port: u16) -> Result<(), Failure> {
        if self.data_dir.as_ref().is_none_or(|dir| dir == data_dir)
            && self.port.is_none_or(|one| one == port)
        {
            return Ok(());
        }
        let message = format!("another server (pid {}) runs there", self.process.id().pid);
        Err(Failure::new(ErrorKind::WrongState, message, "stop it, then start again"))
    }
}

/// A place where servers run.
pub trait Launcher: Debug + Send + Sync {
    /// The user that servers, and programs that work on their files, run as; none: the engine's own.
    fn user(&self) -> Option<&User>;

    /// The user that works on the files of a data directory: whose it is. Servers whose files are shown as users
    /// of their own run as these.
    ///
    /// # Errors
    /// `Internal` when the directory cannot be asked.
    fn user_of(&self, data_dir: &Path) -> Result<Option<User>, Failure> {
        let Some(user) = self.user() else { return Ok(None) };
        let found = std::fs::metadata(data_dir).map_err(|error| {
            let dir = data_dir.display();
            Failure::internal(format!("cannot tell whose the data directory {dir} is: {error}"))
        })?;
        let (uid, gid) = (found.uid(), found.gid());
        // No server runs as root.
        if uid == 0 || uid == user.uid {
            return Ok(Some(user.clone()));
        }
        Ok(Some(User { name: user.name.clone(), uid, gid, groups: vec![gid] }))
    }

    /// Whether what runs here reaches nothing but what was named.
    fn confines(&self) -> bool {
        false
    }

    /// Starts a server and returns as soon as its process exists.
    ///
    /// # Errors
    /// `HostUnprepared` when the program cannot be started; `PoolFull`, `Internal` when what identifies
    /// it cannot be written (then it does not run). `None`: it ended immediately.
    fn launch(&self, launch: Launch) -> Result<Option<Box<dyn Process>>, Failure>;

    /// The server with this runtime directory, when it runs.
    fn find(&self, runtime_dir: &Path, mark: &Mark) -> Option<Found>;

    /// Ends what a killed server left running in its data directory. Only if the server itself no
    /// longer runs.
    ///
    /// # Errors
    /// `Internal` if a process does not end even when killed.
    fn end_orphans(&self, data_dir: &Path, program: &str) -> Result<(), Failure>;
}

impl dyn Launcher + '_ {
    /// Stops what an earlier engine left running with this runtime directory; its data directory need
    /// not be reachable. Returns whether there was anything.
    ///
    /// # Errors
    /// `Internal` if it does not end within `deadline`.
    pub fn end_leftover(
        &self,
        runtime_dir: &Path,
        mark: &Mark,
        signal: Signal,
        deadline: Duration,
    ) -> Result<bool, Failure> {
        let Some(mut found) = self.find(runtime_dir, mark) else {
            record::forget(runtime_dir);
            return Ok(false);
        };
        let pid = found.process.id().pid;
        found.process.end(signal, signal, deadline).map(|_| true).ok_or_else(|| {
            let dir = runtime_dir.display();
            Failure::internal(format!("the server left running in {dir} (pid {pid}) does not end"))
        })
    }
}
