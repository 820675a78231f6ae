//! The pool and its cache.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The shared block cache.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct CacheStatus {
    /// What it may hold.
    pub size_bytes: u64,
    /// What it holds.
    pub used_bytes: u64,
    /// How many blocks it holds.
    pub blocks: u64,
    /// Reads answered from it since the engine started.
    pub hits: u64,
    /// Reads it could not answer since the engine started.
    pub misses: u64,
    /// `hits` of all reads, from 0 to 1; 0 before the first read.
    pub hit_ratio: f64,
}

/// What the pool holds and what that takes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct PoolStatus {
    /// What the pool's data may take in all.
    pub capacity_bytes: u64,
    /// What the pool's files take.
    pub used_bytes: u64,
    /// What may still be added before the reserve is used.
    pub free_bytes: u64,
    /// What all datasets would take outside the pool.
    pub logical_bytes: u64,
    /// What reachable blocks take: `used_bytes` without garbage.
    pub live_bytes: u64,
    /// Uncompressed to compressed size of stored blocks.
    pub compression_ratio: f64,
    /// References to blocks for each stored block.
    pub dedup_ratio: f64,
    /// What blocks of zeros would have taken.
    pub zero_saved_bytes: u64,
    /// The shared block cache.
    pub cache: CacheStatus,
}
