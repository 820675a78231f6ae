//! Frames: what travels, in files and by connections.
//!
//! ```text
//!  0  4  CRC-32C of bytes 4 to 15 and of the payload
//!  4  1  type
//!  5  1  codec of a block: 0 raw, 1 zstd frame, 2 LZ4 block; otherwise 0
//!  6  2  0
//!  8  4  length of the payload
//! 12  4  length of a block's content; otherwise 0
//! 16     payload
//! ```
//! Whoever reads frames trusts none of it: no length makes it allocate more than its type may have.

use offshoot_dataset::{BlockKind, Codec, PassingBlock};
use offshoot_format::directory::TreeState;
use offshoot_format::{DecodeError, Reader};

/// The version of frames and of what they mean.
pub const VERSION: u32 = 1;
/// Bytes before a payload.
pub const HEADER_LEN: usize = 16;
/// The longest manifest.
pub const MANIFEST_MAX: usize = 64 << 20;
/// The most states that one frame lists.
pub const STATES_MAX: usize = 1 << 14;
/// Bytes that a state takes.
const STATE_LEN: usize = 56;
/// The longest payload of a block.
const BLOCK_MAX: usize = 64 << 10;
/// Bytes of a digest.
const DIGEST_LEN: usize = 32;

/// The longest message.
pub const MESSAGE_MAX: usize = 64 << 10;

/// The most steps from a root to a node.
pub const PATH_MAX: usize = 24;
/// The most children that one want names: no node has more.
const CHILDREN_MAX: usize = 1 << 12;
/// The longest want.
const WANT_MAX: usize = 4 + 1 + 2 * PATH_MAX + 2 + 2 * CHILDREN_MAX;

/// Blocks that are asked for: children of a node, named by the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    /// The state.
    pub state: u32,
    /// From its root on, which child to take.
    pub path: Vec<u16>,
    /// Which children of the node there; none: the node itself.
    pub children: Vec<u16>,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameType {
    /// What the states are, for whoever reads them.
    Manifest = 1,
    /// Roots and sums of states.
    States = 2,
    /// A data block.
    Data = 3,
    /// A node.
    Node = 4,
    /// The end: BLAKE3 of everything before.
    End = 5,
    /// Blocks that are asked for.
    Want = 6,
    /// What two engines say to each other besides.
    Message = 7,
}

impl FrameType {
    const ALL: [FrameType; 7] = [
        FrameType::Manifest,
        FrameType::States,
        FrameType::Data,
        FrameType::Node,
        FrameType::End,
        FrameType::Want,
        FrameType::Message,
    ];

    /// The longest payload that it may have.
    fn payload_max(self) -> usize {
        match self {
            FrameType::Manifest => MANIFEST_MAX,
            FrameType::States => STATES_MAX * STATE_LEN,
            FrameType::Data | FrameType::Node => BLOCK_MAX,
            FrameType::End => DIGEST_LEN,
            FrameType::Want => WANT_MAX,
            FrameType::Message => MESSAGE_MAX,
        }
    }
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    crc: u32,
    /// What it is.
    pub kind: FrameType,
    /// How a block is compressed.
    codec: Codec,
    /// Bytes that follow.
    pub payload_len: usize,
    raw_len: u32,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// What the states are.
    Manifest(Vec<u8>),
    /// States.
    States(Vec<TreeState>),
    /// A block.
    Block(PassingBlock),
    /// BLAKE3 of everything before.
    End([u8; DIGEST_LEN]),
    /// Blocks that are asked for.
    Want(Want),
    /// A message: JSON, read by [`talk`](crate::talk).
    Message(Vec<u8>),
}

fn wrong(problem: impl Into<String>) -> DecodeError {
    DecodeError::new("frame", problem)
}

