//! Segment files: a header, then blocks one after another, each after a frame header; or whole pages
//! without headers, so that the room of each can be given back to the device on its own.

use crate::seal::{Purpose, Seal, Seals};
use crate::{DecodeError, Reader};
use offshoot_types::BlockHash;

/// Length of a segment's header in bytes.
pub const HEADER_LEN: u32 = 64;
/// Length of each block of a segment of pages, in bytes: not compressed, and data.
pub const PAGE_LEN: u32 = 8192;
/// The unit in which a device gives room back, in bytes: pages begin at multiples of it.
const DEVICE_PAGE: u32 = 4096;
/// Length of a frame's header in bytes; the stored content follows it.
pub const FRAME_LEN: u32 = 48;
/// Frames begin at multiples of this, in bytes.
pub const FRAME_ALIGN: u32 = 8;
/// The longest a segment may be: offsets take 26 bits in the table.
pub const SEGMENT_LEN_MAX: u64 = 1 << 26;
/// The largest number of a segment: that of the next one is a number too.
pub const SEGMENT_MAX: u32 = u32::MAX - 1;

const FRAMES_MAGIC: &[u8; 8] = b"OFSSEGM1";
const PAGES_MAGIC: &[u8; 8] = b"OFSSEGP1";
const FRAME_MAGIC: u16 = 0x0FB1;
const SEALED_FRAME_MAGIC: u16 = 0x0FB2;
/// What the seal of a frame also covers: magic number, kind, codec, lengths.
const SEALED_WITH: std::ops::Range<usize> = 4..16;

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
    /// Raw, in a segment of pages: [`PAGE_LEN`] bytes of data.
    Page = 3,
}

/// How blocks lie in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Layout {
    /// Each after a frame header, at a multiple of [`FRAME_ALIGN`].
    #[default]
    Frames,
    /// [`PAGE_LEN`] bytes each and nothing else: a page's name is its hash.
    Pages,
}

impl Layout {
    /// Each of them, where its number says.
    pub const ALL: [Layout; 2] = [Layout::Frames, Layout::Pages];

    /// Where the first block begins, in bytes.
    pub fn begin(self) -> u32 {
        match self {
            Layout::Frames => HEADER_LEN,
            Layout::Pages => DEVICE_PAGE,
        }
    }

    /// Bytes before a block's stored content.
    pub fn frame_len(self) -> u32 {
        match self {
            Layout::Frames => FRAME_LEN,
            Layout::Pages => 0,
        }
    }

    /// The room of a block with `stored_len` bytes: header, content, padding.
    pub fn room(self, stored_len: u32) -> u32 {
        (self.frame_len() + stored_len).next_multiple_of(FRAME_ALIGN)
    }
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
        let all = [Codec::Raw, Codec::Zstd, Codec::Lz4, Codec::Page];
        all.into_iter().find(|codec| *codec as u8 == number)
    }

    /// In what segments its blocks lie.
    pub fn layout(self) -> Layout {
        if self == Codec::Page { Layout::Pages } else { Layout::Frames }
    }
}

/// The header of a segment file, with zeros up to its first block.
pub fn encode_segment_header(pool_id: &[u8; 16], number: u32, layout: Layout) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(layout.begin() as usize);
    bytes.extend_from_slice(match layout {
        Layout::Frames => FRAMES_MAGIC,
        Layout::Pages => PAGES_MAGIC,
    });
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(pool_id);
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.resize(layout.begin() as usize, 0);
    bytes
}

/// Checks the header of a segment file; returns (pool id, number, layout).
pub fn decode_segment_header(bytes: &[u8]) -> Result<([u8; 16], u32, Layout), DecodeError> {
    let mut reader = Reader::new("segment header", bytes);
    let covered = bytes.get(..28).unwrap_or_default();
    let layout = match &reader.array()? {
        FRAMES_MAGIC => Layout::Frames,
        PAGES_MAGIC => Layout::Pages,
        _ => return Err(reader.error("it begins neither with OFSSEGM1 nor with OFSSEGP1")),
    };
    let number = reader.u32()?;
    let pool_id = reader.array()?;
    if reader.u32()? != crc32c::crc32c(covered) {
        return Err(reader.error("wrong checksum"));
    }
    Ok((pool_id, number, layout))
}

