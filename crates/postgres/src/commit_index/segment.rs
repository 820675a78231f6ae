//! The file that keeps the commits of one WAL file. Numbers are little-endian.
//!
//! ```text
//!  0 magic "OFFCMT01"      8 resume u64        16 count u64
//! 24 first lsn u64        32 last lsn u64      40 earliest time i64   48 latest time i64
//! 56 lowest xid u32       60 highest xid u32   64 crc32c of entries u32   68 crc32c of 0..68 u32
//! 72 count × { lsn u64 | time i64, µs since 1970 | xid u32 | length of the record u32 }
//! ```
//!
//! The files can always be rebuilt from the log as long as that is kept; a torn one does not match
//! its checksums.

use crate::lsn::Lsn;
use std::io;

use crate::archive::record::{u32_at, u64_at};
use offshoot_connector::{DataDir, read_full};

/// Permissions of a file.
const MODE: u32 = 0o600;
const MAGIC: &[u8; 8] = b"OFFCMT01";
/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 72;
/// Bytes of an entry.
const ENTRY_BYTES: usize = 24;

/// One commit as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Where its record begins.
    pub(super) lsn: u64,
    /// When, in microseconds since 1970.
    pub(super) time_us: i64,
    /// Its transaction.
    pub(super) xid: u32,
    /// Bytes from its beginning to its end.
    pub(super) length: u32,
}

impl Entry {
    pub(super) fn end(&self) -> u64 {
        self.lsn.saturating_add(u64::from(self.length))
    }
}

/// What the header says about the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Summary {
    /// Where the first record begins that ends after this WAL file.
    pub(super) resume: Lsn,
    pub(super) count: u64,
    pub(super) first_lsn: u64,
    pub(super) last_lsn: u64,
    pub(super) earliest_us: i64,
    pub(super) latest_us: i64,
    pub(super) lowest_xid: u32,
    pub(super) highest_xid: u32,
}

impl Summary {
    pub(super) fn of(entries: &[Entry], resume: Lsn) -> Self {
        let times = || entries.iter().map(|entry| entry.time_us);
        let xids = || entries.iter().map(|entry| entry.xid);
        Summary {
            resume,
            count: entries.len() as u64,
            first_lsn: entries.first().map_or(0, |entry| entry.lsn),
            last_lsn: entries.last().map_or(0, |entry| entry.lsn),
            earliest_us: times().min().unwrap_or(i64::MAX),
            latest_us: times().max().unwrap_or(i64::MIN),
            lowest_xid: xids().min().unwrap_or(u32::MAX),
            highest_xid: xids().max().unwrap_or(0),
        }
    }
}

/// Writes a file; a reader sees all of it or nothing.
pub(super) fn write(
    dir: &dyn DataDir,
    name: &str,
    entries: &[Entry],
    summary: &Summary,
) -> io::Result<()> {
    let mut body = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for entry in entries {
        body.extend_from_slice(&entry.lsn.to_le_bytes());
        body.extend_from_slice(&entry.time_us.to_le_bytes());
        body.extend_from_slice(&entry.xid.to_le_bytes());
        body.extend_from_slice(&entry.length.to_le_bytes());
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(MAGIC);
    for number in [summary.resume.0, summary.count, summary.first_lsn, summary.last_lsn] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for time in [summary.earliest_us, summary.latest_us] {
        bytes.extend_from_slice(&time.to_le_bytes());
    }
    for number in [summary.lowest_xid, summary.highest_xid, crc32c::crc32c(&body)] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let header_crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&header_crc.to_le_bytes());
    bytes.extend_from_slice(&body);
    dir.write_atomic(name, &bytes, MODE)
}

/// Reads the header of a file; `None` if it is damaged or its length is wrong.
pub(super) fn read_summary(dir: &dyn DataDir, name: &str) -> io::Result<Option<Summary>> {
    let file = dir.open(name)?;
    let mut header = [0; HEADER_BYTES];
    let read = read_full(&*file, 0, &mut header)?;
    Ok(if read == HEADER_BYTES { parse_summary(&header, file.size()?) } else { None })
}

fn parse_summary(header: &[u8], file_bytes: u64) -> Option<Summary> {
    if header.get(..8)? != MAGIC || crc32c::crc32c(header.get(..68)?) != u32_at(header, 68)? {
        return None;
    }
    let summary = Summary {
        resume: Lsn(u64_at(header, 8)?),
        count: u64_at(header, 16)?,
        first_lsn: u64_at(header, 24)?,
        last_lsn: u64_at(header, 32)?,
        earliest_us: u64_at(header, 40)?.cast_signed(),
        latest_us: u64_at(header, 48)?.cast_signed(),
        lowest_xid: u32_at(header, 56)?,
        highest_xid: u32_at(header, 60)?,
    };
    let expected = summary.count.checked_mul(ENTRY_BYTES as u64)? + HEADER_BYTES as u64;
    (file_bytes == expected).then_some(summary)
}

/// Reads the entries of a file; `None` when it is damaged.
pub(super) fn read_entries(dir: &dyn DataDir, name: &str) -> io::Result<Option<Vec<Entry>>> {
    Ok(parse_entries(&dir.read(name)?))
}

fn parse_entries(bytes: &[u8]) -> Option<Vec<Entry>> {
    let header = bytes.get(..HEADER_BYTES)?;
    let body = bytes.get(HEADER_BYTES..)?;
    parse_summary(header, bytes.len() as u64)?;
    if crc32c::crc32c(body) != u32_at(header, 64)? {
        return None;
    }
    body.chunks_exact(ENTRY_BYTES)
        .map(|chunk| {
            Some(Entry {
                lsn: u64_at(chunk, 0)?,
                time_us: u64_at(chunk, 8)?.cast_signed(),
                xid: u32_at(chunk, 16)?,
                length: u32_at(chunk, 20)?,
            })
        })
        .collect()
}
