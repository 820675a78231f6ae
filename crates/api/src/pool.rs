//! The pool and its cache.

use crate::{JobState, LedgerKind};
use jiff::Timestamp;
use offshoot_types::JobId;
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

/// What the pool holds and the space it takes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct PoolStatus {
    /// What the pool's data may take in all.
    pub capacity_bytes: u64,
    /// What the pool's files take, without `ballast`, which is room kept free.
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
    /// How the pool is encrypted; absent if it is not.
    #[serde(default)]
    pub encryption: Option<PoolEncryption>,
    /// The shared block cache.
    pub cache: CacheStatus,
}

/// How a pool is encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolEncryption {
    /// The cipher.
    pub cipher: String,
    /// The id of the key that wraps the pool's own. It is kept outside of the pool.
    pub key_id: String,
}

/// A request to read and verify everything in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScrubPool {
    /// The most to read per second; 64 MiB if absent.
    pub bytes_per_s: Option<u64>,
}

/// A scrub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Scrub {
    /// The job that does it. It resumes after the engine was killed or replaced.
    #[schema(value_type = String, example = "job-12")]
    pub job: JobId,
    /// Where that stands.
    pub state: JobState,
    /// The most it reads per second.
    pub bytes_per_s: u64,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it ended.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// Stored bytes read and verified.
    pub done_bytes: u64,
    /// What that will be at the end.
    pub total_bytes: u64,
    /// Blocks read and verified.
    pub blocks: u64,
    /// Blocks it found damaged and could not heal.
    pub damaged_blocks: u64,
    /// Blocks it found damaged and stored again from a sound copy.
    pub healed_blocks: u64,
}

/// Something that holds a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockHolder {
    /// The name of a dSource or VDB, or a snapshot's id.
    #[schema(example = "dev")]
    pub object: String,
    /// What it is; null if no dSource, VDB or snapshot has it.
    #[schema(required)]
    pub kind: Option<LedgerKind>,
    /// For a snapshot, the name of what it was taken of.
    #[schema(required)]
    pub of: Option<String>,
    /// The file; null when the block holds names or inodes.
    #[schema(required, example = "data/base/5/16384")]
    pub path: Option<String>,
    /// The first byte of the file that is affected.
    #[schema(required)]
    pub offset: Option<u64>,
    /// How many are.
    #[schema(required)]
    pub len: Option<u64>,
}

/// A block whose stored content is not what it should be. It is replaced when the same content is written or
/// received again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DamagedBlock {
    /// The first digits of its name.
    pub block: String,
    /// The segment file it is in; null: in none.
    #[schema(required)]
    pub segment: Option<u32>,
    /// The byte in that file.
    #[schema(required)]
    pub segment_offset: Option<u32>,
    /// What is wrong with it.
    pub message: String,
    /// When that was found.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// What holds it; null while that is being looked up.
    #[schema(required)]
    pub holders: Option<Vec<BlockHolder>>,
    /// How many more places hold it.
    pub more_holders: u64,
}

/// The last scrub, and the known damage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScrubReport {
    /// The last or the running scrub; null if there was none.
    #[schema(required)]
    pub scrub: Option<Scrub>,
    /// Damaged blocks, however they were found.
    pub damage: Vec<DamagedBlock>,
}

/// What `offshoot pool check` checked and found.
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
    /// Problems; empty for a sound pool.
    pub findings: Vec<PoolFinding>,
    /// Damaged blocks, with what holds them.
    pub damage: Vec<DamagedBlock>,
}

/// A problem in a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolFinding {
    /// The structure, dataset or snapshot.
    pub object: String,
    /// What is wrong.
    pub message: String,
}
