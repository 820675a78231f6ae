//! Child processes: the only place that starts, waits for and signals them.
//!
//! A [`Spec`] says what to run; [`Spec::spawn`] gives a [`Child`], [`run`] waits for it and returns
//! what it printed. Processes that this process did not start (left by a killed engine) are
//! identified by [`ProcessId`]: pid *and* start time, so that a reused pid is never signalled.
//!
//! Children get a null stdin and, unless told otherwise, a session of their own: a signal sent to
//! the engine's terminal never reaches a database server, and [`Child::kill_group`] reaches all
//! processes that the child started.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::{Clock, SystemClock};

mod group;
mod identity;
mod launch;
mod preload;
mod reach;
mod user;

pub use group::lookup_group;
pub use identity::{ProcessId, boot_id, is_at_work};
pub use preload::{PRELOAD, Preload};
pub use reach::{Reach, SYSTEM_DIRS};
pub use user::User;

/// Most bytes kept of each stream by [`run`]; the rest is read and dropped.
pub const CAPTURE_BYTES_MAX: usize = 16 << 20;

/// Most bytes of one line of a child's stream.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Bytes in a widened pipe: what an ordinary user may ask for.
const PIPE_LEN: usize = 1 << 20;

/// How long a killed child may take to end.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(30);

/// How a child could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The program could not be started (missing, no permission, no such user …).
    #[error("cannot start {program}: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// Waiting, signalling or reading failed.
    #[error("lost track of {program}: {source}")]
    Control {
        /// The program.
        program: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// It ran longer than allowed and was killed.
    #[error("{program} did not end within {} ms and was stopped", after.as_millis())]
    TimedOut {
        /// The program.
        program: String,
        /// How long it was allowed to run.
        after: Duration,
        /// What it had written to stderr.
        stderr: String,
    },
}

/// Where a stream of a child goes.
#[derive(Debug, Clone, Default)]
pub enum Sink {
    /// Thrown away.
    #[default]
    Null,
    /// To a pipe: see [`Child::take_stdout`] and [`Child::take_stdout_lines`].
    Pipe,
    /// Appended to a file, which is created with mode 0600 (opened with the rights of this
    /// process, not of the child's user).
    File(PathBuf),
    /// To a descriptor that is open already.
    Open(Arc<OwnedFd>),
}

/// Where a child's stdin comes from.
#[derive(Debug, Clone)]
enum Stdin {
    Nothing,
    File(PathBuf),
    Open(Arc<OwnedFd>),
}

/// The signals the project sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM (PostgreSQL: smart shutdown).
    Terminate,
    /// SIGINT (PostgreSQL: fast shutdown).
    Interrupt,
    /// SIGQUIT (PostgreSQL: immediate shutdown).
    Quit,
    /// SIGHUP (PostgreSQL: reload of the configuration).
    Hangup,
    /// SIGUSR1 (PostgreSQL: look for the promote file).
    User1,
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
}

impl Signal {
    fn raw(self) -> i32 {
        match self {
            Signal::Terminate => libc::SIGTERM,
            Signal::Interrupt => libc::SIGINT,
            Signal::Quit => libc::SIGQUIT,
            Signal::Hangup => libc::SIGHUP,
            Signal::User1 => libc::SIGUSR1,
            Signal::Kill => libc::SIGKILL,
            Signal::Stop => libc::SIGSTOP,
            Signal::Continue => libc::SIGCONT,
        }
    }
}

/// What to run. Built by chaining, as `Spec::new(bin).arg("-l").env("LC_ALL", "C")`.
#[derive(Clone)]
pub struct Spec {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, Option<OsString>)>,
    clear_env: bool,
    user: Option<User>,
    cwd: Option<PathBuf>,
    stdin: Stdin,
    stdout: Sink,
    stderr: Sink,
    new_session: bool,
    die_with_parent: bool,
    memory_bytes_max: Option<u64>,
    reach: Option<Reach>,
    preload: Option<Preload>,
}

