//! A plain PostgreSQL server on files of its own: what virtual databases are compared with.

use anyhow::{Result, bail};
use offshoot_os::process::{self, Child, Signal, Sink};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, Source};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest a server may take to start or stop.
const SECONDS_MAX: u64 = 120;

/// It is killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    uri: String,
    log: PathBuf,
}

impl Server {
    /// Starts one on a copy of the source's files, with settings; it may not answer yet.
    ///
    /// # Errors
    /// What cannot be started.
    pub fn spawn<'a>(
        source: &Source,
        directory: &Path,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Server> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = directory.with_extension("log");
        let mut spec = source
            .program("postgres")
            .arg("-D")
            .arg(directory)
            .args(["-c", &format!("port={port}")])
            .stderr(Sink::File(log.clone()))
            .die_with_parent(true);
        for (name, value) in settings {
            spec = spec.args(["-c", &format!("{name}={value}")]);
        }
        let password = source.password();
        let uri = format!("postgresql://postgres:{password}@127.0.0.1:{port}/postgres");
        Ok(Server { child: spec.spawn()?, uri, log })
    }

    /// The id of its first process.
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Where it is reached; with the password.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Waits until it answers.
    ///
    /// # Errors
    /// The end of its log, when it does not.
    pub fn wait_ready(&self) -> Result<()> {
        let deadline = SystemClock.elapsed() + Duration::from_secs(SECONDS_MAX);
        loop {
            let error = match Database::connect(&self.uri) {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if SystemClock.elapsed() > deadline {
                let log = process::last_lines(&self.log, 5).join("\n");
                return Err(error.context(format!("a copy does not start; its log:\n{log}")));
            }
            SystemClock.sleep(Duration::from_millis(50));
        }
    }

    /// Stops it.
    ///
    /// # Errors
    /// When it does not stop in time.
    pub fn stop(mut self) -> Result<()> {
        self.child.signal(Signal::Interrupt)?;
        if self.child.wait_timeout(Duration::from_secs(SECONDS_MAX))?.is_none() {
            bail!("a server did not stop in time");
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill_group();
    }
}
