//! Makes a point's log and control file such that recovery goes on from it.

use super::control_file::{CHECKPOINT_BYTES, ControlFile};
use super::{CHECKPOINT_RECORD_BYTES, End, MANAGER_XLOG, NOOP_BYTES_MIN, Point, not_possible};
use crate::archive::record::{PAGE_BYTES, PageHeader, RECORD_HEADER_BYTES, u32_at};
use crate::archive::{WalFile, damaged};
use crate::lsn::Lsn;
use offshoot_connector::{DataDir, WritableFile, read_full};
use offshoot_types::Failure;

const CHECKPOINT_ONLINE: u8 = 0x10;
const NOOP: u8 = 0x20;
/// What comes before a record's data: its length in one byte, or in four.
const DATA_SHORT: u8 = 255;
const DATA_LONG: u8 = 254;

const PG_WAL: &str = "pg_wal";
const CONTROL_FILE: &str = "global/pg_control";
const PRIVATE: u32 = 0o600;

/// A record of the log's own resource manager, with the checksum that belongs to it.
fn record(info: u8, previous: Lsn, body: &[u8]) -> Vec<u8> {
    let length = (RECORD_HEADER_BYTES + body.len()) as u32;
    let mut bytes = Vec::with_capacity(length as usize);
    bytes.extend(length.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(previous.0.to_le_bytes());
    bytes.extend([info, MANAGER_XLOG, 0, 0]);
    let checksum = crc32c::crc32c_append(crc32c::crc32c(body), &bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes.extend(body);
    bytes
}

/// C. Nothing reads what its predecessor is, but it must be before it.
pub(super) fn checkpoint_record(at: Lsn, checkpoint: &[u8; CHECKPOINT_BYTES]) -> Vec<u8> {
    let mut body = vec![DATA_SHORT, CHECKPOINT_BYTES as u8];
    body.extend(checkpoint);
    let bytes = record(CHECKPOINT_ONLINE, Lsn(at.0.saturating_sub(8)), &body);
    assert_eq!(bytes.len(), CHECKPOINT_RECORD_BYTES, "a checkpoint's record has one length");
    bytes
}

/// A NOOP of exactly that length; `None` if it is too short for one.
pub(super) fn noop(length: usize, previous: Lsn) -> Option<Vec<u8>> {
    let data = length.checked_sub(NOOP_BYTES_MIN)?;
    let mut body = match u8::try_from(data) {
        Ok(short) => vec![DATA_SHORT, short],
        // Also for the three lengths whose data would fit the short form if its header did.
        Err(_) => {
            let long = u32::try_from(data - 3).ok()?.to_le_bytes();
            [&[DATA_LONG][..], &long].concat()
        }
    };
    body.resize(length - RECORD_HEADER_BYTES, 0);
    Some(record(NOOP, previous, &body))
}

/// The files of log in a data directory, as one stream of bytes.
struct Log<'a> {
    files: &'a dyn DataDir,
    segment_bytes: u64,
}

impl Log<'_> {
    /// The files that hold the byte at a position: where a timeline begins, there is one of each.
    fn holding(&self, at: Lsn) -> Result<Vec<Box<dyn WritableFile>>, Failure> {
        let fail = |error: std::io::Error| Failure::internal(format!("the log of a copy: {error}"));
        let mut found = Vec::new();
        for name in self.files.list(PG_WAL).map_err(fail)? {
            let file = WalFile::parse(&name, self.segment_bytes);
            if file.is_some_and(|file| file.number == at.0 / self.segment_bytes) {
                let path = format!("{PG_WAL}/{name}");
                found.push(self.files.open_writable(&path, PRIVATE).map_err(fail)?);
            }
        }
        if found.is_empty() {
            return Err(damaged(PG_WAL, &format!("the log at {at} is not there")));
        }
        Ok(found)
    }

    /// Reads inside a page, in the file of the newest timeline.
    fn read(&self, at: Lsn, bytes: &mut [u8]) -> Result<(), Failure> {
        let files = self.holding(at)?;
        let file = files.last().ok_or_else(|| Failure::internal("no file of the log"))?;
        match read_full(&**file, at.0 % self.segment_bytes, bytes) {
            Ok(count) if count == bytes.len() => Ok(()),
            _ => Err(damaged(PG_WAL, &format!("the log at {at} cannot be read"))),
        }
    }

    /// The header of the record at a position.
    fn read_header(&self, at: Lsn) -> Result<[u8; RECORD_HEADER_BYTES], Failure> {
        let mut header = [0; RECORD_HEADER_BYTES];
        let mut filled = 0;
        for (at, length) in self.parts(at.0, RECORD_HEADER_BYTES) {
            let part = header.get_mut(filled..filled + length).unwrap_or_default();
            self.read(at, part)?;
            filled += length;
        }
        Ok(header)
    }

    /// Where so many bytes of a record lie, around the headers of the pages that it crosses.
    fn parts(&self, mut at: u64, mut length: usize) -> Vec<(Lsn, usize)> {
        let mut parts = Vec::new();
        while length > 0 {
            if at.is_multiple_of(PAGE_BYTES) {
                at += PageHeader::bytes_at(at, self.segment_bytes);
            }
            let here = length.min((PAGE_BYTES - at % PAGE_BYTES) as usize);
            parts.push((Lsn(at), here));
            at += here as u64;
            length -= here;
        }
        parts
    }

    /// Writes inside a page.
    fn write(&self, at: Lsn, bytes: &[u8]) -> Result<(), Failure> {
        let offset = at.0 % self.segment_bytes;
        self.holding(at)?.iter().try_for_each(|file| {
            file.write_at(offset, bytes).map_err(|error| {
                Failure::internal(format!("the log of a copy: {error}")).or_pool_full(&error)
            })
        })
    }

    fn write_record(&self, at: Lsn, mut bytes: &[u8]) -> Result<(), Failure> {
        for (at, length) in self.parts(at.0, bytes.len()) {
            let (now, rest) = bytes.split_at(length);
            self.write(at, now)?;
            bytes = rest;
        }
        Ok(())
    }

    /// Makes a page say that a record begins after its header.
    fn begin_page(&self, page: u64) -> Result<(), Failure> {
        const FLAGS: u64 = 2;
        const REMAINING: u64 = 16;
        /// Those of a page that begins with the rest of a record, or with what replaces one.
        const BEGINS_INSIDE: u16 = 0x0001 | 0x0008;
        let mut flags = [0; 2];
        self.read(Lsn(page + FLAGS), &mut flags)?;
        let flags = u16::from_le_bytes(flags) & !BEGINS_INSIDE;
        self.write(Lsn(page + FLAGS), &flags.to_le_bytes())?;
        self.write(Lsn(page + REMAINING), &[0; 4])
    }
}

