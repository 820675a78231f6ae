//! The cache.

use crate::block_data::{BlockData, BlockHashBuilder};
use crate::owners::{OwnerStats, Owners};
use offshoot_types::{BLOCK_SIZE, BlockHash};
use quick_cache::sync::{Cache, DefaultLifecycle, GuardResult, PlaceholderGuard};
use quick_cache::{OptionsBuilder, Weighter};
use std::time::Duration;

/// What an entry takes in addition to its content, in bytes: name, list links, hash slot, the share
/// of the memory of evicted names, reference counts, the allocator's header. A test compares this
/// with what is measured.
const ENTRY_OVERHEAD: u64 = 224;
/// The longest block, in bytes; every part must hold many of them.
const BLOCK_LEN_MAX: u64 = 64 << 10;

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

#[derive(Debug, Clone, Copy)]
struct Bytes;

impl Weighter<BlockHash, BlockData> for Bytes {
    fn weight(&self, _: &BlockHash, block: &BlockData) -> u64 {
        block.len() as u64 + ENTRY_OVERHEAD
    }
}

type Blocks =
    Cache<BlockHash, BlockData, Bytes, BlockHashBuilder, DefaultLifecycle<BlockHash, BlockData>>;

/// The right to load one block: others who want it wait until it is filled or dropped.
pub struct Claim<'a>(
    PlaceholderGuard<
        'a,
        BlockHash,
        BlockData,
        Bytes,
        BlockHashBuilder,
        DefaultLifecycle<BlockHash, BlockData>,
    >,
);

impl Claim<'_> {
    /// Puts the block in.
    pub fn fill(self, block: BlockData) {
        // Refused if the entry was removed in the meantime; then it is just not kept.
        let _ = self.0.insert(block);
    }
}

/// A bounded cache of blocks by name.
pub struct BlockCache {
    size: u64,
    blocks: Blocks,
    owners: Owners,
}

impl BlockCache {
    /// A cache of at most `size` bytes, bookkeeping included.
    pub fn new(size: u64) -> BlockCache {
        let parts = (size / (BLOCK_LEN_MAX * 32)).clamp(1, 64) as usize;
        let options =
            OptionsBuilder::new()
                .shards(if parts.is_power_of_two() { parts } else { parts.next_power_of_two() / 2 })
                .estimated_items_capacity(
                    (size / (BLOCK_SIZE as u64 + ENTRY_OVERHEAD)).max(32) as usize
                )
                .weight_capacity(size)
                .build();
        let blocks = match options {
            Ok(options) => {
                Blocks::with_options(options, Bytes, BlockHashBuilder, DefaultLifecycle::default())
            }
            // Only a missing setting can fail, and both required ones are given.
            Err(_) => Blocks::with(32, size, Bytes, BlockHashBuilder, DefaultLifecycle::default()),
        };
        BlockCache { size, blocks, owners: Owners::new() }
    }

    /// A block that is in memory. Counts a hit if it is, otherwise nothing.
    pub fn get(&self, hash: &BlockHash, owner: u64) -> Option<BlockData> {
        let found = self.blocks.get(hash);
        if found.is_some() {
            self.owners.count(owner, true);
        }
        found
    }

    /// A block from memory (a hit) or from `load` (a miss). If several callers miss the same block
    /// at the same time, one loads it and the others wait; if it fails, the next one tries.
    pub fn get_or_load<E>(
        &self,
        hash: &BlockHash,
        owner: u64,
        load: impl FnOnce() -> Result<BlockData, E>,
    ) -> Result<BlockData, E> {
        match self.blocks.get_value_or_guard(hash, None) {
            GuardResult::Value(block) => {
                self.owners.count(owner, true);
                Ok(block)
            }
            GuardResult::Guard(guard) => {
                self.owners.count(owner, false);
                let block = load()?;
                // Refused if the entry was removed in the meantime; then it is just not kept.
                let _ = guard.insert(block.clone());
                Ok(block)
            }
            GuardResult::Timeout => {
                self.owners.count(owner, false);
                load()
            }
        }
    }

    /// The right to load a block; `None` when it is in memory or somebody loads it. Counts nothing and
    /// never waits. A holder of claims must not wait for other blocks: two holders would wait for each
    /// other.
    pub fn claim(&self, hash: &BlockHash) -> Option<Claim<'_>> {
        match self.blocks.get_value_or_guard(hash, Some(Duration::ZERO)) {
            GuardResult::Guard(guard) => Some(Claim(guard)),
            GuardResult::Value(_) | GuardResult::Timeout => None,
        }
    }

    /// Counts a block that was brought in for a reader, who does not ask for it again.
    pub fn count_miss(&self, owner: u64) {
        self.owners.count(owner, false);
    }

    /// Whether a block is in memory; counts nothing.
    pub fn contains(&self, hash: &BlockHash) -> bool {
        self.blocks.contains_key(hash)
    }

    /// A block that is in memory, without counting or marking it as used.
    pub fn peek(&self, hash: &BlockHash) -> Option<BlockData> {
        self.blocks.peek(hash)
    }

    /// Puts a block in.
    pub fn insert(&self, hash: BlockHash, block: BlockData) {
        self.blocks.insert(hash, block);
    }

    /// Puts a block in that somebody will read: it stays as long as one that was read.
    pub fn insert_as_read(&self, hash: BlockHash, block: BlockData) {
        self.blocks.insert(hash, block);
        let _ = self.blocks.get(&hash);
    }

    /// Drops a block.
    pub fn remove(&self, hash: &BlockHash) {
        self.blocks.remove(hash);
    }

    /// Drops everything, as for a cold start.
    pub fn clear(&self) {
        self.blocks.clear();
    }

    /// Drops an owner's counters.
    pub fn forget_owner(&self, owner: u64) {
        self.owners.forget(owner);
    }

    /// Figures.
    pub fn stats(&self) -> CacheStats {
        let owners = self.owners.stats();
        CacheStats {
            size: self.size,
            used: self.blocks.weight(),
            blocks: self.blocks.len() as u64,
            hits: owners.iter().map(|owner| owner.hits).sum(),
            misses: owners.iter().map(|owner| owner.misses).sum(),
            owners,
        }
    }
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCache").field("size", &self.size).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
