//! An engine in a process of its own, spoken to through the command line.

use crate::Scratch;
use crate::scratch::processes_at;
use anyhow::{Context, Result};
use offshoot_os::process::{self, Child, Line, ProcessError, Signal, Sink, Spec};
use offshoot_os::{Clock, SystemClock};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest an engine may take to say that it is ready.
const READY_SECONDS_MAX: u64 = 180;
/// Longest an engine may take to stop cleanly.
const STOP_SECONDS_MAX: u64 = 120;
/// Longest a command may take unless told otherwise.
const COMMAND_SECONDS_MAX: u64 = 240;

/// How to run an engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The `offshoot` binary.
    pub binary: PathBuf,
    /// What the shared block cache may hold, as `--cache-size` takes it.
    pub cache_size: String,
    /// Where it listens, as `--listen` takes it.
    pub listen: String,
    /// More arguments of `serve`.
    pub arguments: Vec<String>,
    /// Variables of the environment for the engine alone.
    pub env: Vec<(String, String)>,
    /// Directories of programs to put before those in `PATH`, for engine and commands.
    pub path_before: Vec<PathBuf>,
}

impl EngineOptions {
    /// An engine of a binary, with a cache of 256 MiB.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        EngineOptions {
            binary: binary.into(),
            cache_size: "256MiB".into(),
            listen: "127.0.0.1:0".into(),
            arguments: Vec::new(),
            env: Vec::new(),
            path_before: Vec::new(),
        }
    }
}

