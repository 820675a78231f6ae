//! Headers of the intent log's files, and the sectors its records are made of.
//!
//! ```text
//! file    0  8  magic "OSINTLOG"          sector  0  4  crc32c of "OSL2" and bytes 8-47
//!         8  4  version                           4  4  crc32c of bytes 48-511
//!        12  4  crc32c, computed with 0 here      8  4  length of the record's payload
//!        16  8  generation                       12  4  index of the sector in the record
//!        24  8  first sequence in this file      16  8  sequence of the record
//!        32  8  replay starts at this sequence   24  4  generation
//!        40     zeros up to 512; once more       28  4  records before it that were not synced
//!               at 512; zeros up to 4096         32  8  stream
//!                                                40  8  position in the stream
//!                                                48     464 bytes of the payload, at last zeros
//! ```
//!
//! Every sector identifies itself and has its own checksums. So a sector that a power loss kept from the
//! medium, which is blank or holds what was there before, can be distinguished from a damaged one. The
//! checksum of each part of a sector finds and corrects a single flipped bit.

use crate::{DecodeError, Reader};
use std::ops::Range;

/// Bytes before the first record of a file.
pub const LOG_HEADER_LEN: u64 = 4096;
/// What a device writes whole; records are made of these, so that a torn write never touches a synced one.
pub const SECTOR_LEN: usize = 512;
/// Bytes of the payload in a sector.
pub const SECTOR_BODY_LEN: usize = SECTOR_LEN - SECTOR_HEADER_LEN;

const SECTOR_HEADER_LEN: usize = 48;
/// What the checksum of a sector's header begins with.
const SECTOR_SEED: &[u8; 4] = b"OSL2";
/// Fewer bits than any sector of a record has set: that many in a blank sector have flipped.
const BLANK_BITS_MAX: u32 = 8;

const FILE_MAGIC: &[u8; 8] = b"OSINTLOG";
const VERSION: u32 = 2;

/// The header of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogFileHeader {
    /// Counts openings of the log: records of an older opening never follow those of a newer one.
    pub generation: u64,
    /// Sequence of the first record in this file.
    pub first_sequence: u64,
    /// Records before this sequence need no replay.
    pub trimmed: u64,
}

impl LogFileHeader {
    /// The header's bytes, twice; the rest of [`LOG_HEADER_LEN`] is ignored.
    pub fn encode(&self) -> [u8; 2 * SECTOR_LEN] {
        let mut bytes = [0; 2 * SECTOR_LEN];
        let (first, second) = bytes.split_at_mut(SECTOR_LEN);
        first[..8].copy_from_slice(FILE_MAGIC);
        first[8..12].copy_from_slice(&VERSION.to_le_bytes());
        first[16..24].copy_from_slice(&self.generation.to_le_bytes());
        first[24..32].copy_from_slice(&self.first_sequence.to_le_bytes());
        first[32..40].copy_from_slice(&self.trimmed.to_le_bytes());
        let checksum = crc32c::crc32c(first);
        first[12..16].copy_from_slice(&checksum.to_le_bytes());
        second.copy_from_slice(first);
        bytes
    }

    /// Reads one copy of a header, of this version or of the first.
    fn decode_copy(bytes: &[u8]) -> Result<(Self, u32), DecodeError> {
        let mut reader = Reader::new("intent log file", bytes);
        let mut copy: [u8; SECTOR_LEN] = reader.array()?;
        copy[12..16].fill(0);
        let mut reader = Reader::new("intent log file", bytes);
        if &reader.array::<8>()? != FILE_MAGIC {
            return Err(reader.error("has no header"));
        }
        let version = reader.u32()?;
        if reader.u32()? != crc32c::crc32c(&copy) {
            return Err(reader.error("has a damaged header"));
        }
        if !(1..=VERSION).contains(&version) {
            return Err(reader.error(format!("has version {version}")));
        }
        let header = LogFileHeader {
            generation: reader.count()?,
            first_sequence: reader.count()?,
            trimmed: reader.count()?,
        };
        if header.generation > u64::from(u32::MAX / 2) {
            return Err(reader.error("has been opened too often"));
        }
        Ok((header, version))
    }

    /// Reads a file's header.
    pub fn decode(bytes: &[u8]) -> FileHeaderState {
        let mut newest: Option<(Self, u32)> = None;
        for copy in bytes.chunks_exact(SECTOR_LEN).take(2) {
            let Ok((header, version)) = Self::decode_copy(copy) else { continue };
            let order = |header: &Self| (header.generation, header.first_sequence);
            // After a torn write one of them still holds the previous header.
            if newest.is_none_or(|(newest, _)| order(&header) > order(&newest)) {
                newest = Some((header, version));
            }
        }
        match newest {
            Some((header, VERSION)) => FileHeaderState::Begun(header),
            Some((header, _)) => FileHeaderState::First(header),
            None if count_bits(bytes) <= BLANK_BITS_MAX => FileHeaderState::Blank,
            None => FileHeaderState::Damaged,
        }
    }
}

/// What the beginning of a log file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileHeaderState {
    /// The file was never begun.
    Blank,
    /// A header of this version.
    Begun(LogFileHeader),
    /// A header of the first version: see [`version1`].
    First(LogFileHeader),
    /// There was a header.
    Damaged,
}

/// The header of every sector of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectorHeader {
    /// Bytes of the record's payload.
    pub length: u32,
    /// Which of the record's sectors it is.
    pub index: u32,
    /// Counts records over the life of the log.
    pub sequence: u64,
    /// The opening of the log that wrote it.
    pub generation: u32,
    /// How many records directly before it were not known to be durable; all earlier ones were.
    pub unsynced: u32,
    /// Whose record it is.
    pub stream: u64,
    /// How far that stream comes with this record.
    pub position: u64,
}

