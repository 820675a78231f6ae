//! The staging standby: replays whatever WAL appears in its `pg_wal`, without any connection.
//!
//! It runs in standby mode with neither `primary_conninfo` nor `restore_command`, in which the
//! server polls `pg_wal`. Whoever feeds it writes a segment (or a longer state of the growing one)
//! under another name and renames it over the final name.

use offshoot_types::{Failure, Lsn};

use crate::control::Control;
use crate::data_dir::DataDir;
use crate::session::Session;

/// Makes an adopted base backup (or a stopped staging directory) start as the staging standby.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn prepare(dir: &dyn DataDir, control: &Control) -> Result<(), Failure> {
    let _ = (dir, control);
    todo!()
}

/// How far a standby has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayState {
    /// The end of the last record replayed.
    pub replayed_lsn: Lsn,
    /// The timeline it follows, by its last restart point.
    pub timeline: u32,
    /// Commit time of the last transaction replayed, µs since the Unix epoch (source's clock).
    pub last_commit_micros: Option<i64>,
}

/// Asks a running standby.
///
/// # Errors
/// When the server does not answer, or has left recovery.
pub fn replay_state(session: &mut Session) -> Result<ReplayState, Failure> {
    let _ = session;
    todo!()
}
