//! The store: a pool, its intent log and the directory of datasets and snapshots.

mod background;
mod intake;
mod ledger;
mod losses;
mod opening;
mod passing;

pub use intake::Intake;
pub use ledger::{Holding, StoredBytes};
pub use passing::{Becomes, HeldState, Received, Receiving};

use crate::blocks::PassingReader;
use crate::directory::{self, DirectoryEntry, SnapshotRequest};
use crate::ground::Ground;
use crate::holders::{Search, StateId};
use crate::inode::{to_system_time, to_timestamp};
use crate::loaded::Loaded;
use crate::quota::Quota;
use crate::{Dataset, Error, Holders, Result};
use offshoot_format::directory::DatasetRecord;
use offshoot_format::inode::Timestamp;
use offshoot_intent_log::IntentLog;
use offshoot_pool::{Fault, Pool, PoolStats};
use offshoot_types::{BLOCK_SIZE, BlockHash, DatasetId, LatencyCounts, SnapshotId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::SystemTime;

/// The longest label, in bytes.
const LABEL_LEN_MAX: usize = 1024;

/// What the store knows about a dataset.
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

/// What the store knows about a snapshot.
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

/// How long the store's own work on the device took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreLatencies {
    /// Reads of the pool's device for blocks that were not in memory.
    pub pool_reads: LatencyCounts,
    /// Flushes of the intent log.
    pub log_flushes: LatencyCounts,
    /// Commits of the pool that succeeded.
    pub commits: LatencyCounts,
}

/// The store. All methods may be called from any thread.
pub struct Store {
    ground: Arc<Ground>,
    loaded: Arc<Loaded>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Store {
    /// The pool below: its figures, faults and scrub.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.ground.pool
    }

    /// The pool's figures.
    pub fn stats(&self) -> PoolStats {
        let free = self.ground.growth_room();
        PoolStats { free, ..self.ground.pool.stats() }
    }

    /// How long the store's own work on the device took since it was opened.
    pub fn latencies(&self) -> StoreLatencies {
        let (pool, log) = (&self.ground.pool, self.ground.log.get());
        StoreLatencies {
            pool_reads: pool.read_latency(),
            log_flushes: log.map(IntentLog::flush_latency).unwrap_or_default(),
            commits: pool.commit_latency(),
        }
    }

    /// Limits what `members`, with all snapshots taken of them, may take in the pool for themselves,
    /// by refusing growth of the files of `limited`. Not stored. `None` lifts the limit.
    pub fn set_quota(
        &self,
        limited: DatasetId,
        members: &[DatasetId],
        limit: Option<u64>,
    ) -> Result<()> {
        // A dataset that is not in use has no limit to lift.
        if limit.is_some() || self.loaded.get(limited).is_some() {
            self.dataset(limited)?.set_quota(members, limit);
        }
        Ok(())
    }

    /// As [`set_quota`](Store::set_quota), beside it: a limit of what `members` may take together, for several that it
    /// keeps from growing. Returns whether less than `least` bytes of it are left, as last measured.
    pub fn set_common_quota(
        &self,
        limited: &[DatasetId],
        members: &[DatasetId],
        limit: Option<u64>,
        least: u64,
    ) -> Result<bool> {
        let Some(limit) = limit else {
            let loaded = limited.iter().filter_map(|id| self.loaded.get(*id));
            loaded.for_each(|dataset| dataset.set_common_quota(None));
            return Ok(false);
        };
        let limited = limited.iter().map(|id| self.dataset(*id)).collect::<Result<Vec<_>>>()?;
        let present = limited.iter().find_map(|dataset| {
            dataset.common_quota().filter(|present| present.is(limit, members))
        });
        let quota = present.unwrap_or_else(|| Arc::new(Quota::new(limit, members)));
        for dataset in &limited {
            dataset.set_common_quota(Some(quota.clone()));
        }
        Ok(quota.has_less(&self.ground, least))
    }

    /// Whether a quota keeps this dataset from growing, as last
    /// measured.
    pub fn quota_used_up(&self, dataset: DatasetId) -> bool {
        self.dataset(dataset).is_ok_and(|dataset| dataset.quota_used_up())
    }

    /// Damage found since the store was opened; for what it took from datasets see [`Store::lost`].
    pub fn faults(&self) -> Vec<Fault> {
        self.ground.pool.faults()
    }

    /// The holders of some blocks, roughly as of now. Reads the metadata of everything in the
    /// store.
    pub fn holders(&self, blocks: &[BlockHash]) -> HashMap<BlockHash, Holders> {
        let nodes = PassingReader(&self.ground.pool);
        let mut search = Search::new(&nodes, blocks);
        let (root, datasets, snapshots) = {
            let directory = self.ground.directory.read();
            (directory.root(), directory.datasets.clone(), directory.snapshots.clone())
        };
        search.look_at_directory(root);
        for (id, record) in &datasets {
            search.look(StateId::Dataset(*id), &record.tree);
        }
        // The newest first: that is the one users look at.
        for (id, record) in snapshots.iter().rev() {
            search.look(StateId::Snapshot(*id), &record.tree);
        }
        search.end()
    }

