//! The settings of a store.

use offshoot_pool::PoolOptions;
use std::time::Duration;

/// How a store works; the defaults suit an engine.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// How the pool works; its `cache_size` is the memory of the shared block cache.
    pub pool: PoolOptions,
    /// Bytes of one file of the intent log; a multiple of 4096. Fixed when the store is created.
    pub log_file_size: u64,
    /// Number of files of the intent log at first, at least 3.
    pub log_files: u32,
    /// Number of files that it grows to when load needs them.
    pub log_files_max: u32,
    /// A dataset that has changed is committed after this time.
    pub commit_interval: Duration,
    /// Bytes of changed data after which a dataset is committed immediately.
    pub dirty_limit: u64,
    /// Bytes of changed data of all datasets at which writers wait for commits.
    pub dirty_bound: u64,
    /// Threads that hash and compress for one commit; 0 = one per core.
    pub commit_workers: usize,
    /// Whether commits happen automatically. If not, the caller calls [`crate::Store::commit_all`]:
    /// a simulation does, so that a seed repeats a run exactly.
    pub background: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            pool: PoolOptions::default(),
            log_file_size: 16 << 20,
            log_files: 3,
            log_files_max: 8,
            commit_interval: Duration::from_secs(5),
            dirty_limit: 64 << 20,
            dirty_bound: 512 << 20,
            commit_workers: 0,
            background: true,
        }
    }
}
