//! Records of the first version, for pools that an older engine left.
//!
//! ```text
//! record  0  4  magic "OSLR"              16  8  sequence
//!         4  4  crc32c of bytes 8..       24  8  generation
//!               and the payload           32     payload, zeros up to a multiple of 512
//!         8  4  length of the payload
//! ```

use crate::{DecodeError, Reader};

/// Bytes of a record's header.
const HEADER_LEN: usize = 32;

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Counts records over the life of the log.
    pub sequence: u64,
    /// The opening of the log that wrote it.
    pub generation: u64,
}

impl RecordHeader {
    /// Reads the record at the start of `bytes`: its header and payload. An error if there is no
    /// whole, undamaged record.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::new("intent log record", bytes);
        if &reader.array::<4>()? != b"OSLR" {
            return Err(reader.error("is missing"));
        }
        let checksum = reader.u32()?;
        let length = reader.u32()?;
        if reader.u32()? != 0 {
            return Err(reader.error("has reserved bytes"));
        }
        let header = RecordHeader { sequence: reader.count()?, generation: reader.count()? };
        let payload = reader.bytes(length as usize)?;
        if crc32c::crc32c(&bytes[8..HEADER_LEN + payload.len()]) != checksum {
            return Err(reader.error("has a wrong checksum"));
        }
        Ok((header, payload))
    }

    /// Bytes a record takes in its file.
    pub fn stored_len(length: usize) -> usize {
        (HEADER_LEN + length).next_multiple_of(512)
    }
}
