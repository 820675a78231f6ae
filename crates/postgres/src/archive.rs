//! The archive: the directory of WAL files that the receiver fills.

use offshoot_types::{ErrorKind, Failure, Lsn};
use std::path::{Path, PathBuf};

pub(crate) mod history;
pub(crate) mod record;
pub(crate) mod reader;

pub use history::{Timeline, TimelineHistory};

/// One WAL file of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WalFile {
    /// Its timeline.
    pub timeline: u32,
    /// Its number: the position of its first byte divided by the file size.
    pub number: u64,
    /// Whether it is still being received (`NAME.partial`): its unreceived rest is zeros.
    pub partial: bool,
}

/// The directory of received WAL files.
#[derive(Debug, Clone)]
pub struct Archive {
    dir: PathBuf,
    segment_bytes: u64,
}

impl Archive {
    /// An archive in a directory; `segment_bytes` is the source's WAL file size
    /// (`SourceFacts::wal_segment_bytes`).
    ///
    /// # Errors
    /// `InvalidInput` when the size is not a power of two from 1 MiB to 1 GiB.
    pub fn new(dir: impl Into<PathBuf>, segment_bytes: u64) -> Result<Self, Failure> {
        todo!()
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The size of a WAL file in bytes.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// The name PostgreSQL gives the file, without `.partial`.
    pub fn name(&self, file: &WalFile) -> String {
        todo!()
    }

    /// Where the file is.
    pub fn path(&self, file: &WalFile) -> PathBuf {
        todo!()
    }

    /// Position of the file's first byte.
    pub fn start(&self, file: &WalFile) -> Lsn {
        todo!()
    }

    /// Position after the file's last byte.
    pub fn end(&self, file: &WalFile) -> Lsn {
        todo!()
    }

    /// Parses a file name with or without `.partial`; `None` for any other name.
    pub fn parse_name(&self, name: &str) -> Option<WalFile> {
        todo!()
    }

    /// All WAL files, by timeline and number. Where a file is there both whole and partial, only
    /// the whole one is named.
    ///
    /// # Errors
    /// `DataDamaged` when the directory cannot be read.
    pub fn files(&self) -> Result<Vec<WalFile>, Failure> {
        todo!()
    }

    /// The paths of all timeline history files (`00000002.history`), in order.
    ///
    /// # Errors
    /// `DataDamaged` when the directory cannot be read.
    pub fn history_files(&self) -> Result<Vec<PathBuf>, Failure> {
        todo!()
    }

    /// The newest timeline that is followed here, with its ancestors.
    ///
    /// # Errors
    /// `DataDamaged` when a history file is missing or wrong.
    pub fn history(&self) -> Result<TimelineHistory, Failure> {
        todo!()
    }

    /// The files a server needs for replay of everything in `[from, to]` (`to` = `None`: all there
    /// is) on the way to the newest timeline, in order. Old timelines' files that end in a switch
    /// are included up to the switch.
    ///
    /// # Errors
    /// `MomentUnavailable` that names the first missing file.
    pub fn files_for(&self, from: Lsn, to: Option<Lsn>) -> Result<Vec<WalFile>, Failure> {
        todo!()
    }

    /// The end of the last whole record that can be read from `from` (the start of a record, or of
    /// a WAL file) on.
    ///
    /// # Errors
    /// `DataDamaged`, `MomentUnavailable` when `from` is not kept.
    pub fn valid_end(&self, from: Lsn) -> Result<Lsn, Failure> {
        todo!()
    }

    /// Removes whole WAL files that end at or before `keep_from`; how many were removed. History
    /// files stay.
    ///
    /// # Errors
    /// `DataDamaged` when a file cannot be removed.
    pub fn remove_before(&self, keep_from: Lsn) -> Result<usize, Failure> {
        todo!()
    }
}
