//! The shared block cache; knows blocks, never datasets.

use std::{ops::Deref, sync::Arc};

/// A block's content; cloning shares it.
#[derive(Clone, PartialEq, Eq)]
pub struct BlockData(Arc<[u8]>);

impl BlockData {
    /// Takes over a block's content.
    pub fn new(content: impl Into<Arc<[u8]>>) -> Self {
        BlockData(content.into())
    }
}

impl Deref for BlockData {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for BlockData {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for BlockData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlockData({} bytes)", self.0.len())
    }
}

/// Figures of the cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// The bound, in bytes.
    pub size: u64,
    /// Bytes taken, bookkeeping included.
    pub used: u64,
    /// Blocks held.
    pub blocks: u64,
    /// Reads answered from memory.
    pub hits: u64,
    /// Reads that went to disk.
    pub misses: u64,
    /// By owner (the number given to a read), sorted by owner.
    pub owners: Vec<OwnerStats>,
}

/// Figures of one owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerStats {
    /// The owner.
    pub owner: u64,
    /// Its reads answered from memory.
    pub hits: u64,
    /// Its reads that went to disk.
    pub misses: u64,
}
