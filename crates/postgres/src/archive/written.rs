//! What a record of the log wrote: the files whose blocks it changes, rows by kind, and of a commit who belongs to it.
//!
//! The format is that of [`super::record`]; between the fixed part of a record and its data stand headers
//! (`access/xlogrecord.h`):
//!
//! ```text
//! block       id u8 (0..32) | flags u8 | data length u16
//!             if flags & 0x10: image length u16 | hole u16 | image flags u8 | if compressed with a hole: length u16
//!             if not flags & 0x80: tablespace u32, database u32, file u32 (else as in the block before)
//!             number u32
//! data        255 | length u8, or 254 | length u32
//! origin      253 | u16             top transaction   252 | u32
//! ```

use super::record::{RECORD_HEADER_BYTES, u16_at, u32_at};

const BLOCK_ID_MAX: u8 = 32;
const HAS_IMAGE: u8 = 0x10;
const SAME_RELATION: u8 = 0x80;
const FORK: u8 = 0x0F;
/// The magic of PostgreSQL 15, from which on images can be compressed in several ways.
const MAGIC_15: u16 = 0xD110;
/// The magic of PostgreSQL 18, from which on statistics items are longer.
const MAGIC_18: u16 = 0xD118;

const MANAGER_TRANSACTION: u8 = 1;
const MANAGER_STORAGE: u8 = 2;
const MANAGER_STANDBY: u8 = 8;
const MANAGER_HEAP2: u8 = 9;
const MANAGER_HEAP: u8 = 10;

/// A file of a relation: the database's number (0 for what all share), and the file's.
pub(crate) type File = (u32, u32);

/// What was done to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    Inserted(u64),
    Updated,
    Deleted,
}

/// What a record wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The transaction, or subtransaction; 0: none.
    pub(crate) xid: u32,
    /// The files whose main part it changes, each once for a row of blocks of it.
    pub(crate) files: Vec<File>,
    /// The file that it makes.
    pub(crate) made: Option<File>,
    /// What it does to rows of the first of the files.
    pub(crate) rows: Option<Rows>,
    /// Of a commit: the subtransactions that are committed with it.
    pub(crate) subtransactions: Vec<u32>,
    /// Of a commit: the database that it was made in, if it says so.
    pub(crate) database: Option<u32>,
    /// Of a commit: whether it makes others forget what they know of catalogs, or removes files.
    pub(crate) changes_catalog: bool,
    /// Of a list of running transactions: the number that the next one will get.
    pub(crate) next_xid: Option<u32>,
}

/// Reads a whole record; `None` if it makes no sense.
pub(crate) fn written(record: &[u8], magic: u16) -> Option<Written> {
    let (info, manager) = (*record.get(16)?, *record.get(17)?);
    let (files, data) = parts(record, magic)?;
    let mut written = Written { xid: u32_at(record, 4)?, files, ..Written::default() };
    match (manager, info & 0x70) {
        (MANAGER_TRANSACTION, 0x00 | 0x30) => read_commit(&mut written, data, info, magic)?,
        (MANAGER_STORAGE, 0x10) if u32_at(data, 12)? == 0 => {
            written.made = Some((u32_at(data, 4)?, u32_at(data, 8)?));
        }
        (MANAGER_STANDBY, 0x10) => written.next_xid = Some(u32_at(data, 12)?),
        (MANAGER_HEAP2, 0x50) => {
            written.rows = Some(Rows::Inserted(u64::from(u16_at(data, 2)?)));
        }
        (MANAGER_HEAP, 0x00) => written.rows = Some(Rows::Inserted(1)),
        (MANAGER_HEAP, 0x10) => written.rows = Some(Rows::Deleted),
        (MANAGER_HEAP, 0x20 | 0x40) => written.rows = Some(Rows::Updated),
        _ => {}
    }
    Some(written)
}

/// The files of a record's blocks, and its data.
fn parts(record: &[u8], magic: u16) -> Option<(Vec<File>, &[u8])> {
    let (mut at, mut payload, mut data_bytes) = (RECORD_HEADER_BYTES, 0_usize, 0);
    let (mut files, mut file) = (Vec::new(), None);
    while record.len().checked_sub(at)? > payload {
        match *record.get(at)? {
            255 => {
                data_bytes = usize::from(*record.get(at + 1)?);
                at += 2;
                payload += data_bytes;
                break;
            }
            254 => {
                data_bytes = u32_at(record, at + 1)? as usize;
                at += 5;
                payload = payload.checked_add(data_bytes)?;
                break;
            }
            253 => at += 3,
            252 => at += 5,
            id if id <= BLOCK_ID_MAX => {
                let flags = *record.get(at + 1)?;
                payload += usize::from(u16_at(record, at + 2)?);
                at += 4;
                if flags & HAS_IMAGE != 0 {
                    payload += usize::from(u16_at(record, at)?);
                    at += image_header_bytes(*record.get(at + 4)?, magic);
                }
                if flags & SAME_RELATION == 0 {
                    file = Some((u32_at(record, at + 4)?, u32_at(record, at + 8)?));
                    at += 12;
                }
                at += 4;
                let file = file?;
                if flags & FORK == 0 && files.last() != Some(&file) {
                    files.push(file);
                }
            }
            _ => return None,
        }
    }
    let whole = at.checked_add(payload)? == record.len();
    whole.then(|| (files, &record[record.len() - data_bytes..]))
}

fn image_header_bytes(flags: u8, magic: u16) -> usize {
    const HAS_HOLE: u8 = 0x01;
    let compressed = if magic >= MAGIC_15 { 0x1C } else { 0x02 };
    if flags & HAS_HOLE != 0 && flags & compressed != 0 { 7 } else { 5 }
}

fn read_commit(written: &mut Written, data: &[u8], info: u8, magic: u16) -> Option<()> {
    const HAS_FLAGS: u8 = 0x80;
    const DATABASE: u32 = 1 << 0;
    const SUBTRANSACTIONS: u32 = 1 << 1;
    const FILES: u32 = 1 << 2;
    const INVALIDATIONS: u32 = 1 << 3;
    const STATISTICS: u32 = 1 << 8;
    if info & HAS_FLAGS == 0 {
        return Some(());
    }
    let statistics_bytes = if magic >= MAGIC_18 { 16 } else { 12 };
    let flags = u32_at(data, 8)?;
    let mut at = 12;
    if flags & DATABASE != 0 {
        written.database = Some(u32_at(data, at)?);
        at += 8;
    }
    let lists =
        [(SUBTRANSACTIONS, 4), (FILES, 12), (STATISTICS, statistics_bytes), (INVALIDATIONS, 16)];
    for (flag, item_bytes) in lists {
        if flags & flag == 0 {
            continue;
        }
        let count = u32_at(data, at)? as usize;
        let begin = at.checked_add(4)?;
        at = begin.checked_add(count.checked_mul(item_bytes)?)?;
        let items = data.get(begin..at)?;
        match flag {
            SUBTRANSACTIONS => {
                let number = |item: &[u8]| u32_at(item, 0);
                written.subtransactions = items.chunks(4).filter_map(number).collect();
            }
            FILES | INVALIDATIONS => written.changes_catalog |= count > 0,
            _ => {}
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
