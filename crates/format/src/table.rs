//! The block table's files: a checkpoint and delta logs, both sequences of chunks of records.
//!
//! Records are absolute, not differences, so applying one twice does no harm.

use crate::segment::{BlockKind, Codec, Layout, PAGE_LEN, SEGMENT_LEN_MAX, SEGMENT_MAX};
use crate::{DecodeError, Reader};
use offshoot_types::BlockHash;

/// Length of a chunk's header in bytes.
pub const CHUNK_HEADER_LEN: usize = 20;
/// The longest payload of a chunk.
pub const CHUNK_LEN_MAX: usize = 1 << 30;

const CHUNK_MAGIC: u32 = 0x4C54_464F;
const PUT: u8 = 1;
const GONE: u8 = 2;
const PUT_LEN: usize = 54;
const GONE_LEN: usize = 33;
const NODE_FLAG: u8 = 0x80;

/// Where a block is and how often committed nodes refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableEntry {
    /// The segment file's number.
    pub segment: u32,
    /// Where its frame begins, or the page, in bytes.
    pub offset: u32,
    /// Bytes stored, without the frame.
    pub stored_len: u32,
    /// Bytes before compression.
    pub raw_len: u32,
    /// Data or node.
    pub kind: BlockKind,
    /// How it is stored.
    pub codec: Codec,
    /// References; 0 for a dead node whose children still count its references.
    pub refs: u32,
}

/// One change of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The block is there, exactly so.
    Put(BlockHash, TableEntry),
    /// The block is gone, and a node's children no longer count it.
    Gone(BlockHash),
}

impl Record {
    /// Appends the record's bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Record::Put(hash, entry) => {
                bytes.push(PUT);
                bytes.extend_from_slice(&hash.0);
                bytes.extend_from_slice(&entry.segment.to_le_bytes());
                bytes.extend_from_slice(&entry.offset.to_le_bytes());
                bytes.extend_from_slice(&entry.stored_len.to_le_bytes());
                bytes.extend_from_slice(&entry.raw_len.to_le_bytes());
                let node = if entry.kind == BlockKind::Node { NODE_FLAG } else { 0 };
                bytes.push(entry.codec as u8 | node);
                bytes.extend_from_slice(&entry.refs.to_le_bytes());
            }
            Record::Gone(hash) => {
                bytes.push(GONE);
                bytes.extend_from_slice(&hash.0);
            }
        }
    }

    /// The name of the record that the bytes begin with, and the record's length.
    pub fn peek(bytes: &[u8]) -> Result<(BlockHash, usize), DecodeError> {
        let mut reader = Reader::new("table record", bytes);
        let len = match reader.u8()? {
            PUT => PUT_LEN,
            GONE => GONE_LEN,
            other => return Err(reader.error(format!("unknown record {other}"))),
        };
        Ok((reader.hash()?, len))
    }

    /// Takes the next record of a chunk's payload.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Record, DecodeError> {
        let tag = reader.u8()?;
        let hash = reader.hash()?;
        match tag {
            GONE => Ok(Record::Gone(hash)),
            PUT => {
                let (segment, offset) = (reader.u32()?, reader.u32()?);
                let (stored_len, raw_len) = (reader.u32()?, reader.u32()?);
                let flags = reader.u8()?;
                let codec = Codec::from_u8(flags & !NODE_FLAG)
                    .ok_or_else(|| reader.error("unknown codec"))?;
                let kind = if flags & NODE_FLAG != 0 { BlockKind::Node } else { BlockKind::Data };
                let lengths = 1..=1 << 16;
                let layout = codec.layout();
                let page = (stored_len, raw_len, kind) == (PAGE_LEN, PAGE_LEN, BlockKind::Data)
                    && offset % PAGE_LEN == layout.begin() % PAGE_LEN;
                // Number 0: it is in no segment.
                if segment > SEGMENT_MAX
                    || (segment > 0 && offset < layout.begin())
                    || (layout == Layout::Pages && !page)
                    || u64::from(offset) >= SEGMENT_LEN_MAX
                    || !lengths.contains(&stored_len)
                    || !lengths.contains(&raw_len)
                {
                    return Err(reader.error("impossible place"));
                }
                let refs = reader.u32()?;
                let entry = TableEntry { segment, offset, stored_len, raw_len, kind, codec, refs };
                Ok(Record::Put(hash, entry))
            }
            other => Err(reader.error(format!("unknown record {other}"))),
        }
    }
}

/// The header that goes before a chunk's payload. `sequence` is the commit's txg in a log, the
/// chunk's index in a checkpoint.
pub fn encode_chunk_header(sequence: u64, payload: &[u8]) -> [u8; CHUNK_HEADER_LEN] {
    let mut bytes = [0; CHUNK_HEADER_LEN];
    bytes[..4].copy_from_slice(&CHUNK_MAGIC.to_le_bytes());
    bytes[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes[8..16].copy_from_slice(&sequence.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..16]), payload);
    bytes[16..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Reads a chunk's header: (sequence, length of the payload, checksum).
pub fn decode_chunk_header(bytes: &[u8]) -> Result<(u64, usize, u32), DecodeError> {
    let mut reader = Reader::new("table chunk", bytes);
    if reader.u32()? != CHUNK_MAGIC {
        return Err(reader.error("wrong magic number"));
    }
    let len = reader.u32()? as usize;
    if len > CHUNK_LEN_MAX {
        return Err(reader.error("impossible length"));
    }
    Ok((reader.u64()?, len, reader.u32()?))
}

/// Checks a chunk's payload against its header.
pub fn check_chunk(header: &[u8], payload: &[u8], checksum: u32) -> Result<(), DecodeError> {
    let covered = header.get(..16).unwrap_or_default();
    if crc32c::crc32c_append(crc32c::crc32c(covered), payload) != checksum {
        return Err(DecodeError::new("table chunk", "wrong checksum"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
