//! Starting and stopping servers.
//!
//! A launcher runs the postmaster, and finds it again for an engine that was killed ([`adopt`],
//! [`stop_leftover`]) even where the data directory's file system is gone.
//!
//! ```text
//! RUNTIME_DIR        mode 0711, the engine's
//!   server.json      which process it is: the launcher's
//!   s/               mode 0700, the server user's: the private socket
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use offshoot_domain::Exposure;
use offshoot_launcher::{Launcher, Mark, Process};
use offshoot_os::bounded_log::LogPlace;
use offshoot_os::process::{Preload, ProcessId, Signal};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure, Remote, Share};
use parking_lot::Mutex;

pub(crate) use self::launch::{check_port, make_dir, make_runtime_dirs};
use crate::engine_role::{ENGINE_ROLE, LOGINS};
pub use crate::installation::USER;
use crate::session::{ConnectError, Session};

mod launch;
mod log;

/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The name of the program of a server.
const PROGRAM: &str = "postgres";
/// What its log says when it takes connections, after a recovery too.
pub(crate) const READY: &str = "database system is ready to accept connections";

/// What to start.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// A name for people, shown in process titles: `vdb dev1`, `staging shop`.
    pub name: String,
    /// Directory of the server's programs, of the cluster's major version.
    pub bin_dir: PathBuf,
    /// Whether servers of that version talk to themselves by UDP.
    pub udp: bool,
    /// The data directory as the server sees it (absolute).
    pub data_dir: PathBuf,
    /// A directory for this server alone, on a plain disk outside of the pool's mounts, with a
    /// short path (it holds the socket): created when missing. The server's user must be able to
    /// pass through the directories above it.
    pub runtime_dir: PathBuf,
    /// The server's log is appended here (outside of the data directory).
    pub log_file: PathBuf,
    /// Who runs it, and where.
    pub launcher: Arc<dyn Launcher>,
    /// Memory it may use with all its processes, in bytes; none: no limit.
    pub memory_bytes: Option<u64>,
    /// How many processes it may have.
    pub processes_max: u64,
    /// Port on 127.0.0.1; `None`: no TCP at all.
    pub tcp_port: Option<u16>,
    /// What it gets of the processors.
    pub share: Share,
    /// What is loaded into it, if it is confined.
    pub preload: Option<Preload>,
    /// How other hosts reach it; none: not at all.
    pub exposure: Option<Exposure>,
    /// The ports of other hosts that it may connect to.
    pub reaches: Vec<Remote>,
    /// Roles to connect as, in the order to try; see [`crate::superuser::candidates`]. The VDB role
    /// and `postgres` are tried after them, so a settled image needs none.
    pub superusers: Vec<String>,
    /// More settings that nobody may override, passed as arguments (never a secret). For the first
    /// start of a clone of a *running* VDB on a version from 14 on,
    /// `("recovery_init_sync_method", "syncfs")` saves syncing every file, which a fresh clone
    /// does not need.
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

/// What tells the postmaster with this runtime directory from other processes.
fn mark(runtime_dir: &Path) -> Mark {
    let setting = launch::socket_setting(&runtime_dir.join("s"));
    Mark { program: PROGRAM, argument: format!("{}={}", setting.0, setting.1) }
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
    process: Box<dyn Process>,
    /// The end of the log before this start: what comes after is this start's.
    log_start: LogPlace,
    /// The role that opened a session last.
    role: Mutex<Option<String>>,
}

/// Starts a server and returns at once; see [`Server::wait_ready`].
///
/// # Errors
/// `AlreadyExists` when the TCP port is taken or a server of this runtime directory still runs;
/// `HostUnprepared` when the program cannot be started or the socket's path is too long; as
/// [`Server::wait_ready`] when it ended at once.
pub fn start(spec: ServerSpec) -> Result<Server, Failure> {
    vacate(&spec)?;
    launch::start(spec)
}

/// As [`start`], by a caller that has vacated the data directory to make its files ready.
///
/// # Errors
/// As there.
pub(crate) fn start_vacated(spec: ServerSpec) -> Result<Server, Failure> {
    launch::start(spec)
}

/// Makes sure that no process works in the data directory, before its files are made ready for a
/// start. The processes of a postmaster that was killed read and write there until they notice, and
/// hold its shared memory: the next one would refuse to start.
///
/// # Errors
/// `AlreadyExists` when a server of this runtime directory runs; `Internal` if a process does not end
/// even when killed.
pub fn vacate(spec: &ServerSpec) -> Result<(), Failure> {
    launch::vacate(spec)
}

/// The server that an earlier engine process started with this runtime directory, when it still
/// runs.
///
/// # Errors
/// `WrongState` when one runs but with another data directory or port.
pub fn adopt(spec: ServerSpec) -> Result<Option<Server>, Failure> {
    let found = spec.launcher.find(&spec.runtime_dir, &mark(&spec.runtime_dir));
    let Some(found) = found else { return Ok(None) };
    found.check_is_on(&spec.data_dir, spec.socket_port())?;
    Ok(Some(Server::new(found.process, LogPlace::end_of(&spec.log_file), spec)))
}