/// Makes a copy of a [`Point`] go on from it: its directory has the source's log from
/// [`End::replay_from`](super::End::replay_from) on, and none of its own. It is afterwards what a standby is that was
/// stopped at X. One that went on before gets only the changed log.
///
/// # Errors
/// `WrongState` if it is not that point; `DataDamaged` if the log there is not the one that was replayed.
pub fn resume(files: &dyn DataDir, segment_bytes: u64, point: &Point) -> Result<(), Failure> {
    if Point::read(files, segment_bytes)?.as_ref() != Some(point) {
        return Err(not_possible("the copy is not that recovery point"));
    }
    let control = ControlFile::read(files)?;
    let (end, at) = (&point.end, point.end.replay_from());
    let checkpoint = control.checkpoint_moved_to(at, end.timeline);
    forge_log(&Log { files, segment_bytes }, end, &checkpoint)?;
    if point.is_where_it_began(&control) {
        return Ok(());
    }
    // The last: until here it is the point that it was, and from here on one that went on.
    let forged = control.forge(at, &checkpoint, (end.position, end.timeline));
    files.write_atomic(CONTROL_FILE, &forged, PRIVATE).map_err(|error| {
        Failure::internal(format!("the control file of a copy: {error}")).or_pool_full(&error)
    })
}

/// Puts C and the NOOP into the log.
fn forge_log(log: &Log<'_>, end: &End, checkpoint: &[u8; CHECKPOINT_BYTES]) -> Result<(), Failure> {
    let at = end.replay_from();
    let header = log.read_header(end.last)?;
    let (length, checksum) = (u32_at(&header, 0), u32_at(&header, 20));
    let noop = noop(end.length as usize, at);
    let (Some(noop), true) = (noop, (length, checksum) == (Some(end.length), Some(end.checksum)))
    else {
        return Err(damaged(PG_WAL, &format!("another record is at {}", end.last)));
    };
    log.write_record(end.last, &noop)?;
    log.write_record(at, &checkpoint_record(at, checkpoint))?;
    let page = at.0 / PAGE_BYTES * PAGE_BYTES;
    if at.0 == page + PageHeader::bytes_at(page, log.segment_bytes) {
        log.begin_page(page)?;
    }
    Ok(())
}
