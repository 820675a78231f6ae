//! What reading the log finds.

use offshoot_format::log::{FileHeaderState, LogFileHeader};
use offshoot_os::disk::DiskFile;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One record as replay finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its sequence.
    pub sequence: u64,
    /// What was appended.
    pub payload: Vec<u8>,
}

/// What the log holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// Records since the last trim, in order; without gaps where nothing is damaged.
    pub records: Vec<Record>,
    /// Records that are lost although they may have been synced, in order.
    pub damage: Vec<Damage>,
    /// Records with a flipped bit that could be corrected.
    pub mended: u64,
    /// Whether an older engine wrote it: [`crate::IntentLog::open`] writes the form of this one.
    pub is_old: bool,
}

/// Records that are lost although they may have been synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The first that is not there.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// Whose they were, and how far each stream came with them.
    pub streams: BTreeMap<u64, u64>,
    /// Whether all of them are in `streams`.
    pub all_known: bool,
}

/// One file, with what its header says.
pub(crate) struct LogFile {
    pub(crate) state: FileHeaderState,
    pub(crate) handle: Arc<dyn DiskFile>,
}

impl LogFile {
    fn header(&self) -> Option<LogFileHeader> {
        match self.state {
            FileHeaderState::Begun(header) | FileHeaderState::First(header) => Some(header),
            FileHeaderState::Blank | FileHeaderState::Damaged => None,
        }
    }
}

/// The log of the last run, read.
pub struct LastRun(pub(crate) Scan);

impl LastRun {
    /// What it holds.
    pub fn replay(&self) -> &Replay {
        &self.0.replay
    }
}

/// What reading the files has found so far.
pub(crate) struct Scan {
    pub(crate) files: Vec<LogFile>,
    pub(crate) file_size: u64,
    pub(crate) replay: Replay,
    pub(crate) next_sequence: u64,
    pub(crate) generation: u64,
    pub(crate) last_file: usize,
}

impl Scan {
    /// Files to clear before the log is used again: nothing in them can be distinguished from damage.
    pub(crate) fn unusable(&self) -> impl Iterator<Item = (usize, &Arc<dyn DiskFile>)> {
        let unusable =
            |file: &LogFile| self.replay.is_old || file.state == FileHeaderState::Damaged;
        let files = self.files.iter().enumerate().filter(move |(_, file)| unusable(file));
        files.map(|(number, file)| (number, &file.handle))
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = (usize, LogFileHeader)> {
        let files = self.files.iter().enumerate();
        files.filter_map(|(number, file)| file.header().map(|header| (number, header)))
    }

    /// The file that holds the record `trimmed`, or would: the one with the largest first sequence not
    /// above it; of several, the newest. If headers are damaged there may be none; then the first file
    /// after it.
    pub(crate) fn start_file(&self, trimmed: u64) -> Option<(usize, LogFileHeader)> {
        let before = self.headers().filter(|(_, header)| header.first_sequence <= trimmed);
        let start = before.max_by_key(|(_, header)| (header.first_sequence, header.generation));
        start.or_else(|| {
            self.headers().min_by_key(|(_, header)| (header.first_sequence, !header.generation))
        })
    }
}
