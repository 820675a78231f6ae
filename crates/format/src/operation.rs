//! Operations on a dataset as the intent log keeps them.
//!
//! ```text
//! log record   0 8  dataset                operation  1 kind
//!              8 8  number of the first                 fields, little-endian; names with a length
//!             16 4  operations                          of 2 bytes; a write's data last
//!             20    each: length 4, operation
//! ```
//! The operations of a dataset are numbered from 1; a record whose first number does not follow the
//! last one applied is not applied, nor is anything later of that dataset.

use crate::inode::Timestamp;
use crate::{DecodeError, Reader};
use offshoot_types::{DatasetId, Ino};

/// One change of a dataset, with everything that replay must not invent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Bytes of a file.
    Write {
        /// Which file.
        ino: Ino,
        /// Where.
        offset: u64,
        /// When.
        time: Timestamp,
        /// What.
        data: &'a [u8],
    },
    /// A range of a file becomes zeros.
    Clear {
        /// Which file.
        ino: Ino,
        /// Where.
        offset: u64,
        /// Bytes.
        len: u64,
        /// The length afterwards.
        size: u64,
        /// When.
        time: Timestamp,
    },
    /// Changed attributes.
    SetAttr {
        /// Which inode.
        ino: Ino,
        /// New length.
        size: Option<u64>,
        /// New permission bits.
        mode: Option<u32>,
        /// New owner.
        uid: Option<u32>,
        /// New group.
        gid: Option<u32>,
        /// New time of last access.
        atime: Option<Timestamp>,
        /// New time of last change of the content.
        mtime: Option<Timestamp>,
        /// When.
        time: Timestamp,
    },
    /// A new inode with its first name.
    Create {
        /// The directory.
        parent: Ino,
        /// The name in it.
        name: &'a [u8],
        /// The new inode's number.
        ino: Ino,
        /// Its kind, as in an inode's record.
        kind: u8,
        /// Permission bits.
        mode: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Device number.
        rdev: u32,
        /// Target of a symbolic link.
        target: &'a [u8],
        /// When.
        time: Timestamp,
    },
    /// One more name.
    Link {
        /// Of which inode.
        ino: Ino,
        /// The directory.
        parent: Ino,
        /// The name in it.
        name: &'a [u8],
        /// When.
        time: Timestamp,
    },
    /// A name is removed, of a directory too.
    Unlink {
        /// The directory.
        parent: Ino,
        /// The name in it.
        name: &'a [u8],
        /// When.
        time: Timestamp,
    },
    /// A name changes; what had the new name loses it, or gets the old one.
    Rename {
        /// The directory.
        parent: Ino,
        /// The name in it.
        name: &'a [u8],
        /// The new directory.
        new_parent: Ino,
        /// The new name.
        new_name: &'a [u8],
        /// Whether the two names are exchanged.
        exchange: bool,
        /// When.
        time: Timestamp,
    },
    /// An extended attribute, set or (`None`) removed.
    Xattr {
        /// Of which inode.
        ino: Ino,
        /// Its name.
        name: &'a [u8],
        /// Its value.
        value: Option<&'a [u8]>,
        /// When.
        time: Timestamp,
    },
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn u8(self, value: u8) -> Self {
        self.0.push(value);
        self
    }
    fn u32(self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn u64(self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn ino(self, value: Ino) -> Self {
        self.u64(value.0)
    }
    fn time(self, value: Timestamp) -> Self {
        value.encode(self.0);
        self
    }
    fn name(self, value: &[u8]) -> Self {
        self.0.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.0.extend_from_slice(value);
        self
    }
    fn option<T>(self, value: Option<T>, put: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.u8(0),
            Some(value) => put(self.u8(1), value),
        }
    }
}

fn option<'a, T>(
    reader: &mut Reader<'a>,
    take: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    match reader.u8()? {
        0 => Ok(None),
        1 => take(reader).map(Some),
        other => Err(reader.error(format!("has the flag {other}"))),
    }
}

fn name<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let len = usize::from(reader.u16()?);
    reader.bytes(len)
}