impl std::fmt::Debug for Spec {
    /// Names the variables without their values, which may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Spec")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Spec {
    /// A program by path (or by name, looked up in `PATH`).
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Spec {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            clear_env: false,
            user: None,
            cwd: None,
            stdin: Stdin::Nothing,
            stdout: Sink::Null,
            stderr: Sink::Null,
            new_session: true,
            die_with_parent: false,
            memory_bytes_max: None,
            reach: None,
            preload: None,
        }
    }

    /// The same command as arguments of another program, which is to become it.
    pub fn behind<A: AsRef<OsStr>>(
        mut self,
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let first = args.into_iter().map(|arg| arg.as_ref().to_owned());
        let command = std::mem::replace(&mut self.program, program.into());
        self.args.splice(0..0, first.chain([command.into_os_string()]));
        self
    }

    /// Adds an argument. Never a secret: everybody on the host can read arguments.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments. Never a secret.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes a variable that would be inherited.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), None));
        self
    }

    /// Inherits no environment but `PATH`.
    pub fn clear_env(mut self) -> Self {
        self.clear_env = true;
        self
    }

    /// Runs as another user (only root may ask for it).
    pub fn user(mut self, user: Option<User>) -> Self {
        self.user = user;
        self
    }

    /// Runs in a directory.
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = Some(dir.into());
        self
    }

    /// The file that it reads on stdin, opened with the rights of this process; it is empty unless told.
    pub fn stdin(mut self, file: impl Into<PathBuf>) -> Self {
        self.stdin = Stdin::File(file.into());
        self
    }

    /// The descriptor, a socket for example, that it has as stdin.
    pub fn stdin_fd(mut self, fd: OwnedFd) -> Self {
        self.stdin = Stdin::Open(Arc::new(fd));
        self
    }

    /// Where stdout goes; nowhere unless told.
    pub fn stdout(mut self, sink: Sink) -> Self {
        self.stdout = sink;
        self
    }

    /// Where stderr goes; nowhere unless told.
    pub fn stderr(mut self, sink: Sink) -> Self {
        self.stderr = sink;
        self
    }

    /// Whether the child leads a session and process group of its own (the default).
    pub fn new_session(mut self, yes: bool) -> Self {
        self.new_session = yes;
        self
    }

    /// Asks the kernel to kill the child (SIGKILL) as soon as this process dies. Not for database
    /// servers that must outlive a crash of the engine.
    pub fn die_with_parent(mut self, yes: bool) -> Self {
        self.die_with_parent = yes;
        self
    }

    /// How much memory the child may address, in bytes; what it asks for beyond that it does not get.
    pub fn memory_bytes_max(mut self, bytes: u64) -> Self {
        self.memory_bytes_max = Some(bytes);
        self
    }

    /// What the child can reach, whatever its user may do; a child of root has no rights of root but over files.
    /// A kernel without Landlock (before Linux 5.13) does not hold it back.
    pub fn reaches_only(mut self, reach: Reach) -> Self {
        self.reach = Some(reach);
        self
    }

    /// Names a library for the program that a cell is built around, and lets descriptors be inherited: the program that
    /// builds the cell loads nothing.
    pub fn preload(mut self, preload: Option<Preload>) -> Self {
        self.preload = preload;
        let Some(preload) = &self.preload else { return self };
        let (library, numbers) = (preload.library.clone(), preload.numbers());
        let variable = preload.variable;
        self.env(PRELOAD, library).env(variable, numbers)
    }

    /// The program's name as errors show it.
    pub fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// Starts the child. Takes about a millisecond, however large this process is.
    ///
    /// # Errors
    /// [`ProcessError::Spawn`].
    pub fn spawn(&self) -> Result<Child, ProcessError> {
        let failed = |source| ProcessError::Spawn { program: self.name(), source };
        let (prepared, ends) = launch::Prepared::new(self).map_err(failed)?;
        // The kernel's "parent died" signal is tied to the *thread* that started the child, so such
        // children are started by a thread that lives as long as the process.
        let started = match self.die_with_parent {
            true => spawner::start(prepared, ends),
            false => prepared.start(ends),
        };
        Child::adopt(self.name(), started.map_err(failed)?, self.new_session)
    }
}

/// The thread that starts children which must die with this process.
mod spawner {
    use std::io;
    use std::sync::mpsc;

    use parking_lot::Mutex;

    use super::launch::{Ends, Prepared, Started};

    type Request = (Prepared, Ends, mpsc::Sender<io::Result<Started>>);
    static REQUESTS: Mutex<Option<mpsc::Sender<Request>>> = Mutex::new(None);

    pub(super) fn start(prepared: Prepared, ends: Ends) -> io::Result<Started> {
        let (answer, result) = mpsc::channel();
        let gone = || io::Error::other("the thread that starts children is gone");
        requests()?.send((prepared, ends, answer)).map_err(|_| gone())?;
        result.recv().map_err(|_| gone())?
    }

    /// Where the thread takes its requests; the first one starts it.
    fn requests() -> io::Result<mpsc::Sender<Request>> {
        let mut requests = REQUESTS.lock();
        if let Some(there) = &*requests {
            return Ok(there.clone());
        }
        let (sender, receiver) = mpsc::channel::<Request>();
        std::thread::Builder::new().name("children".to_owned()).spawn(move || {
            for (prepared, ends, answer) in receiver {
                let _ = answer.send(prepared.start(ends));
            }
        })?;
        Ok(requests.insert(sender).clone())
    }
}

/// A child of this process. Dropping it neither stops nor reaps it.
#[derive(Debug)]
pub struct Child {
    program: String,
    pid: i32,
    pidfd: OwnedFd,
    /// How it ended, once it has been reaped; from then on its pid is meaningless.
    status: Option<ExitStatus>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    leads_group: bool,
}

