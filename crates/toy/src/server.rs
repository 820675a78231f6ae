//! Servers on directories of the engine's: found again by the arguments of their processes.

use crate::client::{Client, Refused};
use crate::daemon::{PORT_TAKEN, socket};
use jiff::Timestamp;
use offshoot_connector::{Grant, Progress, Server, ServerSpec, StopMode, TiesCut};
use offshoot_os::process::{Child, ProcessId, Signal, Sink, Spec, last_lines};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure, LogPosition};
use parking_lot::Mutex;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The login that users of VDBs have.
pub const LOGIN: &str = "offshoot";
/// The one database of a toy.
pub(crate) const DATABASE: &str = "main";
/// How the names of its programs begin: tests of others build one of their own.
const PROGRAM: &str = "toyd";
/// Longest path of a Unix socket in bytes.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A server that runs, or did.
pub(crate) struct ToyServer {
    name: String,
    runtime_dir: PathBuf,
    log_file: PathBuf,
    process: ProcessId,
    /// Not there for one that an earlier engine started.
    child: Mutex<Option<Child>>,
}

/// Starts a server.
///
/// # Errors
/// As [`Connector::start`](offshoot_connector::Connector::start).
pub(crate) fn start(program: &Path, spec: &ServerSpec) -> Result<ToyServer, Failure> {
    let socket = socket(&spec.runtime_dir);
    if socket.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return Err(Failure::new(
            ErrorKind::HostUnprepared,
            format!("the path of the socket {} is too long", socket.display()),
            "put the pool, or its runtime directory, at a shorter path",
        ));
    }
    if let Some(found) = find(&spec.runtime_dir) {
        let message = format!("the server {} runs already (pid {})", spec.name, found.pid);
        return Err(Failure::new(ErrorKind::AlreadyExists, message, "stop it first"));
    }
    if let Some(port) = spec.tcp_port
        && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err()
    {
        return Err(port_taken(port));
    }
    std::fs::create_dir_all(&spec.runtime_dir).map_err(|error| {
        Failure::new(
            ErrorKind::HostUnprepared,
            format!("cannot make {}: {error}", spec.runtime_dir.display()),
            "make sure that the engine may write there",
        )
    })?;
    let mut command = Spec::new(program)
        .args(["--data".as_ref(), spec.data_dir.as_os_str()])
        .args(["--runtime".as_ref(), spec.runtime_dir.as_os_str()])
        .args(["--name", &spec.name]);
    if let Some(port) = spec.tcp_port {
        command = command.args(["--port", &port.to_string()]);
    }
    let command = command
        .clear_env()
        .cwd("/")
        .stdout(Sink::File(spec.log_file.clone()))
        .stderr(Sink::File(spec.log_file.clone()));
    let child = command.spawn().map_err(|error| {
        Failure::new(ErrorKind::HostUnprepared, error.to_string(), "build the program toyd")
    })?;
    let process = child.process_id();
    let server = |process| ToyServer::new(spec, process, Some(child));
    process.map(server).ok_or_else(|| ended(spec.name.as_str(), &spec.log_file))
}

/// The server of a runtime directory, when it runs.
pub(crate) fn find(runtime_dir: &Path) -> Option<ProcessId> {
    let wanted = runtime_dir.to_string_lossy();
    ProcessId::all()
        .find(|process| argument(process, "--runtime").is_some_and(|dir| dir == *wanted))
}

fn argument(process: &ProcessId, name: &str) -> Option<String> {
    let arguments = process.arguments();
    let program = arguments.first()?.rsplit('/').next()?.to_owned();
    let at = arguments.iter().position(|argument| argument == name)?;
    if !program.starts_with(PROGRAM) { None } else { arguments.get(at + 1).cloned() }
}

/// As [`Connector::adopt`](offshoot_connector::Connector::adopt).
///
/// # Errors
/// As there.
pub(crate) fn adopt(spec: &ServerSpec) -> Result<Option<ToyServer>, Failure> {
    let Some(process) = find(&spec.runtime_dir) else { return Ok(None) };
    let port = argument(&process, "--port");
    let data_dir = argument(&process, "--data").map(PathBuf::from);
    if port != spec.tcp_port.map(|port| port.to_string())
        || data_dir.as_ref() != Some(&spec.data_dir)
    {
        return Err(Failure::new(
            ErrorKind::WrongState,
            format!("another server runs in {}", spec.runtime_dir.display()),
            "stop it, then start again",
        ));
    }
    Ok(Some(ToyServer::new(spec, process, None)))
}

/// Kills what runs with a runtime directory: its journal has everything.
///
/// # Errors
/// When it does not end.
pub(crate) fn stop_leftover(runtime_dir: &Path, deadline: Duration) -> Result<(), Failure> {
    match find(runtime_dir) {
        Some(process) => kill(process, deadline),
        None => Ok(()),
    }
}

fn kill(process: ProcessId, deadline: Duration) -> Result<(), Failure> {
    let _ = process.signal(Signal::Kill);
    if process.wait_end(deadline.max(Duration::from_millis(500))) {
        return Ok(());
    }
    let pid = process.pid;
    Err(Failure::internal(format!("the process {pid} does not end, not even when killed")))
}

