//! Figures about a pool.

use offshoot_types::BlockHash;

pub use offshoot_cache::{CacheStats, OwnerStats};

/// A snapshot of the pool's figures; bytes unless the name says otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PoolStats {
    /// What the pool may take in all: its use plus what is free on the device (or the set limit).
    pub capacity: u64,
    /// What the pool's segments and table take on the device now.
    pub used: u64,
    /// What writers may still take before the reserve.
    pub free: u64,
    /// What is also kept, for what must continue when the pool is full.
    pub reserve: u64,
    /// Stored bytes of blocks that something refers to, frames included.
    pub live: u64,
    /// The same blocks before compression.
    pub raw: u64,
    /// The raw length of data blocks, counted once per reference from a stored node.
    pub referenced: u64,
    /// Blocks in the table.
    pub blocks: u64,
    /// Of these, nodes.
    pub nodes: u64,
    /// Bytes of zero blocks that were written and take no space, since the pool was created.
    pub zero_saved: u64,
    /// Bytes of writes that were already stored, since the pool was created.
    pub dedup_saved: u64,
    /// `raw` ÷ `live`; 1 when empty.
    pub compression_ratio: f64,
    /// `referenced` ÷ raw length of the data blocks; 1 when empty.
    pub dedup_ratio: f64,
    /// Dead nodes whose children are still to be released.
    pub reclaim_queue: u64,
    /// Segment files.
    pub segments: u64,
    /// Bytes that compaction moved since the pool was opened.
    pub compacted: u64,
    /// Bytes of pages that were written over dead ones since the pool was opened.
    pub written_over: u64,
    /// Checkpoints of the table written since the pool was opened.
    pub checkpoints: u64,
    /// Memory of the block table.
    pub table_memory: u64,
    /// The cache's figures.
    pub cache: CacheStats,
    /// Damage found since the pool was opened.
    pub faults: u64,
}

/// Damage that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The block, or [`BlockHash::ZERO`] for a structure of the pool itself.
    pub hash: BlockHash,
    /// The segment file's number.
    pub segment: u32,
    /// Where in it, in bytes.
    pub offset: u32,
    /// What is wrong.
    pub detail: String,
    /// Seconds since 1970.
    pub found_at_unix_s: u64,
    /// How many times it was met.
    pub count: u64,
}

/// How far a scrub is and what it found. With it, another run of the pool can continue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScrubState {
    /// The segment it is at.
    pub segment: u32,
    /// The byte of it up to which everything is done.
    pub offset: u32,
    /// The last segment it comes to.
    pub until: u32,
    /// Blocks read and verified.
    pub blocks: u64,
    /// Their stored bytes, frames included.
    pub bytes: u64,
    /// What `bytes` will be at the end, as far as is known.
    pub total: u64,
    /// Blocks that are damaged; also in [`crate::Pool::faults`].
    pub damaged: u64,
    /// Blocks that were damaged and are stored again.
    pub healed: u64,
    /// Whether it came to its end.
    pub finished: bool,
}
