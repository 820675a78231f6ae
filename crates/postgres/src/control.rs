//! What a data directory's control file says, by the database's own `pg_controldata`.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use crate::lsn::Lsn;
use offshoot_os::process::{Spec, User, run};
use offshoot_types::{ErrorKind, Failure};

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
    /// Where the latest checkpoint (restart point of a standby) is.
    pub checkpoint_lsn: Lsn,
    /// Where recovery would start: the first position whose WAL is needed.
    pub redo_lsn: Lsn,
    /// The timeline of the latest checkpoint.
    pub timeline: u32,
    /// How far recovery must go before the files are consistent; 0 if not in recovery.
    pub min_recovery_lsn: Lsn,
    /// Whether a base backup's end must still be reached before the files are consistent.
    pub backup_end_required: bool,
    /// Bytes of a WAL segment.
    pub wal_segment_bytes: u64,
    /// Pages of one file of a relation.
    pub segment_pages: u64,
    /// Whether data pages have checksums.
    pub data_checksums: bool,
    /// Settings a standby must have at least as large, by their names in `postgresql.conf`.
    pub minimum_settings: Vec<(&'static str, u32)>,
}

impl Control {
    /// Whether a server took writes on it, or was about to: it has a history of its own.
    pub fn was_opened(&self) -> bool {
        matches!(
            self.state,
            ClusterState::ShutDown | ClusterState::InProduction | ClusterState::InCrashRecovery
        )
    }

    /// Whether it opens without recovery.
    pub fn is_stopped_cleanly(&self) -> bool {
        matches!(self.state, ClusterState::ShutDown | ClusterState::ShutDownInRecovery)
    }
}

/// Settings that limit what can be replayed: the name in the configuration and in the tool's output.
const MINIMUM_SETTINGS: &[(&str, &str)] = &[
    ("max_connections", "max_connections setting"),
    ("max_worker_processes", "max_worker_processes setting"),
    ("max_wal_senders", "max_wal_senders setting"),
    ("max_prepared_transactions", "max_prepared_xacts setting"),
    ("max_locks_per_transaction", "max_locks_per_xact setting"),
];

/// Reads the control file of the cluster at `data_dir`, running or not.
///
/// # Errors
/// `HostUnprepared` when the tool is missing, `DataDamaged` when the file cannot be understood.
pub fn read(bin_dir: &Path, data_dir: &Path, user: Option<&User>) -> Result<Control, Failure> {
    let spec = Spec::new(bin_dir.join("pg_controldata"))
        .arg("-D")
        .arg(data_dir)
        .clear_env()
        .env("LC_ALL", "C")
        .cwd("/")
        .user(user.cloned());
    let output = run(&spec, Duration::from_secs(30)).map_err(|error| {
        Failure::new(
            ErrorKind::HostUnprepared,
            error.to_string(),
            "install the server programs of this version of PostgreSQL",
        )
    })?;
    if !output.success() {
        return Err(damaged(&output.stderr_text()));
    }
    parse(&output.stdout_text())
}

/// Parses what `pg_controldata` prints in the C locale.
///
/// # Errors
/// `DataDamaged` if a field is missing or invalid.
pub fn parse(text: &str) -> Result<Control, Failure> {
    let fields: HashMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect();
    let field = |name: &str| {
        fields.get(name).copied().ok_or_else(|| damaged(&format!("it does not tell '{name}'")))
    };
    let number = |name: &str| {
        let text = field(name)?;
        text.parse::<u64>().map_err(|_| damaged(&format!("'{name}' is '{text}'")))
    };
    let small = |name: &str| {
        let value = number(name)?;
        u32::try_from(value).map_err(|_| damaged(&format!("'{name}' is {value}")))
    };
    let lsn = |name: &str| {
        field(name)?.parse::<Lsn>().map_err(|error| damaged(&format!("'{name}': {error}")))
    };
    let minimum_settings = MINIMUM_SETTINGS
        .iter()
        .map(|(setting, label)| Ok((*setting, small(label)?)))
        .collect::<Result<_, Failure>>()?;
    Ok(Control {
        system_identifier: number("Database system identifier")?,
        state: match field("Database cluster state")? {
            "shut down" => ClusterState::ShutDown,
            "shut down in recovery" => ClusterState::ShutDownInRecovery,
            "in production" => ClusterState::InProduction,
            "in crash recovery" => ClusterState::InCrashRecovery,
            "in archive recovery" => ClusterState::InArchiveRecovery,
            _ => ClusterState::Other,
        },
        checkpoint_lsn: lsn("Latest checkpoint location")?,
        redo_lsn: lsn("Latest checkpoint's REDO location")?,
        timeline: small("Latest checkpoint's TimeLineID")?,
        min_recovery_lsn: lsn("Minimum recovery ending location")?,
        backup_end_required: field("End-of-backup record required")? == "yes",
        wal_segment_bytes: number("Bytes per WAL segment")?,
        segment_pages: number("Blocks per segment of large relation")?,
        data_checksums: number("Data page checksum version")? != 0,
        minimum_settings,
    })
}

fn damaged(why: &str) -> Failure {
    Failure::new(
        ErrorKind::DataDamaged,
        format!("the control file cannot be read: {why}"),
        "take a new snapshot of the source, or provision from another one",
    )
}

#[cfg(test)]
pub(crate) mod tests;