impl<'a> Operation<'a> {
    /// Appends the operation without a write's data, which the caller adds after it.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let put = Writer(bytes);
        match *self {
            Operation::Write { ino, offset, time, data: _ } => {
                put.u8(1).ino(ino).u64(offset).time(time)
            }
            Operation::Clear { ino, offset, len, size, time } => {
                put.u8(2).ino(ino).u64(offset).u64(len).u64(size).time(time)
            }
            Operation::SetAttr { ino, size, mode, uid, gid, atime, mtime, time } => put
                .u8(3)
                .ino(ino)
                .option(size, Writer::u64)
                .option(mode, Writer::u32)
                .option(uid, Writer::u32)
                .option(gid, Writer::u32)
                .option(atime, Writer::time)
                .option(mtime, Writer::time)
                .time(time),
            Operation::Create { parent, name, ino, kind, mode, uid, gid, rdev, target, time } => {
                put.u8(4)
                    .ino(parent)
                    .name(name)
                    .ino(ino)
                    .u8(kind)
                    .u32(mode)
                    .u32(uid)
                    .u32(gid)
                    .u32(rdev)
                    .name(target)
                    .time(time)
            }
            Operation::Link { ino, parent, name, time } => {
                put.u8(5).ino(ino).ino(parent).name(name).time(time)
            }
            Operation::Unlink { parent, name, time } => put.u8(6).ino(parent).name(name).time(time),
            Operation::Rename { parent, name, new_parent, new_name, exchange, time } => put
                .u8(7)
                .ino(parent)
                .name(name)
                .ino(new_parent)
                .name(new_name)
                .u8(exchange.into())
                .time(time),
            Operation::Xattr { ino, name, value, time } => put
                .u8(8)
                .ino(ino)
                .name(name)
                .option(value, |put, value| {
                    let put = put.u32(value.len() as u32);
                    put.0.extend_from_slice(value);
                    put
                })
                .time(time),
        };
    }

    /// Reads one operation, a write's data included.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("logged operation", bytes);
        let take = &mut reader;
        let operation = match take.u8()? {
            1 => Operation::Write {
                ino: Ino(take.u64()?),
                offset: take.u64()?,
                time: Timestamp::decode(take)?,
                data: {
                    let rest = take.rest().len();
                    take.bytes(rest)?
                },
            },
            2 => Operation::Clear {
                ino: Ino(take.u64()?),
                offset: take.u64()?,
                len: take.u64()?,
                size: take.u64()?,
                time: Timestamp::decode(take)?,
            },
            3 => Operation::SetAttr {
                ino: Ino(take.u64()?),
                size: option(take, Reader::u64)?,
                mode: option(take, Reader::u32)?,
                uid: option(take, Reader::u32)?,
                gid: option(take, Reader::u32)?,
                atime: option(take, Timestamp::decode)?,
                mtime: option(take, Timestamp::decode)?,
                time: Timestamp::decode(take)?,
            },
            4..=7 => Self::decode_name_operation(bytes[0], take)?,
            8 => Operation::Xattr {
                ino: Ino(take.u64()?),
                name: name(take)?,
                value: option(take, |take| {
                    let len = take.u32()? as usize;
                    take.bytes(len)
                })?,
                time: Timestamp::decode(take)?,
            },
            kind => return Err(reader.error(format!("has kind {kind}"))),
        };
        if !reader.is_empty() {
            return Err(reader.error("has bytes behind it"));
        }
        Ok(operation)
    }

    fn decode_name_operation(kind: u8, take: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match kind {
            4 => Operation::Create {
                parent: Ino(take.u64()?),
                name: name(take)?,
                ino: Ino(take.u64()?),
                kind: take.u8()?,
                mode: take.u32()?,
                uid: take.u32()?,
                gid: take.u32()?,
                rdev: take.u32()?,
                target: name(take)?,
                time: Timestamp::decode(take)?,
            },
            5 => Operation::Link {
                ino: Ino(take.u64()?),
                parent: Ino(take.u64()?),
                name: name(take)?,
                time: Timestamp::decode(take)?,
            },
            6 => Operation::Unlink {
                parent: Ino(take.u64()?),
                name: name(take)?,
                time: Timestamp::decode(take)?,
            },
            _ => Operation::Rename {
                parent: Ino(take.u64()?),
                name: name(take)?,
                new_parent: Ino(take.u64()?),
                new_name: name(take)?,
                exchange: take.u8()? != 0,
                time: Timestamp::decode(take)?,
            },
        })
    }
}

/// Bytes of a batch's header.
pub const BATCH_HEADER_LEN: usize = 20;

/// The header of a log record of `count` operations.
pub fn encode_batch_header(dataset: DatasetId, first: u64, count: u32) -> [u8; BATCH_HEADER_LEN] {
    let mut bytes = [0; BATCH_HEADER_LEN];
    bytes[..8].copy_from_slice(&dataset.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&first.to_le_bytes());
    bytes[16..].copy_from_slice(&count.to_le_bytes());
    bytes
}

/// A log record: consecutive operations of one dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<'a> {
    /// Whose.
    pub dataset: DatasetId,
    /// Number of the first.
    pub first: u64,
    /// The operations, not yet decoded.
    pub operations: Vec<&'a [u8]>,
}

impl<'a> Batch<'a> {
    /// Reads a log record.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("logged batch", bytes);
        let (dataset, first) = (DatasetId(reader.u64()?), reader.count()?);
        let count = reader.u32()?;
        let mut operations = Vec::new();
        for _ in 0..count {
            let len = reader.u32()? as usize;
            operations.push(reader.bytes(len)?);
        }
        if !reader.is_empty() {
            return Err(reader.error("has bytes behind it"));
        }
        Ok(Batch { dataset, first, operations })
    }
}

#[cfg(test)]
mod tests;
