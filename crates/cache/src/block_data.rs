//! A block's content and the hasher for block names.

use std::hash::{BuildHasher, Hasher};
use std::{ops::Deref, sync::Arc};

/// A block's content; cloning shares it. The reference count is a separate allocation: in front of the content it would
/// push an 8 KiB allocation into the allocator's next size class, and need a copy.
#[derive(Clone, PartialEq, Eq)]
pub struct BlockData(Arc<Box<[u8]>>);

impl BlockData {
    /// Takes over a block's content.
    pub fn new(content: impl Into<Box<[u8]>>) -> Self {
        BlockData(Arc::new(content.into()))
    }

    /// The content, to be changed in place if nobody else shares it.
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        Some(&mut **Arc::get_mut(&mut self.0)?)
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

/// Takes eight bytes of a block's name as they are: a cryptographic hash needs no hashing.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk::<8>() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    /// The length that precedes an array's bytes says nothing.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Makes [`BlockHasher`]s.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockHashBuilder;

impl BuildHasher for BlockHashBuilder {
    type Hasher = BlockHasher;
    fn build_hasher(&self) -> BlockHasher {
        BlockHasher::default()
    }
}
