//! The index of commits: which transaction committed when and where in the log.

use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure, Lsn};
use std::path::{Path, PathBuf};

use crate::archive::Archive;

/// A commit of the source (`COMMIT` or `COMMIT PREPARED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Where its record begins. Recovery to this LSN, *inclusive*, ends right after this commit:
    /// give this to `recovery_target_lsn` with `recovery_target_inclusive = on`.
    pub lsn: Lsn,
    /// Where its record ends.
    pub end: Lsn,
    /// The commit time that the source wrote, to the microsecond.
    pub time: Timestamp,
    /// Its transaction id.
    pub xid: u32,
    /// The timeline whose log holds it.
    pub timeline: u32,
}

/// The commits of an archive, kept in one small file per WAL file. All methods may be called from
/// several threads.
pub struct CommitIndex {
}

impl CommitIndex {
    /// Opens (or begins) the index of an archive in a directory of its own; existing index files
    /// are read, damaged ones are rebuilt from the log.
    ///
    /// # Errors
    /// `DataDamaged` when the directory cannot be used.
    pub fn open(archive: Archive, dir: impl Into<PathBuf>) -> Result<Self, Failure> {
        todo!()
    }

    /// Reads what the archive received since; cheap when nothing did. Returns [`CommitIndex::end`].
    ///
    /// # Errors
    /// `DataDamaged` when a WAL file is damaged in the middle.
    pub fn update(&self) -> Result<Lsn, Failure> {
        todo!()
    }

    /// The end of the last whole record indexed; 0 before the first.
    pub fn end(&self) -> Lsn {
        todo!()
    }

    /// The last commit (in log order) whose time is not after the given one.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn last_not_after(&self, time: Timestamp) -> Result<Option<Commit>, Failure> {
        todo!()
    }

    /// The last commit whose record begins at or before a position.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn last_at_lsn(&self, lsn: Lsn) -> Result<Option<Commit>, Failure> {
        todo!()
    }

    /// The commit of a transaction; the newest one when ids have wrapped around.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn by_xid(&self, xid: u32) -> Result<Option<Commit>, Failure> {
        todo!()
    }

    /// The first commit whose record begins at or after a position (0: the first of all).
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn first_from(&self, lsn: Lsn) -> Result<Option<Commit>, Failure> {
        todo!()
    }

    /// The last commit of all.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn last(&self) -> Result<Option<Commit>, Failure> {
        todo!()
    }

    /// How many commits are indexed.
    pub fn count(&self) -> u64 {
        todo!()
    }

    /// Forgets WAL files that end at or before `keep_from`, as [`Archive::remove_before`] does.
    ///
    /// # Errors
    /// `DataDamaged` when a file cannot be removed.
    pub fn remove_before(&self, keep_from: Lsn) -> Result<(), Failure> {
        todo!()
    }
}