    /// Bytes changed in memory that no commit has written yet.
    pub fn unwritten_bytes(&self) -> u64 {
        self.ground.weight.load(Ordering::Relaxed)
    }

    fn now(&self) -> Timestamp {
        to_timestamp(self.ground.clock.now())
    }

    fn check_open(&self) -> Result<()> {
        if self.ground.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// An empty dataset: a root directory of mode 0755 that belongs to root. Durable on return.
    pub fn create_dataset(&self) -> Result<DatasetId> {
        self.check_open()?;
        let created = self.now();
        let transaction = self.ground.pool.begin();
        let tree = directory::empty_tree(&self.ground.pool, &transaction, created)?;
        let label = Vec::new();
        let record = DatasetRecord { tree, applied: 0, origin: 0, lost: false, created, label };
        let mut id = DatasetId(0);
        self.ground.directory.commit(&self.ground.pool, transaction, |_, extra| {
            id = DatasetId(extra.next_dataset);
            extra.next_dataset += 1;
            Ok(vec![DirectoryEntry::Dataset(id, Some(record))])
        })?;
        Ok(id)
    }

    /// Takes a snapshot: atomic across all files. Durable on return; costs what has changed since
    /// the last commit of this dataset.
    pub fn snapshot(&self, dataset: DatasetId) -> Result<SnapshotId> {
        let request = SnapshotRequest { created: self.now(), label: Vec::new() };
        self.dataset(dataset)?.commit_snapshot(&request)
    }

    /// A new dataset that starts as the snapshot. Durable on return; costs the same for any size.
    pub fn clone_snapshot(&self, snapshot: SnapshotId) -> Result<DatasetId> {
        self.check_open()?;
        let created = self.now();
        let mut id = DatasetId(0);
        let transaction = self.ground.pool.begin();
        self.ground.directory.commit(&self.ground.pool, transaction, |directory, extra| {
            let parent = directory.snapshots.get(&snapshot).ok_or(Error::NoSnapshot(snapshot))?;
            id = DatasetId(extra.next_dataset);
            extra.next_dataset += 1;
            let record = DatasetRecord {
                tree: parent.tree.clone(),
                applied: 0,
                origin: snapshot.0,
                lost: false,
                created,
                label: Vec::new(),
            };
            Ok(vec![DirectoryEntry::Dataset(id, Some(record))])
        })?;
        Ok(id)
    }

    /// Deletes a dataset; its snapshots and clones stay. Durable on return; the space comes back
    /// in the background. Operations on a [`Dataset`] of it fail with [`Error::Stale`] from now on.
    pub fn delete_dataset(&self, dataset: DatasetId) -> Result<()> {
        self.check_open()?;
        let ground = &self.ground;
        let _loading = self.loaded.hold();
        let loaded = self.loaded.get(dataset);
        if let Some(loaded) = &loaded {
            loaded.set_deleted(true);
        }
        let transaction = ground.pool.begin_freeing();
        let outcome = ground.directory.commit(&ground.pool, transaction, |directory, _| {
            if !directory.datasets.contains_key(&dataset) {
                return Err(Error::NoDataset(dataset));
            }
            Ok(vec![DirectoryEntry::Dataset(dataset, None)])
        });
        if let (Err(_), Some(loaded)) = (&outcome, &loaded) {
            loaded.set_deleted(false);
        }
        outcome?;
        // Its records in the log no longer belong to anyone: ids are never reused.
        ground.logged.commit_done(ground.log.get(), dataset, None);
        self.loaded.remove(dataset);
        if let Some(loaded) = loaded {
            loaded.forget();
            // A sync may have logged more while the deletion ran.
            ground.logged.commit_done(ground.log.get(), dataset, None);
        }
        Ok(())
    }

    /// Deletes a snapshot; its dataset and clones stay. Durable on return.
    pub fn delete_snapshot(&self, snapshot: SnapshotId) -> Result<()> {
        self.check_open()?;
        let transaction = self.ground.pool.begin_freeing();
        self.ground.directory.commit(&self.ground.pool, transaction, |directory, _| {
            if !directory.snapshots.contains_key(&snapshot) {
                return Err(Error::NoSnapshot(snapshot));
            }
            Ok(vec![DirectoryEntry::Snapshot(snapshot, None)])
        })
    }

    /// All datasets, by id.
    pub fn datasets(&self) -> Vec<DatasetInfo> {
        let directory = self.ground.directory.read();
        let info = |(id, record): (&DatasetId, &DatasetRecord)| DatasetInfo {
            id: *id,
            origin: (record.origin != 0).then_some(SnapshotId(record.origin)),
            created: to_system_time(record.created),
            label: record.label.clone(),
        };
        directory.datasets.iter().map(info).collect()
    }

    /// All snapshots, by id.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        let directory = self.ground.directory.read();
        let mut snapshots = Vec::with_capacity(directory.snapshots.len());
        for (id, record) in &directory.snapshots {
            snapshots.push(SnapshotInfo {
                id: *id,
                dataset: record.dataset,
                created: to_system_time(record.created),
                logical_bytes: record.tree.blocks * BLOCK_SIZE as u64,
                label: record.label.clone(),
            });
        }
        snapshots
    }

