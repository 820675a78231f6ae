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

/// What `offshoot pool check` looked at and found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PoolCheck {
    /// Blocks read and verified.
    pub blocks: u64,
    /// Their stored bytes.
    pub bytes: u64,
    /// Datasets.
    pub datasets: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Files, directories and the like of all of these; states they share count once.
    pub inodes: u64,
    /// Records of the intent log that the next start will apply.
    pub log_records: u64,
    /// What is not as it should be; empty for a sound pool.
    pub findings: Vec<PoolFinding>,
}

/// Something in a pool that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolFinding {
    /// The structure, dataset or snapshot.
    pub object: String,
    /// What is wrong.
    pub message: String,
}
