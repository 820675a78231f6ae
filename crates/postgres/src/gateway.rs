//! The gateway of a VDB: a process that passes connections on to its server, and holds them while there is none.
//!
//! ```text
//! RUNTIME_DIR        mode 0711, the engine's
//!   server.json      which process it is: the launcher's
//!   g/               mode 0700, of the user that gateways run as
//!     control        where the engine tells it what to do
//! ```
//! It is found again as servers are, by an argument that names its runtime directory.

use crate::server::{check_port, make_runtime_dirs};
use offshoot_connector::GatewaySpec;
use offshoot_gateway::{Control, Hold, Options, Request, Status, VERSION, parking_time_max};
use offshoot_launcher::{Launch, Launcher, Mark, Process};
use offshoot_os::bounded_log;
use offshoot_os::process::{Signal, Sink, Spec, User};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{Failure, Share};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a gateway may take to answer.
const ANSWER: Duration = Duration::from_secs(20);
/// How long it may take until it listens.
const READY: Duration = Duration::from_secs(20);
/// How long it may take to end.
const END: Duration = Duration::from_secs(10);
/// How much of what it has said is shown.
const SAID_BYTES: u64 = 1000;
/// Threads and processes of one.
const PROCESSES_MAX: u64 = 64;
/// Memory of one: five thousand clients with their buffers.
const MEMORY_BYTES: u64 = 1 << 30;

/// Starts the gateway of a runtime directory, or finds the one that runs there. `program` is the one whose subcommand
/// `gateway` becomes a gateway.
///
/// # Errors
/// `AlreadyExists` for a port that is taken; `HostUnprepared`.
pub(crate) fn open(
    launcher: &Arc<dyn Launcher>,
    program: &Path,
    spec: &GatewaySpec,
) -> Result<RunningGateway, Failure> {
    let gateway =
        RunningGateway { launcher: launcher.clone(), runtime_dir: spec.runtime_dir.clone() };
    let options = options(spec);
    let knows_us = || gateway.ask(&Request::Status).is_ok_and(|it| it.version == VERSION);
    if runs_with(&**launcher, &spec.runtime_dir, &options) && knows_us() {
        return Ok(gateway);
    }
    // One of other ports or of an earlier release, or one that does not answer.
    end(&**launcher, &spec.runtime_dir, END)?;
    let options = serde_json::to_string(&options)
        .map_err(|error| Failure::internal(format!("a gateway cannot be described: {error}")))?;
    let process = launch(&**launcher, program, spec, options)?;
    gateway.wait_ready(spec, process)?;
    Ok(gateway)
}

/// Ends whatever gateway runs in a runtime directory.
///
/// # Errors
/// If it does not end even when killed.
pub(crate) fn end(
    launcher: &dyn Launcher,
    runtime_dir: &Path,
    deadline: Duration,
) -> Result<(), Failure> {
    if !control_dir(runtime_dir).is_dir() {
        return Ok(());
    }
    launcher.end_leftover(runtime_dir, &mark(runtime_dir), Signal::Terminate, deadline).map(drop)
}

fn control_dir(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join("g")
}

fn control(runtime_dir: &Path) -> PathBuf {
    control_dir(runtime_dir).join("control")
}

fn mark(runtime_dir: &Path) -> Mark {
    Mark { program: "", argument: control(runtime_dir).display().to_string() }
}

/// Whether a gateway runs there with these options. A VDB that has another name since keeps its gateway, and the clients of that.
fn runs_with(launcher: &dyn Launcher, runtime_dir: &Path, options: &Options) -> bool {
    let Some(found) = launcher.find(runtime_dir, &mark(runtime_dir)) else { return false };
    found.process.id().arguments().iter().any(|argument| {
        let running: Option<Options> = serde_json::from_str(argument).ok();
        let name = options.name.clone();
        running.is_some_and(|running| Options { name, ..running } == *options)
    })
}

