//! The base backup: a copy of a source's data directory, streamed by `pg_basebackup`.

use offshoot_types::{ErrorKind, Failure, Lsn};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::installation::Tools;
use crate::source::{Source, SourceFacts};

/// The directory, inside the target, that holds tablespaces, one subdirectory per OID. The links in
/// `pg_tblspc` are relative to it, so a clone of the target is complete wherever it is mounted.
pub const TABLESPACES_DIR: &str = "offshoot.tablespaces";

/// How far a base backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackupProgress {
    /// Bytes received.
    pub done_bytes: u64,
    /// Bytes expected; may still change a little; 0 when not known yet.
    pub total_bytes: u64,
}

/// What to copy and where to.
#[derive(Debug)]
pub struct BaseBackupRequest<'a> {
    /// The programs of the source's major version.
    pub tools: &'a Tools,
    /// The source.
    pub source: &'a Source,
    /// The facts of the source, read just before.
    pub facts: &'a SourceFacts,
    /// An empty directory (or one that does not exist yet); it becomes the data directory.
    pub target: &'a Path,
}

/// A finished base backup. Files are written but not synced: the caller syncs the dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseBackup {
    /// Where replay must begin.
    pub start: Lsn,
    /// Replay must reach this before the copy is consistent.
    pub end: Lsn,
    /// The timeline of both.
    pub timeline: u32,
    /// Bytes received.
    pub bytes: u64,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

/// Copies the source. `progress` is called about once a second and at the end; `cancelled` is
/// asked often.
///
/// The log (`pg_wal`) is not copied: it comes by the receiver, which must be streaming before.
///
/// # Errors
/// `Cancelled`, `SourceUnreachable`, `SourceRefused`, `HostUnprepared`, `PoolFull`; the target is
/// left empty then.
pub fn take_base_backup(
    request: &BaseBackupRequest<'_>,
    progress: &dyn Fn(BackupProgress),
    cancelled: &dyn Fn() -> bool,
) -> Result<BaseBackup, Failure> {
    todo!()
}

/// Checks every file of a fresh, never started base backup against its manifest
/// (`pg_verifybackup`).
///
/// # Errors
/// `DataDamaged` that names the first differences, `Cancelled`, `HostUnprepared`.
pub fn verify_base_backup(
    tools: &Tools,
    target: &Path,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    todo!()
}
