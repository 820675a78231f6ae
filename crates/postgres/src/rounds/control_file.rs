//! The bytes of `global/pg_control` (`catalog/pg_control.h`), little-endian.
//!
//! ```text
//!   0 system identifier u64 | 8 format u32 | 16 state u32 | 24 time i64 | 32 place of the checkpoint u64
//!  40 checkpoint, 88 bytes  | 128 … | 136 least recovery point u64 | 144 its timeline u32
//! 152 start of a backup u64 | 160 its end u64 | 168 whether its end must come u8
//! 172 wal_level i32 | 176 wal_log_hints u8 | 180 max_connections | 184 max_worker_processes
//! 188 max_wal_senders | 192 max_prepared_transactions | 196 max_locks_per_transaction
//! 200 track_commit_timestamp u8 | … | 228 size of a WAL file u32 | … | checksum of all before
//!
//! checkpoint: 0 redo u64 | 8 timeline u32 | 12 timeline before u32 | 24 next transaction u64
//!             44 oldest transaction not frozen u32 | 80 oldest active transaction u32
//! ```
//! 13 to 16 have format 1300 and 17 has 1700, both with the checksum at 288; 18 has format 1800, one more field before
//! the checksum, which is at 292, and `wal_level` in what was padding of the checkpoint.

use super::control_damaged;
use crate::archive::record::{u32_at, u64_at};
use crate::config::Settings;
use crate::lsn::Lsn;
use offshoot_connector::DataDir;
use offshoot_types::Failure;

/// Bytes of a checkpoint in all versions.
pub(super) const CHECKPOINT_BYTES: usize = 88;

const FILE: &str = "global/pg_control";
const FILE_BYTES_MAX: u64 = 64 << 10;

const STATE_SHUT_DOWN: u32 = 1;
const STATE_SHUT_DOWN_IN_RECOVERY: u32 = 2;
const STATE_IN_ARCHIVE_RECOVERY: u32 = 5;

const FORMAT: usize = 8;
const STATE: usize = 16;
const PLACE: usize = 32;
const CHECKPOINT: usize = 40;
const RECOVERY_POINT: usize = 136;
const RECOVERY_POINT_TIMELINE: usize = 144;
const BACKUP_START: usize = 152;
const BACKUP_END: usize = 160;
const BACKUP_END_REQUIRED: usize = 168;
const SEGMENT_BYTES: usize = 228;

/// A control file whose checksum is right.
#[derive(Debug)]
pub(crate) struct ControlFile {
    bytes: Vec<u8>,
    checksum_at: usize,
}

impl ControlFile {
    pub(crate) fn read(files: &dyn DataDir) -> Result<ControlFile, Failure> {
        let bytes = files.read_up_to(FILE, FILE_BYTES_MAX);
        ControlFile::parse(bytes.map_err(|error| control_damaged(&error.to_string()))?)
    }

