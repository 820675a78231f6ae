//! Records of the write-ahead log: as much of their format as the index of commits needs.
//!
//! The format is the same in PostgreSQL 13 to 18 (`access/xlogrecord.h`, `access/xlog_internal.h`,
//! `access/xact.h`), numbers in the order of the machine, which is little-endian here.
//!
//! ```text
//! page header   0 magic u16 | 2 flags u16 | 4 timeline u32 | 8 address u64 | 16 remaining u32 | pad to 24
//!               first page of a file also: 24 system identifier u64 | 32 file size u32 | 36 page size u32
//! record        0 length u32 | 4 xid u32 | 8 previous u64 | 16 info u8 | 17 rmgr u8 | 20 crc u32 | 24 …
//! commit data   0 time i64 | if info & 0x80: 8 flags u32 | parts by flag
//! ```

use crate::lsn::Lsn;

/// Bytes of a page of the log.
pub(crate) const PAGE_BYTES: u64 = 8192;
/// Bytes of the header of the first page of a file.
const LONG_HEADER_BYTES: u64 = 40;
/// Bytes of the header of any other page.
const SHORT_HEADER_BYTES: u64 = 24;
/// Bytes of the fixed part of a record.
pub(crate) const RECORD_HEADER_BYTES: usize = 24;
/// No record is longer (`XLogRecordMaxSize`).
pub(crate) const RECORD_BYTES_MAX: usize = 1020 << 20;

const FIRST_IS_CONTINUED: u16 = 0x0001;
const LONG_HEADER: u16 = 0x0002;
const FIRST_REPLACES_BROKEN: u16 = 0x0008;

/// The page magic of PostgreSQL 18, from which on statistics items are longer.
const MAGIC_18: u16 = 0xD118;

/// The header of a page of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// Which version wrote it.
    pub(crate) magic: u16,
    flags: u16,
    /// Remaining bytes of a record that began on an earlier page.
    pub(crate) remaining: u32,
}

impl PageHeader {
    /// Reads the header of the page at an address; `None` when no valid page is there.
    pub(crate) fn parse(page: &[u8], address: u64) -> Option<Self> {
        let header = PageHeader {
            magic: u16_at(page, 0)?,
            flags: u16_at(page, 2)?,
            remaining: u32_at(page, 16)?,
        };
        let valid = header.magic & 0xFF00 == 0xD100 && u64_at(page, 8)? == address;
        valid.then_some(header)
    }

    /// Bytes of the header.
    pub(crate) fn bytes(&self) -> u64 {
        if self.flags & LONG_HEADER != 0 { LONG_HEADER_BYTES } else { SHORT_HEADER_BYTES }
    }

    /// Bytes of the header of the page at an address, in files of that size.
    pub(crate) fn bytes_at(address: u64, segment_bytes: u64) -> u64 {
        let begins_file = address.is_multiple_of(segment_bytes);
        if begins_file { LONG_HEADER_BYTES } else { SHORT_HEADER_BYTES }
    }

    /// Whether the page begins with the rest of a record.
    pub(crate) fn continues(&self) -> bool {
        self.flags & FIRST_IS_CONTINUED != 0
    }

    /// Whether the record that the previous pages began was abandoned after a crash.
    pub(crate) fn replaces_broken(&self) -> bool {
        self.flags & FIRST_REPLACES_BROKEN != 0
    }
}

/// What a record means for the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A transaction committed.
    Commit {
        /// Microseconds since 1970.
        time_us: i64,
        /// Its id.
        xid: u32,
    },
    /// The rest of the file is unused.
    SwitchFile,
    /// Anything else.
    Other,
}

/// Whether a whole record matches its checksum.
pub(crate) fn checksum_matches(record: &[u8]) -> bool {
    let (Some(head), Some(body), Some(stored)) =
        (record.get(..20), record.get(RECORD_HEADER_BYTES..), u32_at(record, 20))
    else {
        return false;
    };
    crc32c::crc32c_append(crc32c::crc32c(body), head) == stored
}

/// Reads what a whole record means; `None` if a transaction record is invalid.
pub(crate) fn meaning(record: &[u8], magic: u16) -> Option<Meaning> {
    const RMGR_XLOG: u8 = 0;
    const RMGR_XACT: u8 = 1;
    let (info, rmgr) = (*record.get(16)?, *record.get(17)?);
    match (rmgr, info & 0xF0, info & 0x70) {
        (RMGR_XLOG, 0x40, _) => Some(Meaning::SwitchFile),
        (RMGR_XACT, _, 0x00) => {
            let time_us = commit_time(u64_at(main_data(record)?, 0)?)?;
            Some(Meaning::Commit { time_us, xid: u32_at(record, 4)? })
        }
        (RMGR_XACT, _, 0x30) => {
            let data = main_data(record)?;
            let time_us = commit_time(u64_at(data, 0)?)?;
            let has_flags = info & 0x80 != 0;
            let xid = if has_flags { prepared_xid(data, magic)? } else { u32_at(record, 4)? };
            Some(Meaning::Commit { time_us, xid })
        }
        _ => Some(Meaning::Other),
    }
}

/// From microseconds since 2000 to microseconds since 1970.
fn commit_time(raw: u64) -> Option<i64> {
    raw.cast_signed().checked_add(946_684_800_000_000)
}

/// The data of a record after its headers.
fn main_data(record: &[u8]) -> Option<&[u8]> {
    const SHORT: u8 = 255;
    const LONG: u8 = 254;
    const ORIGIN: u8 = 253;
    const TOP_XID: u8 = 252;
    let mut at = RECORD_HEADER_BYTES;
    loop {
        let (length, header) = match *record.get(at)? {
            SHORT => (usize::from(*record.get(at + 1)?), 2),
            LONG => (u32_at(record, at + 1)? as usize, 5),
            ORIGIN => {
                at += 3;
                continue;
            }
            TOP_XID => {
                at += 5;
                continue;
            }
            // Transaction records refer to no blocks.
            _ => return None,
        };
        let start = record.len().checked_sub(length)?;
        return (start >= at + header).then(|| &record[start..]);
    }
}

/// The transaction that a COMMIT PREPARED is about: it follows the optional parts that come first.
fn prepared_xid(data: &[u8], magic: u16) -> Option<u32> {
    const DATABASE: u32 = 1 << 0;
    const SUBTRANSACTIONS: u32 = 1 << 1;
    const FILES: u32 = 1 << 2;
    const INVALIDATIONS: u32 = 1 << 3;
    const PREPARED: u32 = 1 << 4;
    const STATISTICS: u32 = 1 << 8;
    let statistics_bytes = if magic >= MAGIC_18 { 16 } else { 12 };
    let flags = u32_at(data, 8)?;
    let mut at = 12;
    if flags & DATABASE != 0 {
        at += 8;
    }
    let lists =
        [(SUBTRANSACTIONS, 4), (FILES, 12), (STATISTICS, statistics_bytes), (INVALIDATIONS, 16)];
    for (flag, item_bytes) in lists {
        if flags & flag != 0 {
            let count = u32_at(data, at)? as usize;
            at = at.checked_add(4)?.checked_add(count.checked_mul(item_bytes)?)?;
        }
    }
    if flags & PREPARED == 0 { None } else { u32_at(data, at) }
}

/// Rounds up to where the next record may begin.
pub(crate) fn align(position: u64) -> Lsn {
    Lsn(position.saturating_add(7) & !7)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