fn port_taken(port: u16) -> Failure {
    Failure::new(
        ErrorKind::AlreadyExists,
        format!("the port {port} is taken by another program"),
        "choose another one with --port, or stop that program",
    )
}

fn ended(name: &str, log_file: &Path) -> Failure {
    let lines = last_lines(log_file, 3).join("\n");
    if lines.contains(PORT_TAKEN) {
        return Failure::new(ErrorKind::AlreadyExists, lines, "choose another port");
    }
    Failure::internal(format!("the server {name} ended; its log ends:\n{lines}"))
}

impl ToyServer {
    fn new(spec: &ServerSpec, process: ProcessId, child: Option<Child>) -> ToyServer {
        ToyServer {
            name: spec.name.clone(),
            runtime_dir: spec.runtime_dir.clone(),
            log_file: spec.log_file.clone(),
            process,
            child: Mutex::new(child),
        }
    }

    /// Asks it, over a connection for this question alone.
    pub(crate) fn ask(&self, line: &str) -> Result<String, Refused> {
        Client::local(&socket(&self.runtime_dir))?.ask(line)
    }

    /// Takes note of its end, which the parent of a process hears of last.
    fn reap(&self) {
        if let Some(child) = &mut *self.child.lock() {
            let _ = child.wait_timeout(Duration::from_secs(1));
        }
    }

    fn need(&self, line: &str) -> Result<String, Failure> {
        self.ask(line)
            .map_err(|error| Failure::internal(format!("the server {}: {error}", self.name)))
    }

    fn need_json<T: serde::de::DeserializeOwned>(&self, line: &str) -> Result<T, Failure> {
        serde_json::from_str(&self.need(line)?).map_err(|error| {
            Failure::internal(format!("the server {} answers unclearly: {error}", self.name))
        })
    }

    /// Waits as `wait_ready` does; `tick` hears what it is recovering and ends the wait by `false`.
    pub(crate) fn wait(
        &self,
        deadline: Duration,
        tick: &mut dyn FnMut(Option<LogPosition>) -> bool,
    ) -> Result<(), Failure> {
        let end = SystemClock.elapsed() + deadline;
        loop {
            let answer = self.ask("PING");
            if answer.as_ref().is_ok_and(|answer| answer == "ready") {
                return Ok(());
            }
            if !self.running() {
                return Err(ended(&self.name, &self.log_file));
            }
            let replayed =
                answer.ok().and_then(|text| text.strip_prefix("recovering j")?.parse().ok());
            if !tick(replayed.map(LogPosition)) {
                self.stop(StopMode::Immediate, Duration::from_secs(10))?;
                return Err(Failure::new(ErrorKind::Cancelled, "the start was cancelled", ""));
            }
            if SystemClock.elapsed() >= end {
                self.stop(StopMode::Immediate, Duration::from_secs(10))?;
                let message = format!("the server {} was not ready in time", self.name);
                return Err(Failure::internal(message));
            }
            SystemClock.sleep(Duration::from_millis(2));
        }
    }
}

impl Server for ToyServer {
    fn process_id(&self) -> ProcessId {
        self.process
    }

    fn running(&self) -> bool {
        match &mut *self.child.lock() {
            // Asking reaps it when it has ended.
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => self.process.alive(),
        }
    }

    fn recovering(&self) -> Option<String> {
        self.ask("PING").ok().filter(|answer| answer != "ready")
    }

    fn wait_ready(&self, deadline: Duration) -> Result<(), Failure> {
        self.wait(deadline, &mut |_| true)
    }

    fn position(&self) -> Result<LogPosition, Failure> {
        self.need_json("POSITION").map(LogPosition)
    }

    fn replayed(&self) -> Result<Progress, Failure> {
        let (position, last): (u64, Option<i64>) = self.need_json("PROGRESS")?;
        let last_commit = last.and_then(|us| Timestamp::from_microsecond(us).ok());
        Ok(Progress { position: LogPosition(position), epoch: 1, last_commit })
    }

    fn cut_ties(&self) -> Result<TiesCut, Failure> {
        Ok(TiesCut { cut: self.need_json("CUT")?, warnings: Vec::new() })
    }

    fn grant(&self, grant: &Grant, deadline: Duration) -> Result<String, Failure> {
        self.wait_ready(deadline)?;
        let restore = if grant.restore_source_logins { "restore" } else { "none" };
        self.need(&format!("GRANT {LOGIN} {} {restore}", grant.password.reveal()))?;
        Ok(DATABASE.to_owned())
    }

    fn checkpoint(&self, _deadline: Duration) -> Result<(), Failure> {
        self.need("CHECKPOINT").map(drop)
    }

    fn stop(&self, mode: StopMode, deadline: Duration) -> Result<bool, Failure> {
        if !self.running() {
            return Ok(mode == StopMode::Immediate);
        }
        let asked = mode == StopMode::Fast
            && Client::local_within(&socket(&self.runtime_dir), deadline / 3)
                .and_then(|mut client| client.ask("SHUTDOWN"))
                .is_ok();
        if asked && self.process.wait_end(deadline / 3) {
            self.reap();
            return Ok(true);
        }
        kill(self.process, deadline / 3)?;
        self.reap();
        Ok(mode == StopMode::Immediate)
    }
}
