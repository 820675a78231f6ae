//! The name of a block.

use std::fmt;

/// Size of a data block in bytes: the page size of PostgreSQL.
pub const BLOCK_SIZE: usize = 8192;

/// The BLAKE3 hash of a block's uncompressed content.
///
/// It is at once the block's name, its checksum, the key of the deduplication index and the key of
/// the cache. [`BlockHash::ZERO`] stands for a block of zeros (a hole), which is never stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHash(pub [u8; 32]);

impl BlockHash {
    /// A hole: a block of zeros.
    pub const ZERO: BlockHash = BlockHash([0; 32]);

    /// Whether this names a hole.
    pub fn is_zero(&self) -> bool {
        *self == BlockHash::ZERO
    }
}

impl fmt::Debug for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &self.0[..8] {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
