//! Running what users have written for their VDBs.

use crate::Server;
use offshoot_domain::Secret;
use offshoot_types::Failure;
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

/// Who follows the course of a script.
pub trait ScriptCourse {
    /// Called every 100 ms or so.
    ///
    /// # Errors
    /// The script is to end; nothing of it stays.
    fn check(&mut self) -> Result<(), Failure>;

    /// What the script says, one message at a time, without control characters.
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
}