/// What is known about a stored block; in a segment of frames it precedes the content.
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
    /// The header's bytes.
    pub fn encode(&self) -> [u8; FRAME_LEN as usize] {
        let (kind, codec) = (self.kind, self.codec);
        let (stored_len, raw_len) = (self.stored_len, self.raw_len);
        Head { kind, codec, stored_len, raw_len }.encode(FRAME_MAGIC, &self.hash.0)
    }

    /// Reads a header; a place without one (a hole, the end) is an error.
    pub fn decode(bytes: &[u8]) -> Result<Frame, DecodeError> {
        let (head, mut reader) = Head::decode(bytes, FRAME_MAGIC)?;
        let Head { kind, codec, stored_len, raw_len } = head;
        Ok(Frame { hash: reader.hash()?, kind, codec, stored_len, raw_len })
    }

    /// Seals stored content where it is; returns the header that goes before it.
    pub fn seal(
        &self,
        seals: &Seals,
        stored: &mut [u8],
    ) -> Result<[u8; FRAME_LEN as usize], DecodeError> {
        let (kind, codec) = (self.kind, self.codec);
        let (stored_len, raw_len) = (self.stored_len, self.raw_len);
        let head = Head { kind, codec, stored_len, raw_len };
        let blank = head.encode(SEALED_FRAME_MAGIC, &[0; 32]);
        let seal = seals.seal_apart(Purpose::Block, &blank[SEALED_WITH], stored)?;
        Ok(head.encode(SEALED_FRAME_MAGIC, &seal.encode()))
    }
}

/// What precedes a block in an encrypted pool: not its name, which says what the content is. Whoever
/// opens the content knows the name from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedFrame {
    /// Data or node.
    pub kind: BlockKind,
    /// How it is stored.
    pub codec: Codec,
    /// Bytes stored, 1 to 65,536.
    pub stored_len: u32,
    /// Bytes before compression, 1 to 65,536.
    pub raw_len: u32,
    sealed_with: [u8; SEALED_WITH.end - SEALED_WITH.start],
    seal: Seal,
}

impl SealedFrame {
    /// Reads a header.
    pub fn decode(bytes: &[u8]) -> Result<SealedFrame, DecodeError> {
        let (head, mut reader) = Head::decode(bytes, SEALED_FRAME_MAGIC)?;
        let Head { kind, codec, stored_len, raw_len } = head;
        let seal = Seal::decode(&mut reader)?;
        let sealed_with = Reader::new("frame", &bytes[SEALED_WITH]).array()?;
        Ok(SealedFrame { kind, codec, stored_len, raw_len, sealed_with, seal })
    }

    /// The stored content that was sealed.
    pub fn open(&self, seals: &Seals, sealed: &[u8]) -> Result<Vec<u8>, DecodeError> {
        seals.open_apart(Purpose::Block, &self.sealed_with, &self.seal, sealed)
    }
}

/// What every frame's header says.
struct Head {
    kind: BlockKind,
    codec: Codec,
    stored_len: u32,
    raw_len: u32,
}

impl Head {
    fn encode(&self, magic: u16, rest: &[u8; 32]) -> [u8; FRAME_LEN as usize] {
        let mut bytes = [0; FRAME_LEN as usize];
        bytes[4..6].copy_from_slice(&magic.to_le_bytes());
        bytes[6] = self.kind as u8;
        bytes[7] = self.codec as u8;
        bytes[8..12].copy_from_slice(&self.stored_len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.raw_len.to_le_bytes());
        bytes[16..].copy_from_slice(rest);
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads it; what follows it is left to the reader.
    fn decode(bytes: &[u8], magic: u16) -> Result<(Head, Reader<'_>), DecodeError> {
        let mut reader = Reader::new("frame", bytes);
        let crc = reader.u32()?;
        if bytes.get(4..FRAME_LEN as usize).map(crc32c::crc32c) != Some(crc) {
            return Err(reader.error("wrong checksum"));
        }
        if reader.u16()? != magic {
            return Err(reader.error("wrong magic number"));
        }
        let (kind, codec) = (reader.u8()?, reader.u8()?);
        let kind = BlockKind::from_u8(kind).ok_or_else(|| reader.error("unknown kind"))?;
        // A page has no frame.
        let codec = Codec::from_u8(codec).filter(|codec| codec.layout() == Layout::Frames);
        let codec = codec.ok_or_else(|| reader.error("unknown codec"))?;
        let (stored_len, raw_len) = (reader.u32()?, reader.u32()?);
        if !(1..=1 << 16).contains(&stored_len) || !(1..=1 << 16).contains(&raw_len) {
            return Err(reader.error("impossible length"));
        }
        Ok((Head { kind, codec, stored_len, raw_len }, reader))
    }
}

#[cfg(test)]
mod tests;