    /// The files of a dataset. All callers share one [`Dataset`].
    ///
    /// # Errors
    /// `Lost` until [`Store::accept_loss`], if acknowledged operations are lost.
    pub fn dataset(&self, dataset: DatasetId) -> Result<Arc<Dataset>> {
        self.check_open()?;
        self.loaded.dataset(dataset, false)
    }

    /// Attaches up to 1024 bytes to a dataset, durable on return: the engine finds strays by it.
    pub fn set_dataset_label(&self, dataset: DatasetId, label: &[u8]) -> Result<()> {
        check_label(label)?;
        let transaction = self.ground.pool.begin_freeing();
        self.ground.directory.commit(&self.ground.pool, transaction, |directory, _| {
            let record = directory.datasets.get(&dataset).ok_or(Error::NoDataset(dataset))?;
            let record = DatasetRecord { label: label.to_vec(), ..record.clone() };
            Ok(vec![DirectoryEntry::Dataset(dataset, Some(record))])
        })
    }

    /// Attaches up to 1024 bytes to a snapshot, durable on return.
    pub fn set_snapshot_label(&self, snapshot: SnapshotId, label: &[u8]) -> Result<()> {
        check_label(label)?;
        let transaction = self.ground.pool.begin_freeing();
        self.ground.directory.commit(&self.ground.pool, transaction, |directory, _| {
            let mut record =
                directory.snapshots.get(&snapshot).ok_or(Error::NoSnapshot(snapshot))?.clone();
            record.label = label.to_vec();
            Ok(vec![DirectoryEntry::Snapshot(snapshot, Some(record))])
        })
    }

    /// Bytes that may still be added to files: what is free above the reserve, less what was
    /// admitted and is not written yet.
    pub fn growth_room(&self) -> u64 {
        self.ground.growth_room()
    }

    /// Bytes allocated by the files of a dataset at its last commit, before compression and
    /// sharing.
    pub fn dataset_logical_bytes(&self, dataset: DatasetId) -> Result<u64> {
        let directory = self.ground.directory.read();
        let record = directory.datasets.get(&dataset).ok_or(Error::NoDataset(dataset))?;
        Ok(record.tree.blocks * BLOCK_SIZE as u64)
    }

    /// Bytes allocated by the files of a snapshot, before compression and sharing.
    pub fn snapshot_logical_bytes(&self, snapshot: SnapshotId) -> Result<u64> {
        let directory = self.ground.directory.read();
        let record = directory.snapshots.get(&snapshot).ok_or(Error::NoSnapshot(snapshot))?;
        Ok(record.tree.blocks * BLOCK_SIZE as u64)
    }

    /// Commits every dataset that has changed; returns the first failure, after trying all.
    pub fn commit_all(&self) -> Result<()> {
        self.check_open()?;
        let mut first_failure = Ok(());
        for dataset in self.loaded.all() {
            match dataset.commit() {
                // Deleted meanwhile.
                Ok(()) | Err(Error::Stale) => {}
                failure => first_failure = first_failure.and(failure),
            }
        }
        first_failure
    }

    /// Commits everything, stops the background work and closes the pool. Operations fail with
    /// [`Error::Closed`] afterwards. Idempotent.
    pub fn close(&self) -> Result<()> {
        self.stop_threads();
        if self.ground.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let outcome = self.commit_all();
        self.shut();
        outcome
    }

    fn stop_threads(&self) {
        self.ground.stop();
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a background thread of the store had panicked");
            }
        }
    }

    /// Ends all use, committed or not.
    fn shut(&self) {
        self.ground.closed.store(true, Ordering::Release);
        self.loaded.clear();
        self.ground.pool.close();
    }
}

/// Ways to bypass the files, for tests of checks.
#[cfg(test)]
impl Store {
    pub(crate) fn directory_record(&self, id: DatasetId) -> DatasetRecord {
        self.ground.directory.read().datasets[&id].clone()
    }

    pub(crate) fn commit_record(
        &self,
        transaction: offshoot_pool::Transaction,
        entry: DirectoryEntry,
    ) {
        let pool = &self.ground.pool;
        self.ground.directory.commit(pool, transaction, |_, _| Ok(vec![entry])).unwrap();
    }
}

impl Drop for Store {
    /// Dropped without [`Store::close`], as in a crash: what was not synced may be lost.
    fn drop(&mut self) {
        self.stop_threads();
        self.shut();
    }
}

fn check_label(label: &[u8]) -> Result<()> {
    if label.len() > LABEL_LEN_MAX {
        return Err(Error::Invalid("a label has at most 1024 bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