/// A command that failed, as the contract of the command line says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandError {
    /// The command.
    pub command: String,
    /// Its exit code: 1 failed, 2 wrong usage.
    pub exit_code: i32,
    /// The kind of error, for scripts; empty if the output did not follow the contract.
    pub code: String,
    /// What failed and why.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({})", self.command, self.message, self.code)?;
        if !self.hint.is_empty() {
            write!(f, "\n  {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for CommandError {}

/// An engine process. It is stopped when dropped.
#[derive(Debug)]
pub struct Engine {
    /// How it runs; changes take effect at the next start.
    pub options: EngineOptions,
    pool: PathBuf,
    log: PathBuf,
    process: Option<Child>,
}

impl Engine {
    /// Starts an engine on a fresh pool below `scratch`.
    ///
    /// # Errors
    /// If it did not get ready, with the last lines of its log.
    pub fn start(scratch: &Scratch, options: EngineOptions) -> Result<Self> {
        let mut engine = Engine::prepare(scratch.path().join("pool"), options);
        engine.restart()?;
        Ok(engine)
    }

    /// An engine that is not started yet, on a pool directory.
    pub fn prepare(pool: PathBuf, options: EngineOptions) -> Self {
        let log = pool.with_extension("log");
        Engine { options, pool, log, process: None }
    }

    /// Starts the process again after [`Engine::stop`] or [`Engine::kill`].
    ///
    /// # Errors
    /// If it did not get ready, with the last lines of its log.
    pub fn restart(&mut self) -> Result<()> {
        anyhow::ensure!(self.process.is_none(), "the engine runs already");
        self.launch(&[])
    }

    /// Starts another process to replace the running one, which leaves its VDBs running.
    ///
    /// # Errors
    /// If it did not get ready, or the one before did not end well.
    pub fn take_over(&mut self) -> Result<()> {
        let mut before = self.process.take().context("an engine that runs")?;
        self.launch(&["--takeover"])?;
        let status = before.wait_timeout(Duration::from_secs(STOP_SECONDS_MAX))?;
        anyhow::ensure!(status.is_some_and(|status| status.success()), "it ended: {status:?}");
        Ok(())
    }

    /// Kills it as `kill -9` does and starts the next one at once, as a service manager would: the one before may still
    /// be ending. From the kill until the next is ready.
    ///
    /// # Errors
    /// As [`Engine::restart`].
    pub fn kill_and_restart(&mut self) -> Result<Duration> {
        let mut before = self.process.take().context("an engine that runs")?;
        let began = SystemClock.elapsed();
        before.signal(Signal::Kill)?;
        self.launch(&[])?;
        let took = SystemClock.elapsed() - began;
        before.wait_timeout(Duration::from_secs(20))?.context("the engine outlived SIGKILL")?;
        Ok(took)
    }

    fn launch(&mut self, arguments: &[&str]) -> Result<()> {
        let mut spec = self
            .spec()
            .arg("serve")
            .arg("--pool")
            .arg(&self.pool)
            .args(["--listen", &self.options.listen, "--cache-size", &self.options.cache_size])
            .args(&self.options.arguments)
            .args(arguments)
            .stdout(Sink::Pipe)
            .stderr(Sink::File(self.log.clone()))
            // Not where the engines of this user have theirs.
            .env("OFFSHOOT_SECRET_KEY_FILE", self.pool.with_extension("key"))
            .die_with_parent(true);
        for (name, value) in &self.options.env {
            spec = spec.env(name, value);
        }
        let mut child = spec.spawn()?;
        let lines = child.take_stdout_lines().context("the engine's output")?;
        let clock = SystemClock;
        let deadline = clock.elapsed() + Duration::from_secs(READY_SECONDS_MAX);
        let mut ready = false;
        while !ready && clock.elapsed() < deadline {
            match lines.next_within(Duration::from_millis(200)) {
                Line::Text(line) => ready = line.starts_with("ready"),
                Line::Nothing => {}
                Line::End => break,
            }
        }
        if ready {
            self.process = Some(child);
            return Ok(());
        }
        child.kill_group();
        anyhow::bail!("the engine did not get ready; its log:\n{}", self.log_end(10));
    }

    /// Stops it cleanly, as SIGTERM does, and returns its exit code.
    ///
    /// # Errors
    /// When it does not end within two minutes; it is killed then.
    pub fn stop(&mut self) -> Result<i32> {
        let Some(mut child) = self.process.take() else { return Ok(0) };
        child.signal(Signal::Terminate)?;
        let Some(status) = child.wait_timeout(Duration::from_secs(STOP_SECONDS_MAX))? else {
            child.kill_group();
            anyhow::bail!("the engine did not stop; its log:\n{}", self.log_end(10));
        };
        Ok(status.code().unwrap_or(-1))
    }

    /// Kills it as `kill -9` does: the process alone, not what it started.
    ///
    /// # Errors
    /// When it outlives that.
    pub fn kill(&mut self) -> Result<()> {
        let Some(mut child) = self.process.take() else { return Ok(()) };
        child.signal(Signal::Kill)?;
        child.wait_timeout(Duration::from_secs(20))?.context("the engine outlived SIGKILL")?;
        Ok(())
    }

    /// Kills it and all that works in its pool at the same moment, and leaves its files, as the loss of its host does. What it
    /// had mounted stays, and answers nobody, until it is started again or its scratch directory is removed.
    ///
    /// # Errors
    /// When something outlives that.
    pub fn lose_host(&mut self) -> Result<()> {
        let processes = processes_at(&self.pool);
        // All together: some wait for answers that only others can give.
        for process in &processes {
            // It may have ended on its own.
            let _ = process.signal(Signal::Kill);
        }
        self.kill()?;
        for process in processes {
            let ended = process.wait_end(Duration::from_secs(20));
            anyhow::ensure!(ended, "a process of the engine outlived SIGKILL: {process:?}");
        }
        Ok(())
    }

    /// Waits until it has ended on its own; returns whether it has within `limit`.
    pub fn wait_end(&mut self, limit: Duration) -> bool {
        let Some(child) = &mut self.process else { return true };
        if matches!(child.wait_timeout(limit), Ok(Some(_))) {
            self.process = None;
        }
        self.process.is_none()
    }

    /// Whether the process runs.
    pub fn running(&mut self) -> bool {
        self.process.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Its pid while it runs.
    pub fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(Child::pid)
    }

    /// Runs a command with `--json` and returns the document it prints.
    ///
    /// # Errors
    /// What the command reports as failed; also output that is not one JSON document.
    pub fn command<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Value, CommandError> {
        self.command_within(arguments, &[], Duration::from_secs(COMMAND_SECONDS_MAX))
    }

    /// As [`Engine::command`], with variables of the environment and a limit of its own.
    ///
    /// # Errors
    /// As [`Engine::command`]; the command is killed at the limit.
    pub fn command_within<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        env: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Value, CommandError> {
        let set = |spec: Spec| env.iter().fold(spec, |spec, (name, value)| spec.env(name, value));
        self.execute(arguments, set, limit)
    }

    /// As [`Engine::command`], with a file as its stdin: for what no list of processes is to show.
    ///
    /// # Errors
    /// As [`Engine::command`].
    pub fn command_with_stdin<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        file: &Path,
    ) -> Result<Value, CommandError> {
        let limit = Duration::from_secs(COMMAND_SECONDS_MAX);
        self.execute(arguments, |spec| spec.stdin(file), limit)
    }

    fn execute<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
        with: impl FnOnce(Spec) -> Spec,
        limit: Duration,
    ) -> Result<Value, CommandError> {
        let arguments: Vec<_> = arguments.into_iter().map(|a| a.as_ref().to_owned()).collect();
        let words: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
        let command = format!("offshoot {}", words.join(" "));
        let spec = self.spec().args(&arguments).arg("--json").arg("--pool").arg(&self.pool);
        match process::run(&with(spec), limit) {
            Ok(output) => read_output(command, &output),
            Err(error) => Err(CommandError {
                command,
                exit_code: if matches!(error, ProcessError::TimedOut { .. }) { 124 } else { -1 },
                code: String::new(),
                message: format!("{error}; the engine's log:\n{}", self.log_end(5)),
                hint: String::new(),
            }),
        }
    }

    /// Runs a command and reads the document it prints as one of the API's types.
    ///
    /// # Errors
    /// As [`Engine::command`], or when the document has another shape.
    pub fn ask<T: DeserializeOwned, A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<T> {
        let document = self.command(arguments)?;
        serde_json::from_value(document.clone()).with_context(|| format!("reading {document}"))
    }

    /// Its pool directory.
    pub fn pool(&self) -> &Path {
        &self.pool
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log.
    pub fn log_end(&self, count: usize) -> String {
        process::last_lines(&self.log, count).join("\n")
    }

    fn spec(&self) -> Spec {
        let spec = Spec::new(&self.options.binary);
        if self.options.path_before.is_empty() {
            return spec;
        }
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let all = self.options.path_before.iter().cloned().chain(std::env::split_paths(&inherited));
        match std::env::join_paths(all) {
            Ok(path) => spec.env("PATH", path),
            Err(_) => spec,
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.stop().is_err() {
            // It was killed; the scratch directory removes its mounts and children.
        }
    }
}

fn read_output(command: String, output: &process::Output) -> Result<Value, CommandError> {
    let text = output.stdout_text();
    let exit_code = output.status.code().unwrap_or(-1);
    let document: Result<Value, _> = serde_json::from_str(&text);
    match document {
        Ok(document) if exit_code == 0 => Ok(document),
        Ok(document) if document["error"].is_object() => {
            let field =
                |name: &str| document["error"][name].as_str().unwrap_or_default().to_owned();
            Err(CommandError {
                command,
                exit_code,
                code: field("code"),
                message: field("message"),
                hint: field("hint"),
            })
        }
        _ => Err(CommandError {
            command,
            exit_code,
            code: String::new(),
            message: format!("stdout: {}; stderr: {}", text.trim(), output.stderr_text()),
            hint: String::new(),
        }),
    }
}
