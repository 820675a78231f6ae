//! The staging standby: replays whatever WAL appears in its `pg_wal`, without any connection.
//!
//! It runs in standby mode with neither `primary_conninfo` nor `restore_command`, so the server
//! polls `pg_wal`. The feeder writes a segment (or a longer state of the growing one) under another
//! name and renames it to its final name.
//!
//! When the source raises a setting that limits what can be replayed (`max_connections` …), replay
//! pauses ([`ReplayState::paused`]; version 13 stops): stop the standby, [`prepare`] again with the
//! new control file, start.

use std::time::Duration;

use crate::lsn::Lsn;
use offshoot_types::Failure;

use crate::config::{self, Settings, purpose};
use crate::control::Control;
use crate::files::write_file;
use crate::session::Session;
use offshoot_connector::DataDir;

/// Makes an adopted base backup (or a stopped staging directory) start as the staging standby, with this many bytes
/// of buffers.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn prepare(dir: &dyn DataDir, control: &Control, buffers: u64) -> Result<(), Failure> {
    // What says that it began at a recovery point stays, until it has a restart point of its own.
    config::remove_traces(dir)?;
    let settings = purpose::staging(control, &Settings::new(), buffers);
    config::write_purpose(dir, "a staging standby", &settings)?;
    crate::access::write_private(dir)?;
    write_file(dir, "standby.signal", "")
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
    /// Whether replay is paused: see the module's notes.
    pub paused: bool,
}

pub(crate) const REPLAY_SQL: &str = "SELECT pg_last_wal_replay_lsn(), \
     (extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000000)::bigint";

/// Asks a running standby.
///
/// # Errors
/// If the server does not answer, or has left recovery.
pub fn replay_state(session: &mut Session) -> Result<ReplayState, Failure> {
    let sql = format!(
        "{REPLAY_SQL}, (SELECT timeline_id FROM pg_control_checkpoint()), \
         CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() END"
    );
    let rows = session.query(&sql, Duration::from_secs(20))?;
    let row = rows.first().cloned().unwrap_or_default();
    let field = |column: usize| row.get(column).cloned().flatten();
    let unclear = || Failure::internal("the standby does not tell how far it has replayed");
    Ok(ReplayState {
        replayed_lsn: field(0).and_then(|text| text.parse().ok()).unwrap_or_default(),
        last_commit_micros: field(1).and_then(|text| text.parse().ok()),
        timeline: field(2).and_then(|text| text.parse().ok()).ok_or_else(unclear)?,
        paused: field(3).ok_or_else(unclear)? == "t",
    })
}
