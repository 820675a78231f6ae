//! Segment files: a header, then blocks one after another, each behind a frame header.

use crate::{DecodeError, Reader};
use offshoot_types::BlockHash;

/// Length of a segment's header in bytes; the first frame follows it.
pub const HEADER_LEN: u32 = 64;
/// Length of a frame's header in bytes; the stored content follows it.
pub const FRAME_LEN: u32 = 48;
/// Frames begin at multiples of this, in bytes.
pub const FRAME_ALIGN: u32 = 8;
/// The longest a segment may be: offsets take 26 bits in the table.
pub const SEGMENT_LEN_MAX: u64 = 1 << 26;
/// The largest number of a segment: that of the next one is a number too.
pub const SEGMENT_MAX: u32 = u32::MAX - 1;

const SEGMENT_MAGIC: &[u8; 8] = b"OFSSEGM1";
const FRAME_MAGIC: u16 = 0x0FB1;

/// What a block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockKind {
    /// Bytes that mean nothing to the pool.
    Data = 0,
    /// A node, which lists the hashes of its children.
    Node = 1,
}

/// How the content is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Codec {
    /// As it is.
    Raw = 0,
    /// One zstd frame.
    Zstd = 1,
    /// One LZ4 block.
    Lz4 = 2,
}

impl BlockKind {
    /// The kind of a number on disk.
    pub fn from_u8(number: u8) -> Option<BlockKind> {
        [BlockKind::Data, BlockKind::Node].into_iter().find(|kind| *kind as u8 == number)
    }
}

impl Codec {
    /// The codec of a number on disk.
    pub fn from_u8(number: u8) -> Option<Codec> {
        [Codec::Raw, Codec::Zstd, Codec::Lz4].into_iter().find(|codec| *codec as u8 == number)
    }
}

/// The header of a segment file.
pub fn encode_segment_header(pool_id: &[u8; 16], number: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN as usize);
    bytes.extend_from_slice(SEGMENT_MAGIC);
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(pool_id);
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.resize(HEADER_LEN as usize, 0);
    bytes
}

/// Checks the header of a segment file; returns (pool id, number).
pub fn decode_segment_header(bytes: &[u8]) -> Result<([u8; 16], u32), DecodeError> {
    let mut reader = Reader::new("segment header", bytes);
    let covered = bytes.get(..28).unwrap_or_default();
    if &reader.array()? != SEGMENT_MAGIC {
        return Err(reader.error("it does not begin with OFSSEGM1"));
    }
    let number = reader.u32()?;
    let pool_id = reader.array()?;
    if reader.u32()? != crc32c::crc32c(covered) {
        return Err(reader.error("wrong checksum"));
    }
    Ok((pool_id, number))
}

/// What precedes a block's stored content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The block's name.
    pub hash: BlockHash,
    /// Data or node.
    pub kind: BlockKind,
    /// How it is stored.
    pub codec: Codec,
    /// Bytes stored, 1 to 65,536.
    pub stored_len: u32,
    /// Bytes before compression, 1 to 65,536.
    pub raw_len: u32,
}

impl Frame {
    /// The room of a block with `stored_len` bytes: header, content, padding.
    pub fn room(stored_len: u32) -> u32 {
        (FRAME_LEN + stored_len).next_multiple_of(FRAME_ALIGN)
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; FRAME_LEN as usize] {
        let mut bytes = [0; FRAME_LEN as usize];
        bytes[4..6].copy_from_slice(&FRAME_MAGIC.to_le_bytes());
        bytes[6] = self.kind as u8;
        bytes[7] = self.codec as u8;
        bytes[8..12].copy_from_slice(&self.stored_len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.raw_len.to_le_bytes());
        bytes[16..].copy_from_slice(&self.hash.0);
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header; a place without one (a hole, the end) is an error.
    pub fn decode(bytes: &[u8]) -> Result<Frame, DecodeError> {
        let mut reader = Reader::new("frame", bytes);
        let crc = reader.u32()?;
        if bytes.get(4..FRAME_LEN as usize).map(crc32c::crc32c) != Some(crc) {
            return Err(reader.error("wrong checksum"));
        }
        if reader.u16()? != FRAME_MAGIC {
            return Err(reader.error("wrong magic number"));
        }
        let (kind, codec) = (reader.u8()?, reader.u8()?);
        let kind = BlockKind::from_u8(kind).ok_or_else(|| reader.error("unknown kind"))?;
        let codec = Codec::from_u8(codec).ok_or_else(|| reader.error("unknown codec"))?;
        let (stored_len, raw_len) = (reader.u32()?, reader.u32()?);
        if !(1..=1 << 16).contains(&stored_len) || !(1..=1 << 16).contains(&raw_len) {
            return Err(reader.error("impossible length"));
        }
        Ok(Frame { hash: reader.hash()?, kind, codec, stored_len, raw_len })
    }
}

#[cfg(test)]
mod tests;
