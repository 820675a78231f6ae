//! The label: says that a directory is a pool, and in which format.

use crate::{DecodeError, Reader};

/// The version this engine writes; it reads no other.
pub const VERSION: u32 = 1;
/// Feature flags this engine knows. A pool with any other is refused.
pub const KNOWN_FEATURES: u64 = LOG_SECTORS | PAGE_SEGMENTS | ENCRYPTED;
/// Those that every pool of this engine has.
pub const BASE_FEATURES: u64 = LOG_SECTORS | PAGE_SEGMENTS;
/// The intent log consists of sectors that distinguish damage from a torn write; a dataset can be marked as
/// having lost operations.
pub const LOG_SECTORS: u64 = 1;
/// There may be segments of pages.
pub const PAGE_SEGMENTS: u64 = 2;
/// Blocks, table, roots, intent log and catalog are sealed with the data key of the file `encryption`.
pub const ENCRYPTED: u64 = 4;
/// Length of an encoded label in bytes.
pub const LEN: usize = 40;

const MAGIC: &[u8; 8] = b"OFFSHOOT";

/// What the file `label` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// The format's version.
    pub version: u32,
    /// Features without which the pool must not be opened.
    pub features: u64,
    /// Random; distinguishes pools. Part of every segment's header.
    pub pool_id: [u8; 16],
}

impl Label {
    /// The label of a new pool.
    pub fn new(pool_id: [u8; 16]) -> Label {
        Label { version: VERSION, features: BASE_FEATURES, pool_id }
    }

    /// The label of a new encrypted pool.
    pub fn new_encrypted(pool_id: [u8; 16]) -> Label {
        Label { features: BASE_FEATURES | ENCRYPTED, ..Label::new(pool_id) }
    }

    /// Whether the pool is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.features & ENCRYPTED != 0
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.features.to_le_bytes());
        bytes.extend_from_slice(&self.pool_id);
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a label of any version whose fields are where this version has them.
    pub fn decode(bytes: &[u8]) -> Result<Label, DecodeError> {
        let mut reader = Reader::new("label", bytes);
        if &reader.array()? != MAGIC {
            return Err(reader.error("it does not begin with OFFSHOOT"));
        }
        let label =
            Label { version: reader.u32()?, features: reader.u64()?, pool_id: reader.array()? };
        // A later version may have its checksum elsewhere, so check its number first.
        if label.version == VERSION && reader.u32()? != crc32c::crc32c(&bytes[..LEN - 4]) {
            return Err(reader.error("wrong checksum"));
        }
        Ok(label)
    }

    /// Why this engine must not open the pool, if so.
    pub fn refusal(&self) -> Option<String> {
        if self.version != VERSION {
            return Some(format!("version {}, known is {VERSION}", self.version));
        }
        let unknown = self.features & !KNOWN_FEATURES;
        (unknown != 0).then(|| format!("unknown feature flags {unknown:#x}"))
    }
}

#[cfg(test)]
mod tests;