impl Header {
    /// Reads a header, without its checksum: that needs the payload.
    ///
    /// # Errors
    /// When no frame begins like this.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Header, DecodeError> {
        let mut reader = Reader::new("frame", bytes);
        let (crc, number, codec, zeros) =
            (reader.u32()?, reader.u8()?, reader.u8()?, reader.u16()?);
        let (payload_len, raw_len) = (reader.u32()? as usize, reader.u32()?);
        let kind = FrameType::ALL.into_iter().find(|kind| *kind as u8 == number);
        let kind = kind.ok_or_else(|| wrong(format!("type {number} is not known")))?;
        let codec = Codec::from_u8(codec).filter(|codec| *codec != Codec::Page);
        let codec = codec.ok_or_else(|| wrong("its codec is not known"))?;
        if payload_len > kind.payload_max() || zeros != 0 {
            return Err(wrong(format!("{payload_len} bytes are too many for it")));
        }
        Ok(Header { crc, kind, codec, payload_len, raw_len })
    }

    /// The frame, given the bytes that were its header and its payload.
    ///
    /// # Errors
    /// When the checksum is another, or the payload is not what its type has.
    pub fn frame(&self, header: &[u8; HEADER_LEN], payload: Vec<u8>) -> Result<Frame, DecodeError> {
        if crc32c::crc32c_append(crc32c::crc32c(&header[4..]), &payload) != self.crc {
            return Err(wrong("its checksum is another"));
        }
        Ok(match self.kind {
            FrameType::Manifest => Frame::Manifest(payload),
            FrameType::States => Frame::States(decode_states(&payload)?),
            FrameType::Data => Frame::Block(self.block(BlockKind::Data, payload)),
            FrameType::Node => Frame::Block(self.block(BlockKind::Node, payload)),
            FrameType::Want => Frame::Want(decode_want(&payload)?),
            FrameType::Message => Frame::Message(payload),
            FrameType::End => {
                Frame::End(payload.try_into().map_err(|_| wrong("its digest has another length"))?)
            }
        })
    }

    fn block(&self, kind: BlockKind, stored: Vec<u8>) -> PassingBlock {
        PassingBlock { kind, codec: self.codec, raw_len: self.raw_len, stored }
    }
}

impl Frame {
    /// The frame's bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Frame::Manifest(bytes) => encode(FrameType::Manifest, Codec::Raw, 0, bytes),
            Frame::States(states) => {
                encode(FrameType::States, Codec::Raw, 0, &encode_states(states))
            }
            Frame::Block(block) => encode_block(block),
            Frame::Want(want) => encode(FrameType::Want, Codec::Raw, 0, &encode_want(want)),
            Frame::Message(json) => encode(FrameType::Message, Codec::Raw, 0, json),
            Frame::End(digest) => encode(FrameType::End, Codec::Raw, 0, digest),
        }
    }
}

/// The frame of a block.
pub fn encode_block(block: &PassingBlock) -> Vec<u8> {
    let kind = match block.kind {
        BlockKind::Data => FrameType::Data,
        BlockKind::Node => FrameType::Node,
    };
    encode(kind, block.codec, block.raw_len, &block.stored)
}

fn encode(kind: FrameType, codec: Codec, raw_len: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + payload.len());
    bytes.extend_from_slice(&[0, 0, 0, 0, kind as u8, codec as u8, 0, 0]);
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&raw_len.to_le_bytes());
    bytes.extend_from_slice(payload);
    let crc = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn encode_want(want: &Want) -> Vec<u8> {
    let mut bytes = want.state.to_le_bytes().to_vec();
    bytes.push(want.path.len() as u8);
    want.path.iter().for_each(|step| bytes.extend_from_slice(&step.to_le_bytes()));
    bytes.extend_from_slice(&(want.children.len() as u16).to_le_bytes());
    want.children.iter().for_each(|child| bytes.extend_from_slice(&child.to_le_bytes()));
    bytes
}

fn decode_want(bytes: &[u8]) -> Result<Want, DecodeError> {
    let mut reader = Reader::new("want", bytes);
    let (state, steps) = (reader.u32()?, usize::from(reader.u8()?));
    if steps > PATH_MAX {
        return Err(reader.error(format!("goes {steps} steps")));
    }
    let path = (0..steps).map(|_| reader.u16()).collect::<Result<_, _>>()?;
    let children = reader.u16()?;
    let children = (0..children).map(|_| reader.u16()).collect::<Result<_, _>>()?;
    match reader.is_empty() {
        true => Ok(Want { state, path, children }),
        false => Err(reader.error("has more bytes than it says")),
    }
}

fn encode_states(states: &[TreeState]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(states.len() * STATE_LEN);
    for state in states {
        bytes.extend_from_slice(&state.root.0);
        for sum in [state.next_ino, state.inodes, state.blocks] {
            bytes.extend_from_slice(&sum.to_le_bytes());
        }
    }
    bytes
}

fn decode_states(bytes: &[u8]) -> Result<Vec<TreeState>, DecodeError> {
    let mut reader = Reader::new("states", bytes);
    let mut states = Vec::with_capacity(bytes.len() / STATE_LEN);
    while !reader.is_empty() {
        let root = reader.hash()?;
        if root.is_zero() {
            return Err(reader.error("a state has no root"));
        }
        let (next_ino, inodes, blocks) = (reader.count()?, reader.count()?, reader.count()?);
        states.push(TreeState { root, next_ino, inodes, blocks });
    }
    Ok(states)
}

#[cfg(test)]
mod tests;