/// What a finished child left.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Its stdout, at most [`CAPTURE_BYTES_MAX`].
    pub stdout: Vec<u8>,
    /// Its stderr, at most [`CAPTURE_BYTES_MAX`].
    pub stderr: Vec<u8>,
}

impl Output {
    /// Whether it ended with exit code 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// Stdout as text, without invalid UTF-8.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Stderr as text, trimmed, without invalid UTF-8.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }
}

impl Child {
    fn adopt(
        program: String,
        started: launch::Started,
        leads_group: bool,
    ) -> Result<Self, ProcessError> {
        let pid = started.pid;
        let pidfd = rustix::process::Pid::from_raw(pid)
            .ok_or(io::Error::from_raw_os_error(libc::ESRCH))
            .and_then(|pid| {
                rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
                    .map_err(io::Error::from)
            });
        match pidfd {
            Ok(pidfd) => Ok(Child {
                program,
                pid,
                pidfd,
                status: None,
                stdout: started.stdout.map(ChildStdout::from),
                stderr: started.stderr.map(ChildStderr::from),
                leads_group,
            }),
            Err(source) => {
                let mut status = 0;
                // SAFETY: plain system calls on a child that has not been reaped.
                unsafe {
                    libc::kill(pid, libc::SIGKILL);
                    libc::waitpid(pid, &mut status, 0);
                }
                Err(ProcessError::Control { program, source })
            }
        }
    }

    /// Its pid.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Its pid and start time, to be written down; `None` when it has ended.
    pub fn process_id(&self) -> Option<ProcessId> {
        ProcessId::of(self.pid())
    }

    /// The same, also when it has ended; `None` when it has been reaped.
    pub fn former_process_id(&self) -> Option<ProcessId> {
        ProcessId::of_child(self.pid())
    }

    /// Its stdout, if the spec said [`Sink::Pipe`]; once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Its stderr, if the spec said [`Sink::Pipe`]; once.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// Its stdout line by line, read by a thread; once.
    pub fn take_stdout_lines(&mut self) -> Option<Lines> {
        self.take_stdout().and_then(Lines::read)
    }

    /// Its stderr line by line, read by a thread; once. A carriage return ends a line too, as
    /// progress displays use it.
    pub fn take_stderr_lines(&mut self) -> Option<Lines> {
        self.take_stderr().and_then(Lines::read)
    }

    /// How it ended, when it has.
    ///
    /// # Errors
    /// [`ProcessError::Control`].
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, ProcessError> {
        if self.status.is_none() {
            let mut raw = 0;
            // SAFETY: plain system call on a child that has not been reaped.
            match unsafe { libc::waitpid(self.pid, &mut raw, libc::WNOHANG) } {
                0 => {}
                pid if pid == self.pid => self.status = Some(ExitStatus::from_raw(raw)),
                _ => return Err(self.lost(io::Error::last_os_error())),
            }
        }
        Ok(self.status)
    }

    /// Waits until it ends, at most `timeout`; `None` when it still runs.
    ///
    /// # Errors
    /// [`ProcessError::Control`].
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<ExitStatus>, ProcessError> {
        if let Some(status) = self.try_wait()? {
            return Ok(Some(status));
        }
        identity::wait_pidfd(&self.pidfd, timeout).map_err(|source| self.lost(source))?;
        self.try_wait()
    }

    /// Sends a signal to the child alone. A child that has ended is not an error.
    ///
    /// # Errors
    /// [`ProcessError::Control`].
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        identity::signal_pidfd(&self.pidfd, signal).map_err(|source| self.lost(source))
    }

    /// Kills the child and every process of its group (SIGKILL), then reaps the child; gives up on
    /// one that is stuck in the kernel after [`KILL_TIMEOUT`].
    pub fn kill_group(&mut self) {
        if matches!(self.try_wait(), Ok(None)) {
            // SAFETY: the child is not reaped, so its pid still names it and its group.
            unsafe {
                if self.leads_group {
                    libc::kill(-self.pid, libc::SIGKILL);
                }
                libc::kill(self.pid, libc::SIGKILL);
            }
            let _ = self.wait_timeout(KILL_TIMEOUT);
        }
    }

    /// Sends SIGTERM, then kills the group when it has not ended within `grace`.
    ///
    /// # Errors
    /// [`ProcessError::Control`].
    pub fn terminate(&mut self, grace: Duration) -> Result<ExitStatus, ProcessError> {
        self.signal(Signal::Terminate)?;
        if let Some(status) = self.wait_timeout(grace)? {
            return Ok(status);
        }
        self.kill_group();
        self.try_wait()?.ok_or_else(|| self.lost(io::Error::other("it outlived SIGKILL")))
    }

    fn lost(&self, source: io::Error) -> ProcessError {
        ProcessError::Control { program: self.program.clone(), source }
    }
}

