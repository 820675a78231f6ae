//! Keys and values of a dataset's tree.
//!
//! ```text
//! key                                          value
//! 01 ino                                       inode: see InodeRecord; child: root of the block map
//! 02 directory hash name                       ino 8, kind 1
//! 03 ino name                                  0 and the value, or 1 with a child: a data block
//! 04 ino                                       (empty) an inode without a name that was open
//! ```
//! Inode numbers and name hashes are big-endian, so that keys sort by them.

use crate::tree::Value;
use crate::{DecodeError, Reader};
use offshoot_types::{BlockHash, Ino};

const INODE: u8 = 1;
const NAME: u8 = 2;
const XATTR: u8 = 3;
const ORPHAN: u8 = 4;

/// The longest xattr value kept beside its key; longer ones are blocks of their own.
pub const XATTR_INLINE_MAX: usize = 512;

/// A point in time: seconds since 1970 (negative before) and nanoseconds of that second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamp {
    /// Seconds.
    pub seconds: i64,
    /// Nanoseconds, below 10⁹.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// Appends 12 bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.seconds.to_le_bytes());
        bytes.extend_from_slice(&self.nanoseconds.to_le_bytes());
    }

    /// Takes 12 bytes.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (seconds, nanoseconds) = (reader.u64()? as i64, reader.u32()?);
        if nanoseconds >= 1_000_000_000 {
            return Err(reader.error("has a time with too many nanoseconds"));
        }
        Ok(Timestamp { seconds, nanoseconds })
    }
}

/// What is kept of an inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InodeRecord {
    /// 1 file, 2 directory, 3 symbolic link, 4 pipe, 5 socket, 6 character, 7 block device.
    pub kind: u8,
    /// Permission bits.
    pub mode: u32,
    /// Names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number.
    pub rdev: u32,
    /// Bytes; of a directory its number of names.
    pub size: u64,
    /// Data blocks that are no holes.
    pub blocks: u64,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of the content.
    pub mtime: Timestamp,
    /// Last change of the inode.
    pub ctime: Timestamp,
    /// A directory's parent.
    pub parent: u64,
    /// Levels of the block map; 0: the root is the file's only data block.
    pub height: u8,
    /// Root of the block map.
    pub root: BlockHash,
    /// Target of a symbolic link.
    pub target: Vec<u8>,
}

impl InodeRecord {
    /// The value of a dataset's tree.
    pub fn encode(&self) -> Value {
        let mut bytes = vec![self.kind, self.height];
        for field in [self.mode, self.nlink, self.uid, self.gid, self.rdev] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        for field in [self.size, self.blocks, self.parent] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        for time in [self.atime, self.mtime, self.ctime] {
            time.encode(&mut bytes);
        }
        bytes.extend_from_slice(&self.target);
        let children = if self.root.is_zero() { vec![] } else { vec![self.root] };
        Value { children, bytes }
    }

    /// Reads such a value.
    pub fn decode(value: &Value) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("inode", &value.bytes);
        let (kind, height) = (reader.u8()?, reader.u8()?);
        let record = InodeRecord {
            kind,
            height,
            mode: reader.u32()?,
            nlink: reader.u32()?,
            uid: reader.u32()?,
            gid: reader.u32()?,
            rdev: reader.u32()?,
            size: reader.count()?,
            blocks: reader.count()?,
            parent: reader.u64()?,
            atime: Timestamp::decode(&mut reader)?,
            mtime: Timestamp::decode(&mut reader)?,
            ctime: Timestamp::decode(&mut reader)?,
            target: reader.rest().to_vec(),
            root: value.children.first().copied().unwrap_or(BlockHash::ZERO),
        };
        if !(1..=7).contains(&kind) || height > 5 || value.children.len() > 1 {
            return Err(reader.error(format!("has kind {kind} and height {height}")));
        }
        Ok(record)
    }
}

fn key_of(kind: u8, ino: Ino, rest: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(&ino.0.to_be_bytes());
    for part in rest {
        key.extend_from_slice(part);
    }
    key
}

/// Key of an inode.
pub fn inode_key(ino: Ino) -> Vec<u8> {
    key_of(INODE, ino, &[])
}

/// Key of a name in a directory; `hash` is [`name_hash`] of it.
pub fn name_key(directory: Ino, hash: u64, name: &[u8]) -> Vec<u8> {
    key_of(NAME, directory, &[&hash.to_be_bytes(), name])
}

/// Key before all names of a directory with this hash or a larger one.
pub fn names_from(directory: Ino, hash: u64) -> Vec<u8> {
    key_of(NAME, directory, &[&hash.to_be_bytes()])
}

/// Key of an extended attribute; with an empty name: before all of an inode.
pub fn xattr_key(ino: Ino, name: &[u8]) -> Vec<u8> {
    key_of(XATTR, ino, &[name])
}

/// Key that marks an inode without a name.
pub fn orphan_key(ino: Ino) -> Vec<u8> {
    key_of(ORPHAN, ino, &[])
}

/// Key before all orphans.
pub fn orphans_from() -> Vec<u8> {
    orphan_key(Ino(0))
}

fn split_key(kind: u8, key: &[u8]) -> Option<(Ino, &[u8])> {
    let rest = key.strip_prefix(&[kind])?;
    let (ino, rest) = rest.split_first_chunk::<8>()?;
    Some((Ino(u64::from_be_bytes(*ino)), rest))
}

/// The inode number of an inode's key.
pub fn parse_inode_key(key: &[u8]) -> Option<Ino> {
    split_key(INODE, key).filter(|(_, rest)| rest.is_empty()).map(|(ino, _)| ino)
}

/// Directory, hash and name of a name's key.
pub fn parse_name_key(key: &[u8]) -> Option<(Ino, u64, &[u8])> {
    let (directory, rest) = split_key(NAME, key)?;
    let (hash, name) = rest.split_first_chunk::<8>()?;
    Some((directory, u64::from_be_bytes(*hash), name))
}

/// Inode and name of an extended attribute's key.
pub fn parse_xattr_key(key: &[u8]) -> Option<(Ino, &[u8])> {
    split_key(XATTR, key)
}

/// The inode number of an orphan's key.
pub fn parse_orphan_key(key: &[u8]) -> Option<Ino> {
    split_key(ORPHAN, key).filter(|(_, rest)| rest.is_empty()).map(|(ino, _)| ino)
}

/// The value of a name.
pub fn encode_name(ino: Ino, kind: u8) -> Value {
    let mut bytes = ino.0.to_le_bytes().to_vec();
    bytes.push(kind);
    Value { children: vec![], bytes }
}

/// Inode number and kind a name stands for.
pub fn decode_name(bytes: &[u8]) -> Result<(Ino, u8), DecodeError> {
    let mut reader = Reader::new("directory entry", bytes);
    Ok((Ino(reader.u64()?), reader.u8()?))
}

/// The position of a name in its directory, and its cookie in listings: SipHash-2-4 (Aumasson and
/// Bernstein, 2012) with a fixed key, brought into 16 ..= 2⁶³ - 1.
pub fn name_hash(name: &[u8]) -> u64 {
    let (k0, k1) = (0x6f66_6673_686f_6f74u64, 0x6469_7265_6374_6f72u64);
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let chunks = name.chunks_exact(8);
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    last[7] = name.len() as u8;
    for chunk in chunks.chain(std::iter::once(&last[..])) {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        v[3] ^= word;
        sip_round(&mut v);
        sip_round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..4).for_each(|_| sip_round(&mut v));
    ((v[0] ^ v[1] ^ v[2] ^ v[3]) >> 1).max(16)
}

fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests;