/// What a sector is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sector {
    /// Nothing was written.
    Blank,
    /// Part of a record; `mended`: a bit had flipped.
    Whole {
        /// What it says.
        header: SectorHeader,
        /// Whether a bit was turned back.
        mended: bool,
    },
    /// Unreadable, though its header may not be.
    Damaged(Option<SectorHeader>),
}

impl SectorHeader {
    /// Sectors of a record with a payload of so many bytes.
    pub fn count(length: usize) -> usize {
        length.div_ceil(SECTOR_BODY_LEN).max(1)
    }

    /// Bytes such a record takes in its file.
    pub fn stored_len(length: usize) -> u64 {
        (Self::count(length) * SECTOR_LEN) as u64
    }

    /// Appends a record, whose first sector's header this is, to `bytes`.
    pub fn encode_record<'a>(&self, parts: impl Iterator<Item = &'a [u8]>, bytes: &mut Vec<u8>) {
        let begin = bytes.len();
        bytes.resize(begin + Self::stored_len(self.length as usize) as usize, 0);
        let sectors = &mut bytes[begin..];
        let mut at = 0;
        for mut part in parts {
            while !part.is_empty() {
                let inside = at % SECTOR_BODY_LEN;
                let (now, rest) = part.split_at(part.len().min(SECTOR_BODY_LEN - inside));
                let to = at / SECTOR_BODY_LEN * SECTOR_LEN + SECTOR_HEADER_LEN + inside;
                sectors[to..to + now.len()].copy_from_slice(now);
                (part, at) = (rest, at + now.len());
            }
        }
        assert_eq!(at, self.length as usize, "a record's parts have its length");
        for (index, sector) in sectors.chunks_exact_mut(SECTOR_LEN).enumerate() {
            SectorHeader { index: index as u32, ..*self }.put(sector);
        }
    }

    fn put(&self, sector: &mut [u8]) {
        sector[8..12].copy_from_slice(&self.length.to_le_bytes());
        sector[12..16].copy_from_slice(&self.index.to_le_bytes());
        sector[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        sector[24..28].copy_from_slice(&self.generation.to_le_bytes());
        sector[28..32].copy_from_slice(&self.unsynced.to_le_bytes());
        sector[32..40].copy_from_slice(&self.stream.to_le_bytes());
        sector[40..48].copy_from_slice(&self.position.to_le_bytes());
        let body = crc32c::crc32c(&sector[SECTOR_HEADER_LEN..]);
        sector[4..8].copy_from_slice(&body.to_le_bytes());
        let header = header_checksum(sector);
        sector[..4].copy_from_slice(&header.to_le_bytes());
    }

    /// The header of a sector if it is as it was written, whatever happened to its body.
    pub fn peek(sector: &[u8]) -> Option<SectorHeader> {
        let mut reader = Reader::new("intent log sector", sector.get(..SECTOR_LEN)?);
        (reader.u32().ok()? == header_checksum(sector)).then_some(())?;
        reader.u32().ok()?;
        let (length, index) = (reader.u32().ok()?, reader.u32().ok()?);
        let (sequence, generation) = (reader.count().ok()?, reader.u32().ok()?);
        let (unsynced, stream) = (reader.u32().ok()?, reader.u64().ok()?);
        let position = reader.count().ok()?;
        Some(SectorHeader { length, index, sequence, generation, unsynced, stream, position })
    }

    /// Everything of the log before this sequence was durable when the record was appended.
    pub fn synced(&self) -> u64 {
        self.sequence.saturating_sub(u64::from(self.unsynced))
    }
}

impl Sector {
    /// Reads a sector, and corrects a flipped bit in it.
    ///
    /// # Panics
    /// When it has another length.
    pub fn read(sector: &mut [u8]) -> Sector {
        assert_eq!(sector.len(), SECTOR_LEN);
        if count_bits(sector) <= BLANK_BITS_MAX {
            return Sector::Blank;
        }
        let mut mended = false;
        let sound = |sector: &[u8]| SectorHeader::peek(sector).is_some();
        if !sound(sector) {
            mended = mend(sector, [0..4, 8..SECTOR_HEADER_LEN], sound);
        }
        let Some(header) = SectorHeader::peek(sector) else { return Sector::Damaged(None) };
        let sound = |sector: &[u8]| {
            crc32c::crc32c(&sector[SECTOR_HEADER_LEN..]).to_le_bytes() == sector[4..8]
        };
        if !sound(sector) {
            if !mend(sector, [4..8, SECTOR_HEADER_LEN..SECTOR_LEN], sound) {
                return Sector::Damaged(Some(header));
            }
            mended = true;
        }
        Sector::Whole { header, mended }
    }

    /// The part of a payload that a sector holds.
    pub fn body(sector: &[u8]) -> &[u8] {
        &sector[SECTOR_HEADER_LEN..]
    }
}

fn header_checksum(sector: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(SECTOR_SEED), &sector[8..SECTOR_HEADER_LEN])
}

fn count_bits(bytes: &[u8]) -> u32 {
    bytes.iter().map(|byte| byte.count_ones()).sum()
}

/// Flips bits in some ranges until one makes the sector sound. In so few bits CRC-32C detects any four
/// wrong ones, so damage of up to three bits is never mistaken for a different single one.
fn mend(sector: &mut [u8], ranges: [Range<usize>; 2], sound: impl Fn(&[u8]) -> bool) -> bool {
    for at in ranges.into_iter().flatten() {
        for bit in 0..8 {
            sector[at] ^= 1 << bit;
            if sound(sector) {
                return true;
            }
            sector[at] ^= 1 << bit;
        }
    }
    false
}

pub mod version1;

#[cfg(test)]
mod tests;