/// Stops what an earlier engine process left running with this runtime directory, by force after
/// two thirds of `deadline`; its data directory need not be reachable. Its child processes go with
/// it. Whether there was anything.
///
/// # Errors
/// `Internal` when it does not end (a process stuck in a dead file system) within `deadline`.
pub fn stop_leftover(
    launcher: &dyn Launcher,
    runtime_dir: &Path,
    deadline: Duration,
) -> Result<bool, Failure> {
    // A fast stop would write a checkpoint into a file system that may be gone, and recovery will
    // bring back everything that was committed.
    launcher.end_leftover(runtime_dir, &mark(runtime_dir), Signal::Quit, deadline)
}

impl Server {
    fn new(process: Box<dyn Process>, log_start: LogPlace, spec: ServerSpec) -> Server {
        Server { spec, process, log_start, role: Mutex::new(None) }
    }

    /// What was asked for.
    pub fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// The postmaster.
    pub fn process_id(&self) -> ProcessId {
        self.process.id()
    }

    /// The name of the log file that a server in recovery replays, by the title of its process: it answers nothing until
    /// it is consistent.
    pub fn recovering(&self) -> Option<String> {
        let mut titles = self.process.titles().into_iter();
        titles.find_map(|title| Some(title.split_once(" recovering ")?.1.trim().to_owned()))
    }

    /// Whether the postmaster runs.
    pub fn running(&mut self) -> bool {
        self.process.running()
    }

    /// Waits until it takes connections on its private socket (a standby: read-only ones) and
    /// returns the first session, as [`Server::connect`] does.
    ///
    /// # Errors
    /// With the log's last lines when it ends before, or `deadline` passes (it is then stopped):
    /// `AlreadyExists` for a taken port, `HostUnprepared`, `InvalidInput` for a setting it refuses,
    /// `SourceRefused` when no superuser may log in, else `Internal` or `DataDamaged`.
    pub fn wait_ready(&mut self, deadline: Duration) -> Result<Session, Failure> {
        self.wait_session(deadline, &mut |_| true)
    }

    /// As [`Server::wait_ready`]; `tick` may end the wait early (`Cancelled`).
    pub(crate) fn wait_session(
        &mut self,
        deadline: Duration,
        tick: &mut dyn FnMut(&Server) -> bool,
    ) -> Result<Session, Failure> {
        let end = SystemClock.elapsed() + deadline;
        let mut pause = Duration::from_millis(2);
        loop {
            match self.try_connect("postgres") {
                Ok(session) => return Ok(session),
                Err(ConnectError::NotListening) => {}
                // Each refused attempt costs the server a process: ask less often.
                Err(ConnectError::NotYet) => {
                    pause = (pause * 5 / 4).min(Duration::from_millis(30));
                }
                Err(error) if self.running() => {
                    let failure = self.connect_failure(&error);
                    let _ = self.stop(StopMode::Immediate, Duration::from_secs(20));
                    return Err(failure);
                }
                Err(_) => {}
            }
            self.check_waits(end, deadline, tick)?;
            SystemClock.sleep(pause);
        }
    }

