//! What monitoring asks of how long an engine's work takes.

use offshoot_api::ObjectKind;
use offshoot_types::LatencyCounts;

/// How long everything took that an engine measures.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// Of each server whose files are mounted.
    pub files: Vec<FileLatencies>,
    /// Of the store's own work; `None` for who does not survey the engine.
    pub store: Option<StoreLatencies>,
}

/// How long one server has waited for its files, since they were mounted.
#[derive(Debug, Clone)]
pub struct FileLatencies {
    /// The name of the VDB, or of the dSource whose staging it is.
    pub owner: String,
    /// Which it is.
    pub kind: ObjectKind,
    /// For what it read.
    pub reads: LatencyCounts,
    /// For what it wrote.
    pub writes: LatencyCounts,
    /// For what it wrote to be durable.
    pub syncs: LatencyCounts,
    /// What it reads without asking; none: it asks.
    pub direct: Option<DirectReads>,
}

/// What a server reads without asking.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectReads {
    /// Blocks that it has read so.
    pub blocks: u64,
    /// Bytes of the memory of its trust group, and how many of them are in use.
    pub size: u64,
    /// See there.
    pub used: u64,
}

/// How long the store's own work took, since the engine was started.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreLatencies {
    /// Reads of the pool's device for blocks that were not in memory.
    pub pool_reads: LatencyCounts,
    /// Flushes of the intent log.
    pub log_flushes: LatencyCounts,
    /// Commits of the pool.
    pub commits: LatencyCounts,
}