/// The lines of a child's stream, read by a thread that ends with the stream.
#[derive(Debug)]
pub struct Lines {
    receiver: Receiver<String>,
}

/// What [`Lines::next_within`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// Nothing within the given time.
    Nothing,
    /// The stream has ended.
    End,
}

impl Lines {
    /// Reads a stream of a child. Without a thread to do so, it is closed: the child is told when it writes.
    pub fn read(stream: impl Read + Send + 'static) -> Option<Self> {
        let (sender, receiver) = mpsc::sync_channel(1024);
        let read = move || {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            // Whoever writes may never end a line: the rest comes as lines of its own.
            while let Ok(count) = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)
            {
                let text = String::from_utf8_lossy(&line).into_owned();
                for part in text.split(['\n', '\r']).filter(|part| !part.is_empty()) {
                    if sender.send(part.to_owned()).is_err() {
                        // Nobody listens; keep the pipe empty so that the child never blocks.
                        let _ = io::copy(&mut reader, &mut io::sink());
                        return;
                    }
                }
                line.clear();
                if count == 0 {
                    return;
                }
            }
        };
        std::thread::Builder::new().spawn(read).ok()?;
        Some(Lines { receiver })
    }

    /// The next line that is not empty, waiting at most `timeout`.
    pub fn next_within(&self, timeout: Duration) -> Line {
        match self.receiver.recv_timeout(timeout) {
            Ok(text) => Line::Text(text),
            Err(RecvTimeoutError::Timeout) => Line::Nothing,
            Err(RecvTimeoutError::Disconnected) => Line::End,
        }
    }
}

/// Lets a pipe hold more, so that reader and writer wake each other less often. Best effort: a user
/// has a limit for all pipes together.
pub fn widen_pipe(pipe: &impl std::os::fd::AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_LEN);
}

/// Runs a program to its end and returns how it ended and what it printed. Its streams are captured
/// whatever the spec says; on a timeout it and its group are killed.
///
/// # Errors
/// Any [`ProcessError`]; an exit code other than 0 is not an error here.
pub fn run(spec: &Spec, timeout: Duration) -> Result<Output, ProcessError> {
    let spec = spec.clone().stdout(Sink::Pipe).stderr(Sink::Pipe);
    let mut child = spec.spawn()?;
    let stdout = child.take_stdout().map(capture);
    let stderr = child.take_stderr().map(capture);
    let status = child.wait_timeout(timeout)?;
    if status.is_none() {
        child.kill_group();
    }
    // A grandchild that left the group may hold the pipe open: do not wait for it for ever.
    let collect = |receiver: Option<Receiver<Vec<u8>>>| {
        let mut bytes = Vec::new();
        let Some(receiver) = receiver else { return bytes };
        let deadline = SystemClock.elapsed() + Duration::from_secs(2);
        while let Ok(part) = receiver.recv_timeout(deadline.saturating_sub(SystemClock.elapsed())) {
            bytes.extend_from_slice(&part);
        }
        bytes
    };
    let (stdout, stderr) = (collect(stdout), collect(stderr));
    match status {
        Some(status) => Ok(Output { status, stdout, stderr }),
        None => Err(ProcessError::TimedOut {
            program: spec.name(),
            after: timeout,
            stderr: String::from_utf8_lossy(&stderr).trim().to_owned(),
        }),
    }
}

fn capture(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let collect = move || {
        let (mut buffer, mut total) = (vec![0; 64 << 10], 0);
        while let Ok(count) = stream.read(&mut buffer) {
            if count == 0 {
                break;
            }
            if total < CAPTURE_BYTES_MAX {
                total += count;
                let _ = sender.send(buffer[..count].to_vec());
            }
        }
    };
    // Without a thread, the stream is closed and nothing of it is known.
    if let Err(error) = std::thread::Builder::new().spawn(collect) {
        tracing::warn!(%error, "the output of a program is not collected");
    }
    receiver
}

/// How a status reads in an error: `exit code 3` or `signal 9`.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

/// The last lines of a log file, at most `count`, read from its last 64 KiB; empty when it cannot
/// be read.
pub fn last_lines(path: &Path, count: usize) -> Vec<String> {
    use std::io::{Seek, SeekFrom};
    let Ok(mut file) = File::open(path) else { return Vec::new() };
    let length = file.metadata().map(|meta| meta.len()).unwrap_or(0);
    let mut bytes = Vec::new();
    let start = length.saturating_sub(64 << 10);
    if file.seek(SeekFrom::Start(start)).is_err() || file.read_to_end(&mut bytes).is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].iter().map(|line| (*line).to_owned()).collect()
}

fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::other("a name contains a zero byte"))
}

#[cfg(test)]
mod tests;
