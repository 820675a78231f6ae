//! What a data directory's control file says, by the database's own `pg_controldata`.

use std::path::Path;
use std::time::Duration;

use offshoot_os::process::User;
use offshoot_types::{Failure, Lsn};

/// The state the cluster was left in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterState {
    /// Stopped cleanly: opens without recovery.
    ShutDown,
    /// A standby that was stopped cleanly.
    ShutDownInRecovery,
    /// Running, or killed: opens with crash recovery.
    InProduction,
    /// Was in crash recovery.
    InCrashRecovery,
    /// A standby or a recovery to a target: runs, or was killed.
    InArchiveRecovery,
    /// Starting up, shutting down, or a state of a later version.
    Other,
}

/// The fields of the control file that the engine uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// The cluster's identifier; the source's and all its copies' are equal.
    pub system_identifier: u64,
    /// How it was left.
    pub state: ClusterState,
    /// Where the latest checkpoint (restart point of a standby) lies.
    pub checkpoint_lsn: Lsn,
    /// Where recovery would start: the first position whose WAL is needed.
    pub redo_lsn: Lsn,
    /// The timeline of the latest checkpoint.
    pub timeline: u32,
    /// How far recovery must go before the files are consistent; 0 where not in recovery.
    pub min_recovery_lsn: Lsn,
    /// Whether a base backup's end must still be reached before the files are consistent.
    pub backup_end_required: bool,
    /// Bytes of a WAL segment.
    pub wal_segment_bytes: u64,
    /// Whether data pages have checksums.
    pub data_checksums: bool,
    /// Settings a standby must have at least as large: name and value (`max_connections`,
    /// `max_worker_processes`, `max_wal_senders`, `max_prepared_xacts` as
    /// `max_prepared_transactions`, `max_locks_per_xact` as `max_locks_per_transaction`).
    pub minimum_settings: Vec<(&'static str, u32)>,
}

/// Reads the control file of the cluster at `data_dir`, running or not.
///
/// # Errors
/// `HostUnprepared` when the tool is missing, `DataDamaged` when the file cannot be understood.
pub fn read(bin_dir: &Path, data_dir: &Path, user: Option<&User>) -> Result<Control, Failure> {
    let _ = (bin_dir, data_dir, user, Duration::ZERO);
    todo!()
}
