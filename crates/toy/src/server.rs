//! Servers on directories of the engine's: found again by the arguments of their processes.

use crate::client::{Client, Refused};
use crate::daemon::{PORT_TAKEN, socket};
use jiff::Timestamp;
use offshoot_connector::{Grant, Granted, Progress, Server, ServerSpec, StopMode};
use offshoot_domain::{Secret, TiesCut};
use offshoot_launcher::{Launch, Launcher, Mark, Process};
use offshoot_os::process::{ProcessId, Signal, Sink, Spec, last_lines};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure, LogPosition};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The login that users of VDBs have.
pub const LOGIN: &str = "offshoot";
/// The one database of a toy.
pub(crate) const DATABASE: &str = "main";
/// How the names of its programs begin: other tests build their own.
const PROGRAM: &str = "toyd";
/// Longest path of a Unix socket in bytes.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A server that runs, or did.
pub(crate) struct ToyServer {
    name: String,
    runtime_dir: PathBuf,
    log_file: PathBuf,
    process: Mutex<Box<dyn Process>>,
}

/// Starts a server.
///
/// # Errors
/// As [`Connector::start`](offshoot_connector::Connector::start).
pub(crate) fn start(
    launcher: &dyn Launcher,
    program: &Path,
    spec: &ServerSpec,
) -> Result<ToyServer, Failure> {
    let socket = socket(&spec.runtime_dir);
    if socket.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return Err(Failure::new(
            ErrorKind::HostUnprepared,
            format!("the path of the socket {} is too long", socket.display()),
            "put the pool, or its runtime directory, at a shorter path",
        ));
    }
    let mark = mark(&spec.runtime_dir);
    if let Some(found) = launcher.find(&spec.runtime_dir, &mark) {
        return Err(found.runs_already(&spec.name));
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
    let launched = launcher.launch(Launch {
        name: spec.name.clone(),
        command,
        runtime_dir: spec.runtime_dir.clone(),
        data_dir: spec.data_dir.clone(),
        ends: false,
        own_dirs: vec![spec.runtime_dir.clone()],
        program_dirs: program.parent().map(Path::to_owned).into_iter().collect(),
        port: spec.tcp_port.unwrap_or(0),
        tcp: spec.tcp_port.is_some(),
        connects: Vec::new(),
        udp: false,
        reaches: Vec::new(),
        memory_bytes: None,
        processes_max: 1000,
        share: spec.share,
    })?;
    match launched {
        Some(process) => Ok(ToyServer::new(spec, process)),
        None => Err(ended(&spec.name, &spec.log_file)),
    }
}

fn mark(runtime_dir: &Path) -> Mark {
    Mark { program: PROGRAM, argument: runtime_dir.to_string_lossy().into_owned() }
}

/// As [`Connector::adopt`](offshoot_connector::Connector::adopt).
///
/// # Errors
/// As there.
pub(crate) fn adopt(
    launcher: &dyn Launcher,
    spec: &ServerSpec,
) -> Result<Option<ToyServer>, Failure> {
    let found = launcher.find(&spec.runtime_dir, &mark(&spec.runtime_dir));
    let Some(found) = found else { return Ok(None) };
    found.check_is_on(&spec.data_dir, spec.tcp_port.unwrap_or(0))?;
    Ok(Some(ToyServer::new(spec, found.process)))
}

/// Kills what runs with a runtime directory: its journal has everything.
///
/// # Errors
/// When it does not end.
pub(crate) fn stop_leftover(
    launcher: &dyn Launcher,
    runtime_dir: &Path,
    deadline: Duration,
) -> Result<(), Failure> {
    launcher.end_leftover(runtime_dir, &mark(runtime_dir), Signal::Kill, deadline).map(drop)
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
    fn new(spec: &ServerSpec, process: Box<dyn Process>) -> ToyServer {
        ToyServer {
            name: spec.name.clone(),
            runtime_dir: spec.runtime_dir.clone(),
            log_file: spec.log_file.clone(),
            process: Mutex::new(process),
        }
    }

    /// Asks it, over a connection just for this request.
    pub(crate) fn ask(&self, line: &str) -> Result<String, Refused> {
        Client::local(&socket(&self.runtime_dir))?.ask(line)
    }

    fn need(&self, line: &str) -> Result<String, Failure> {
        self.ask(line)
            .map_err(|error| Failure::internal(format!("the server {}: {error}", self.name)))
    }

    /// Masks the values of all keys with this prefix; returns how many.
    pub(crate) fn mask(&self, prefix: &str, key: &Secret) -> Result<u64, Failure> {
        self.need_json(&format!("MASK {} {prefix}", key.reveal()))
    }

    /// Sets the value of a key.
    pub(crate) fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        self.need(&format!("SET {key} {value}")).map(drop)
    }

    /// All its data.
    pub(crate) fn data(&self) -> Result<BTreeMap<String, String>, Failure> {
        self.need_json("DUMP")
    }

    /// All keys of its data.
    pub(crate) fn keys(&self) -> Result<Vec<String>, Failure> {
        Ok(self.data()?.into_keys().collect())
    }

    fn need_json<T: serde::de::DeserializeOwned>(&self, line: &str) -> Result<T, Failure> {
        serde_json::from_str(&self.need(line)?).map_err(|error| {
            Failure::internal(format!("the server {} answers unclearly: {error}", self.name))
        })
    }

    /// Waits as `wait_ready` does; `tick` gets what it is recovering, and ends the wait with
    /// `false`.
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
        self.process.lock().id()
    }

    fn running(&self) -> bool {
        self.process.lock().running()
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

    fn grant(&self, grant: &Grant, deadline: Duration) -> Result<Granted, Failure> {
        self.wait_ready(deadline)?;
        let restore = if grant.keep_source_logins { "restore" } else { "none" };
        let command = format!("GRANT {LOGIN} {} {restore}", grant.password.reveal());
        let cut: Option<Vec<String>> = self.need_json(&command)?;
        let ties = cut.map(|cut| TiesCut { cut, warnings: Vec::new() });
        Ok(Granted { database: DATABASE.to_owned(), ties })
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
        // One that was asked gets a signal that it does not feel, and time.
        let first = if asked { Signal::Continue } else { Signal::Kill };
        let ended =
            self.process.lock().end(first, Signal::Kill, deadline / 2).ok_or_else(|| {
                let name = &self.name;
                Failure::internal(format!("the server {name} does not end, not even when killed"))
            })?;
        Ok(mode == StopMode::Immediate || asked && ended.gently)
    }
}