    /// # Errors
    /// `DataDamaged` for a format that is not known and for a wrong checksum.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<ControlFile, Failure> {
        let checksum_at = match u32_at(&bytes, FORMAT) {
            Some(1300 | 1700) => 288,
            Some(1800) => 292,
            format => return Err(control_damaged(&format!("its format is {format:?}"))),
        };
        let covered = bytes.get(..checksum_at).map(crc32c::crc32c);
        match (covered, u32_at(&bytes, checksum_at)) {
            (Some(right), Some(stored)) if right == stored => {
                Ok(ControlFile { bytes, checksum_at })
            }
            _ => Err(control_damaged("its checksum is wrong")),
        }
    }

    fn number(&self, at: usize) -> u32 {
        u32_at(&self.bytes, at).unwrap_or_default()
    }

    fn long(&self, at: usize) -> u64 {
        u64_at(&self.bytes, at).unwrap_or_default()
    }

    fn flag(&self, at: usize) -> bool {
        self.bytes.get(at).is_some_and(|byte| *byte != 0)
    }

    pub(crate) fn system_identifier(&self) -> u64 {
        self.long(0)
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.number(STATE) == STATE_SHUT_DOWN
    }

    /// Whether it is a standby's, running or stopped: no server took writes on it.
    pub(super) fn is_of_standby(&self) -> bool {
        [STATE_SHUT_DOWN_IN_RECOVERY, STATE_IN_ARCHIVE_RECOVERY].contains(&self.number(STATE))
    }

    /// The first transaction, counted from the first of all, that had not begun at the checkpoint.
    pub(crate) fn next_transaction(&self) -> u64 {
        self.long(CHECKPOINT + 24)
    }

    /// The oldest transaction whose number may still stand in a row.
    pub(crate) fn oldest_transaction(&self) -> u64 {
        let (next, oldest) = (self.next_transaction(), self.number(CHECKPOINT + 44));
        // The lower half of the next one's number is what rows hold.
        next.saturating_sub(u64::from((next as u32).wrapping_sub(oldest)))
    }

    /// The timeline of the checkpoint.
    pub(crate) fn timeline(&self) -> u32 {
        self.number(CHECKPOINT + 8)
    }

    pub(super) fn checkpoint_at(&self) -> Lsn {
        Lsn(self.long(PLACE))
    }

    pub(super) fn least_recovery_point(&self) -> Lsn {
        Lsn(self.long(RECOVERY_POINT))
    }

    pub(super) fn segment_bytes(&self) -> u64 {
        u64::from(self.number(SEGMENT_BYTES))
    }

    /// Whether the end of a base backup must still be replayed before its files are consistent.
    pub(super) fn is_unfinished_backup(&self) -> bool {
        self.long(BACKUP_START) != 0 || self.long(BACKUP_END) != 0 || self.flag(BACKUP_END_REQUIRED)
    }

    /// The settings that it holds, as they must be so that a server does not change it; `None` if it holds a value
    /// that no source of ours has.
    pub(super) fn settings(&self) -> Option<Settings> {
        const NUMBERS: [(&str, usize); 5] = [
            ("max_connections", 180),
            ("max_worker_processes", 184),
            ("max_wal_senders", 188),
            ("max_prepared_transactions", 192),
            ("max_locks_per_transaction", 196),
        ];
        const FLAGS: [(&str, usize); 2] = [("wal_log_hints", 176), ("track_commit_timestamp", 200)];
        let level = match self.number(172) {
            1 => "replica",
            2 => "logical",
            _ => return None,
        };
        let mut settings = Settings::from([("wal_level".to_owned(), level.to_owned())]);
        for (name, at) in NUMBERS {
            settings.insert(name.to_owned(), self.number(at).to_string());
        }
        for (name, at) in FLAGS {
            let value = if self.flag(at) { "on" } else { "off" };
            settings.insert(name.to_owned(), value.to_owned());
        }
        Some(settings)
    }

    /// C's content: the checkpoint of the clean stop, as if it had been made at C by the source.
    pub(super) fn checkpoint_moved_to(&self, at: Lsn, timeline: u32) -> [u8; CHECKPOINT_BYTES] {
        let mut checkpoint = [0; CHECKPOINT_BYTES];
        if let Some(bytes) = self.bytes.get(CHECKPOINT..CHECKPOINT + CHECKPOINT_BYTES) {
            checkpoint.copy_from_slice(bytes);
        }
        checkpoint[..8].copy_from_slice(&at.0.to_le_bytes());
        checkpoint[8..12].copy_from_slice(&timeline.to_le_bytes());
        checkpoint[12..16].copy_from_slice(&timeline.to_le_bytes());
        // That of an online checkpoint: none is older than the next one.
        checkpoint.copy_within(24..28, 80);
        checkpoint
    }

    /// As a standby leaves it that was stopped at `reached` and whose last restart point was at C.
    pub(super) fn forge(
        mut self,
        at: Lsn,
        checkpoint: &[u8; CHECKPOINT_BYTES],
        (reached, timeline): (Lsn, u32),
    ) -> Vec<u8> {
        self.put(STATE, &STATE_IN_ARCHIVE_RECOVERY.to_le_bytes());
        self.put(PLACE, &at.0.to_le_bytes());
        self.put(CHECKPOINT, checkpoint);
        self.put(RECOVERY_POINT, &reached.0.to_le_bytes());
        self.put(RECOVERY_POINT_TIMELINE, &timeline.to_le_bytes());
        self.put(BACKUP_START, &[0; 8]);
        self.put(BACKUP_END, &[0; 8]);
        self.put(BACKUP_END_REQUIRED, &[0]);
        let checksum = crc32c::crc32c(self.bytes.get(..self.checksum_at).unwrap_or_default());
        self.put(self.checksum_at, &checksum.to_le_bytes());
        self.bytes
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}