fn options(spec: &GatewaySpec) -> Options {
    let listen = spec.addresses.iter().map(|address| SocketAddr::new(*address, spec.port));
    Options {
        name: spec.name.clone(),
        listen: listen.collect(),
        control: control(&spec.runtime_dir),
        controller: User::own_uid(),
    }
}

fn launch(
    launcher: &dyn Launcher,
    program: &Path,
    spec: &GatewaySpec,
    options: String,
) -> Result<Option<Box<dyn Process>>, Failure> {
    let dir = control_dir(&spec.runtime_dir);
    make_runtime_dirs(&spec.runtime_dir, &dir, launcher.user())?;
    let command = Spec::new(program)
        .args(["gateway".as_ref(), control(&spec.runtime_dir).as_os_str()])
        .arg(options)
        .clear_env()
        .cwd("/")
        .stdout(Sink::File(spec.log_file.clone()))
        .stderr(Sink::File(spec.log_file.clone()));
    launcher.launch(Launch {
        name: format!("gateway {}", spec.name),
        command,
        runtime_dir: spec.runtime_dir.clone(),
        data_dir: dir,
        ends: false,
        own_dirs: Vec::new(),
        program_dirs: vec![program.to_owned()],
        port: spec.port,
        tcp: true,
        connects: vec![spec.server_port],
        udp: false,
        reaches: Vec::new(),
        memory_bytes: Some(MEMORY_BYTES),
        processes_max: PROCESSES_MAX,
        share: Share::Usual,
    })
}

/// A gateway that runs.
pub(crate) struct RunningGateway {
    launcher: Arc<dyn Launcher>,
    runtime_dir: PathBuf,
}

impl RunningGateway {
    /// Tells it something.
    ///
    /// # Errors
    /// `WrongState` when it refuses, or does not run; `Internal` when it does not answer.
    pub(crate) fn ask(&self, request: &Request) -> Result<Status, Failure> {
        self.connect()?.ask(request, ANSWER)
    }

    /// Has it hold, and waits as long as that may take with the sessions that there are.
    ///
    /// # Errors
    /// As [`RunningGateway::ask`].
    pub(crate) fn hold(&self, hold: Hold) -> Result<Status, Failure> {
        let mut control = self.connect()?;
        let status = control.ask(&Request::Status, ANSWER)?;
        let connections = status.sessions.saturating_sub(status.parked);
        let grace = Duration::from_millis(hold.grace_ms);
        control.ask(&Request::Hold(hold), ANSWER + grace + parking_time_max(connections))
    }

    /// A way to it.
    ///
    /// # Errors
    /// `WrongState` when it does not run.
    pub(crate) fn connect(&self) -> Result<Control, Failure> {
        Control::connect(&control(&self.runtime_dir), ANSWER)
    }

    /// Ends it, and all sessions: clients are told, if it answers.
    ///
    /// # Errors
    /// If it does not end even when killed.
    pub(crate) fn end(&self) -> Result<(), Failure> {
        let _ = self.ask(&Request::End);
        end(&*self.launcher, &self.runtime_dir, END)
    }

    /// Waits until it listens; says why if it does not.
    fn wait_ready(
        &self,
        spec: &GatewaySpec,
        mut process: Option<Box<dyn Process>>,
    ) -> Result<(), Failure> {
        let deadline = SystemClock.elapsed() + READY;
        loop {
            let Err(failure) = self.ask(&Request::Status) else { return Ok(()) };
            let runs = process.as_mut().is_some_and(|process| process.running());
            if runs && SystemClock.elapsed() < deadline {
                SystemClock.sleep(Duration::from_millis(5));
                continue;
            }
            end(&*self.launcher, &self.runtime_dir, END)?;
            spec.addresses.iter().try_for_each(|address| check_port(*address, spec.port))?;
            return Err(Failure::internal(format!(
                "the gateway of '{}' did not start: {}; it said: {}",
                spec.name,
                failure.message,
                bounded_log::tail(&spec.log_file, 0, SAID_BYTES).trim()
            )));
        }
    }
}
