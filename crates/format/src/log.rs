//! Headers of the intent log's files and records.
//!
//! ```text
//! file    0  8  magic "OSINTLOG"          record   0  4  magic "OSLR"
//!         8  4  version                            4  4  crc32c of bytes 8.. and the payload
//!        12  4  crc32c, computed with 0 here       8  4  length of the payload
//!        16  8  generation                        12  4  0
//!        24  8  first sequence in this file       16  8  sequence
//!        32  8  replay starts at this sequence    24  8  generation
//!        40     zeros up to 4096                  32     payload, zeros up to a multiple of 512
//! ```

use crate::{DecodeError, Reader};

/// Bytes before the first record of a file.
pub const LOG_HEADER_LEN: u64 = 4096;
/// Bytes of a record's header.
pub const RECORD_HEADER_LEN: usize = 32;
/// Records start at multiples of this, so that a torn write never touches a synced sector.
pub const RECORD_ALIGN: usize = 512;

const FILE_MAGIC: &[u8; 8] = b"OSINTLOG";
const RECORD_MAGIC: &[u8; 4] = b"OSLR";
const VERSION: u32 = 1;

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
    /// The header's bytes; the rest of [`LOG_HEADER_LEN`] is not looked at.
    pub fn encode(&self) -> [u8; 512] {
        let mut bytes = [0; 512];
        bytes[..8].copy_from_slice(FILE_MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.trimmed.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header; an error for a file never begun or torn while it was.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("intent log file", bytes);
        let mut copy: [u8; 512] = reader.array()?;
        copy[12..16].fill(0);
        let mut reader = Reader::new("intent log file", bytes);
        if &reader.array::<8>()? != FILE_MAGIC {
            return Err(reader.error("has no header"));
        }
        let version = reader.u32()?;
        if reader.u32()? != crc32c::crc32c(&copy) {
            return Err(reader.error("has a damaged header"));
        }
        if version != VERSION {
            return Err(reader.error(format!("has version {version}")));
        }
        Ok(LogFileHeader {
            generation: reader.count()?,
            first_sequence: reader.count()?,
            trimmed: reader.count()?,
        })
    }
}

/// The header of a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRecordHeader {
    /// Bytes of the payload.
    pub length: u32,
    /// Counts records over the life of the log.
    pub sequence: u64,
    /// The opening of the log that wrote it.
    pub generation: u64,
}

impl LogRecordHeader {
    /// The header's bytes for the payload whose checksum, seeded by
    /// [`LogRecordHeader::checksum_seed`], is `checksum`.
    pub fn encode(&self, checksum: u32) -> [u8; RECORD_HEADER_LEN] {
        let mut bytes = [0; RECORD_HEADER_LEN];
        bytes[..4].copy_from_slice(RECORD_MAGIC);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        bytes[8..].copy_from_slice(&self.tail());
        bytes
    }

    fn tail(&self) -> [u8; RECORD_HEADER_LEN - 8] {
        let mut tail = [0; RECORD_HEADER_LEN - 8];
        tail[..4].copy_from_slice(&self.length.to_le_bytes());
        tail[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        tail[16..24].copy_from_slice(&self.generation.to_le_bytes());
        tail
    }

    /// The checksum of the header's own fields; continue it over the payload.
    pub fn checksum_seed(&self) -> u32 {
        crc32c::crc32c(&self.tail())
    }

    /// Reads the record at the start of `bytes`: its header and payload. An error where there is no
    /// whole, undamaged record.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::new("intent log record", bytes);
        if &reader.array::<4>()? != RECORD_MAGIC {
            return Err(reader.error("is missing"));
        }
        let checksum = reader.u32()?;
        let length = reader.u32()?;
        if reader.u32()? != 0 {
            return Err(reader.error("has reserved bytes"));
        }
        let header =
            LogRecordHeader { length, sequence: reader.count()?, generation: reader.count()? };
        let payload = reader.bytes(length as usize)?;
        if crc32c::crc32c_append(header.checksum_seed(), payload) != checksum {
            return Err(reader.error("has a wrong checksum"));
        }
        Ok((header, payload))
    }

    /// Bytes the record takes in its file.
    pub fn stored_len(length: usize) -> u64 {
        (RECORD_HEADER_LEN + length).next_multiple_of(RECORD_ALIGN) as u64
    }
}

#[cfg(test)]
mod tests;
