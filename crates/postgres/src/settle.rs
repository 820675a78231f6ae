//! Cuts a promoted copy's ties with its source.
//!
//! After it, nothing in the image connects to production or waits for something of production's:
//! subscriptions are disabled and detached from their slots, replication slots dropped, foreign
//! schedulers' jobs off, prepared transactions rolled back when asked; the source's logins are
//! disabled (and remembered, so that a VDB can have them back), the VDB role exists.

use offshoot_types::Failure;

use crate::data_dir::DataDir;
use crate::server::Server;

/// The superuser role of a VDB.
pub const VDB_ROLE: &str = "offshoot";

/// File in the data directory that remembers which roles of the source could log in (JSON list).
pub const SOURCE_LOGINS_FILE: &str = "offshoot.source_logins.json";

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettleReport {
    /// Roles whose login was disabled.
    pub disabled_logins: Vec<String>,
    /// Subscriptions disabled, as `database.subscription`.
    pub disabled_subscriptions: Vec<String>,
    /// Replication slots dropped.
    pub dropped_slots: Vec<String>,
    /// Scheduled jobs of extensions disabled, as `database: what`.
    pub disabled_jobs: Vec<String>,
    /// What could not be done although the image is safe, each in a sentence.
    pub warnings: Vec<String>,
}

/// Settles a promoted server that was started with [`crate::recovery::run`]
/// (under which no background worker of the source's runs). Safe to repeat. Ends with a checkpoint.
///
/// # Errors
/// `Internal` with the server's words; `SourceRefused` when no superuser of the source may log in.
pub fn settle(server: &mut Server, dir: &dyn DataDir) -> Result<SettleReport, Failure> {
    let _ = (server, dir);
    todo!()
}