    /// Waits until its log since this start holds one of these texts, without a session, which would read tables.
    ///
    /// # Errors
    /// As [`Server::wait_session`].
    pub(crate) fn wait_logged(
        &mut self,
        texts: &[&str],
        deadline: Duration,
        tick: &mut dyn FnMut(&Server) -> bool,
    ) -> Result<(), Failure> {
        let end = SystemClock.elapsed() + deadline;
        let mut pause = Duration::from_millis(2);
        while !texts.iter().any(|text| self.log_says(text)) {
            self.check_waits(end, deadline, tick)?;
            SystemClock.sleep(pause);
            pause = (pause * 5 / 4).min(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Whether to wait on for a server that starts; if not, it is stopped.
    fn check_waits(
        &mut self,
        end: Duration,
        deadline: Duration,
        tick: &mut dyn FnMut(&Server) -> bool,
    ) -> Result<(), Failure> {
        if !self.running() {
            self.process.end(Signal::Quit, Signal::Quit, Duration::ZERO);
            return Err(log::start_failure(&self.spec, &self.log_start));
        }
        let cancelled = !tick(self);
        if !cancelled && SystemClock.elapsed() < end {
            return Ok(());
        }
        let lines = self.log_tail(8).join("\n");
        let _ = self.stop(StopMode::Immediate, Duration::from_secs(20));
        Err(if cancelled {
            Failure::new(ErrorKind::Cancelled, "the start was cancelled", "")
        } else {
            Failure::internal(format!(
                "the server {} was not ready within {} s; its log ends:\n{lines}",
                self.spec.name,
                deadline.as_secs()
            ))
        })
    }

    /// Connects as a superuser to a database that exists (`postgres`, else `template1`). Tries the
    /// role that worked last, `spec.superusers`, the engine's role, the VDB role and `postgres`.
    ///
    /// # Errors
    /// `SourceRefused` when none of them may log in, else `Internal`.
    pub fn connect(&self) -> Result<Session, Failure> {
        self.try_connect("postgres").map_err(|error| self.connect_failure(&error))
    }

    /// Connects as a superuser to another database.
    ///
    /// # Errors
    /// As [`Server::connect`].
    pub fn connect_to(&self, database: &str) -> Result<Session, Failure> {
        self.try_database(database).map_err(|error| self.connect_failure(&error))
    }

    fn try_connect(&self, database: &str) -> Result<Session, ConnectError> {
        match self.try_database(database) {
            Err(ConnectError::DatabaseRefused(_)) => self.try_database("template1"),
            other => other,
        }
    }

    fn try_database(&self, database: &str) -> Result<Session, ConnectError> {
        let last = self.role.lock().clone();
        let given = self.spec.superusers.iter().cloned();
        let known = LOGINS.map(str::to_owned);
        let mut refused = ConnectError::RoleRefused("no role to connect as".to_owned());
        for role in last.into_iter().chain(given).chain(known) {
            let (dir, port) = (self.spec.socket_dir(), self.spec.socket_port());
            match Session::try_connect(&dir, port, &role, database, CONNECT_TIMEOUT) {
                Ok(session) => {
                    *self.role.lock() = Some(role);
                    return Ok(session);
                }
                Err(error @ ConnectError::RoleRefused(_)) => refused = error,
                // The role exists but is no superuser, or has a setting that hinders.
                Err(error @ ConnectError::Other(_)) => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }

    /// Whether it is the engine's role that opened a session last.
    pub(crate) fn has_engine_role(&self) -> bool {
        self.role.lock().as_deref() == Some(ENGINE_ROLE)
    }

    /// Tries this role first from now on.
    pub(crate) fn prefer_role(&self, role: &str) {
        *self.role.lock() = Some(role.to_owned());
    }

    fn connect_failure(&self, error: &ConnectError) -> Failure {
        match error {
            ConnectError::RoleRefused(text) => Failure::new(
                ErrorKind::SourceRefused,
                format!("no superuser of the source may log in: {text}"),
                "give one superuser of the source the right to log in (ALTER ROLE postgres LOGIN), \
                 then sync the dSource again",
            ),
            error => Failure::internal(format!("cannot connect to {}: {error}", self.spec.name)),
        }
    }

    /// Makes it read its configuration again.
    ///
    /// # Errors
    /// `Internal` when it cannot be signalled.
    pub fn reload(&self) -> Result<(), Failure> {
        self.signal(Signal::Hangup).map(drop)
    }

    fn signal(&self, signal: Signal) -> Result<bool, Failure> {
        self.process.signal(signal).map_err(|error| {
            Failure::internal(format!("cannot signal the server {}: {error}", self.spec.name))
        })
    }

    /// Stops it; not running is no error. When it has not stopped after two thirds of `deadline`
    /// it is stopped immediately, then killed. Whether it stopped in the asked way (only then is a
    /// `Fast` stop's data clean).
    ///
    /// # Errors
    /// `Internal` when it does not even end when killed.
    pub fn stop(&mut self, mode: StopMode, deadline: Duration) -> Result<bool, Failure> {
        let was_running = self.running();
        let signal = match mode {
            StopMode::Fast => Signal::Interrupt,
            StopMode::Immediate => Signal::Quit,
        };
        let ended = self.process.end(signal, Signal::Quit, deadline).ok_or_else(|| {
            Failure::internal(format!(
                "the server {} (pid {}) does not end, not even when killed",
                self.spec.name,
                self.process_id().pid
            ))
        })?;
        Ok(match mode {
            StopMode::Fast => was_running && ended.gently && ended.success.unwrap_or(true),
            StopMode::Immediate => ended.gently,
        })
    }

    /// Ends a standby's recovery and waits until it takes writes.
    ///
    /// # Errors
    /// `Internal` when that does not happen within `deadline`.
    pub fn promote(&mut self, deadline: Duration) -> Result<(), Failure> {
        let seconds = deadline.as_secs().max(1);
        let mut session = self.connect()?;
        let sql = format!("SELECT pg_promote(true, {seconds})");
        let done = session.query_column(&sql, deadline + Duration::from_secs(5))?;
        if done.first().is_some_and(|text| text == "t") {
            return Ok(());
        }
        Err(Failure::internal(format!("{} was not promoted within {seconds} s", self.spec.name)))
    }

    /// Whether its log since this start holds a text.
    pub(crate) fn log_says(&self, text: &str) -> bool {
        log::says(&self.spec.log_file, &self.log_start, text)
    }

    /// The last line of its log since this start that holds a text.
    pub(crate) fn log_last(&self, text: &str) -> Option<String> {
        log::last(&self.spec.log_file, &self.log_start, text)
    }

    /// The last lines of its log since this start.
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        log::tail(&self.spec.log_file, &self.log_start, lines)
    }
}
