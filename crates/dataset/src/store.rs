//! The store: a pool, its intent log and the directory of datasets and snapshots.

use crate::{Dataset, Error, Result};
use offshoot_os::Clock;
use offshoot_os::disk::Disk;
use offshoot_pool::{Fault, Pool, PoolOptions, PoolStats};
use offshoot_types::{DatasetId, SnapshotId};
use std::{sync::Arc, time::Duration, time::SystemTime};

/// How a store works; the defaults suit an engine.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// How the pool works; its `cache_size` is the memory of the shared block cache.
    pub pool: PoolOptions,
    /// Bytes of one file of the intent log; a multiple of 4096. There are [`Self::log_files`].
    pub log_file_size: u64,
    /// Number of files of the intent log, at least 3. Fixed when the store is created.
    pub log_files: u32,
    /// A dataset that has changed is committed after this time.
    pub commit_interval: Duration,
    /// Bytes of changed data after which a dataset is committed at once.
    pub dirty_limit: u64,
    /// Bytes of changed data of all datasets at which writers wait for commits.
    pub dirty_bound: u64,
    /// Threads that hash and compress for one commit; 0 = one per core.
    pub commit_workers: usize,
    /// Whether commits happen by themselves. Off, the caller calls [`Store::commit_all`]: a
    /// simulation does, so that a seed repeats a run exactly.
    pub background: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            pool: PoolOptions::default(),
            log_file_size: 32 << 20,
            log_files: 4,
            commit_interval: Duration::from_secs(5),
            dirty_limit: 64 << 20,
            dirty_bound: 512 << 20,
            commit_workers: 0,
            background: true,
        }
    }
}

/// What the store knows of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetInfo {
    /// Its id.
    pub id: DatasetId,
    /// The snapshot it was cloned from (which may be gone by now); `None`: created empty.
    pub origin: Option<SnapshotId>,
    /// When it was made.
    pub created: SystemTime,
    /// What the user attached to it.
    pub label: Vec<u8>,
}

/// What the store knows of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its id.
    pub id: SnapshotId,
    /// The dataset it was taken of (which may be gone by now).
    pub dataset: DatasetId,
    /// When it was taken.
    pub created: SystemTime,
    /// Bytes allocated by its files, before compression and sharing.
    pub logical_bytes: u64,
    /// What the user attached to it.
    pub label: Vec<u8>,
}

/// The store. All methods may be called from any thread.
pub struct Store {
    pool: Arc<Pool>,
}

impl Store {
    /// Makes an empty store in an empty directory.
    pub fn create(disk: &Arc<dyn Disk>, options: &StoreOptions) -> Result<()> {
        let _ = (disk, options);
        todo!()
    }

    /// Opens a store as it was when it was closed or as a crash left it, and locks it.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: &StoreOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Store>> {
        let _ = (disk, options, clock);
        todo!()
    }

    /// The pool below: its figures, faults and scrub.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The pool's figures.
    pub fn stats(&self) -> PoolStats {
        self.pool.stats()
    }

    /// Damage found since the store was opened.
    pub fn faults(&self) -> Vec<Fault> {
        self.pool.faults()
    }

    /// An empty dataset: a root directory of mode 0755 that belongs to root. Durable on return.
    pub fn create_dataset(&self) -> Result<DatasetId> {
        todo!()
    }

    /// Takes a snapshot: atomic across all files. Durable on return; costs what has changed since
    /// the last commit of this dataset.
    pub fn snapshot(&self, dataset: DatasetId) -> Result<SnapshotId> {
        let _ = dataset;
        todo!()
    }

    /// A new dataset that starts as the snapshot. Durable on return; costs the same for any size.
    pub fn clone_snapshot(&self, snapshot: SnapshotId) -> Result<DatasetId> {
        let _ = snapshot;
        todo!()
    }

    /// Deletes a dataset; its snapshots and clones stay. Durable on return; the space comes back
    /// in the background. Operations on a [`Dataset`] of it fail with [`Error::Stale`] from now on.
    pub fn delete_dataset(&self, dataset: DatasetId) -> Result<()> {
        let _ = dataset;
        todo!()
    }

    /// Deletes a snapshot; its dataset and clones stay. Durable on return.
    pub fn delete_snapshot(&self, snapshot: SnapshotId) -> Result<()> {
        let _ = snapshot;
        todo!()
    }

    /// All datasets, by id.
    pub fn datasets(&self) -> Vec<DatasetInfo> {
        todo!()
    }

    /// All snapshots, by id.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        todo!()
    }

    /// The files of a dataset. All callers share one [`Dataset`].
    pub fn dataset(&self, dataset: DatasetId) -> Result<Arc<Dataset>> {
        Err(Error::NoDataset(dataset))
    }

    /// Attaches up to 1024 bytes to a dataset, durable on return: the engine finds strays by it.
    pub fn set_dataset_label(&self, dataset: DatasetId, label: &[u8]) -> Result<()> {
        let _ = (dataset, label);
        todo!()
    }

    /// Attaches up to 1024 bytes to a snapshot, durable on return.
    pub fn set_snapshot_label(&self, snapshot: SnapshotId, label: &[u8]) -> Result<()> {
        let _ = (snapshot, label);
        todo!()
    }

    /// Stored bytes that only this dataset reaches, as of its last commit: what deleting it gives
    /// back.
    pub fn dataset_exclusive_bytes(&self, dataset: DatasetId) -> Result<u64> {
        let _ = dataset;
        todo!()
    }

    /// Stored bytes that only this snapshot reaches.
    pub fn snapshot_exclusive_bytes(&self, snapshot: SnapshotId) -> Result<u64> {
        let _ = snapshot;
        todo!()
    }

    /// Bytes allocated by the files of a dataset, before compression and sharing.
    pub fn dataset_logical_bytes(&self, dataset: DatasetId) -> Result<u64> {
        let _ = dataset;
        todo!()
    }

    /// Commits every dataset that has changed.
    pub fn commit_all(&self) -> Result<()> {
        todo!()
    }

    /// Commits everything, stops the background work and closes the pool. Operations fail with
    /// [`Error::Closed`] afterwards. Idempotent.
    pub fn close(&self) -> Result<()> {
        todo!()
    }
}
