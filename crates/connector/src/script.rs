//! Running what users have written for their VDBs.

use crate::Server;
use offshoot_domain::Secret;
use offshoot_types::{Failure, Remote};
use std::path::PathBuf;
use std::time::Duration;

/// What to run in a VDB.
#[derive(Debug, Clone)]
pub struct Script {
    /// Statements in the database's language. They may hold passwords.
    pub text: Secret,
    /// The database to run it in; none: the first that is no template.
    pub database: Option<String>,
    /// How long it may take.
    pub time_limit: Duration,
}

/// A program to run for a VDB.
#[derive(Debug, Clone)]
pub struct Program {
    /// A name for people.
    pub name: String,
    /// What it is: its first line names who reads it, as in `#!/bin/sh`. It may hold passwords.
    pub text: Secret,
    /// What it reads on its standard input.
    pub input: Vec<u8>,
    /// The version of the database.
    pub version: String,
    /// How it reaches the VDB; none: there is no server that it could reach.
    pub login: Option<Login>,
    /// What else its environment tells it.
    pub environment: Vec<(&'static str, String)>,
    /// The ports of other hosts that it may connect to.
    pub reaches: Vec<Remote>,
    /// The user and the group that it runs as; none: the engine's own.
    pub owner: Option<(u32, u32)>,
    /// A directory for this program alone. Made when missing.
    pub runtime_dir: PathBuf,
    /// How long it may take.
    pub time_limit: Duration,
    /// How much of its standard output is kept; none: that is what it says.
    pub output_bytes_max: Option<usize>,
}

/// How a program reaches a VDB: as its user.
#[derive(Debug, Clone)]
pub struct Login {
    /// The port on loopback.
    pub port: u16,
    /// The password.
    pub password: Secret,
    /// The database to open first; none: as the database's programs choose.
    pub database: Option<String>,
}

/// Who follows the course of a script or program.
pub trait ScriptCourse {
    /// Called every 100 ms or so.
    ///
    /// # Errors
    /// It is to end; nothing that a script did stays.
    fn check(&mut self) -> Result<(), Failure>;

    /// What it says, one message at a time, without control characters.
    fn heard(&mut self, message: String);

    /// Called when the script has run and its transaction is about to be committed: with this mark,
    /// [`ScriptRunner::has_committed`] tells later whether it was. Not called where nothing was changed.
    ///
    /// # Errors
    /// The script is to end; nothing of it stays.
    fn committing(&mut self, mark: &str) -> Result<(), Failure>;
}

/// Runs scripts in VDBs.
pub trait ScriptRunner: Send + Sync {
    /// Runs a script as a VDB's user could, with the user's rights, as one transaction unless the script itself ends it. What
    /// an earlier run has left running is ended first. Other sessions of the server go on.
    ///
    /// # Errors
    /// `InvalidInput` for what the database refuses, with where, and for what takes too long or answers too much; those of
    /// the course; when the server cannot be reached. Unless the script ended its transaction itself, nothing of it stays.
    fn run(
        &self,
        server: &dyn Server,
        script: &Script,
        course: &mut dyn ScriptCourse,
    ) -> Result<(), Failure>;

    /// Whether the transaction that was about to be committed has been, also if the server has ended since. It is not
    /// running any more when this returns.
    ///
    /// # Errors
    /// When the server does not answer.
    fn has_committed(&self, server: &dyn Server, mark: &str) -> Result<bool, Failure>;

    /// Runs a program, confined: it sees the system's programs and those of the database, and reaches the VDB. What an
    /// earlier run has left is ended first; nothing of this one is left. Returns what is kept of its output.
    ///
    /// # Errors
    /// `HostUnprepared` where programs are not confined; `InvalidInput` for one that fails, takes too long or writes too
    /// much; those of the course.
    fn run_program(
        &self,
        program: &Program,
        course: &mut dyn ScriptCourse,
    ) -> Result<Vec<u8>, Failure>;
}
