//! The directory of datasets and snapshots: the tree at the pool's root.

use crate::blocks::{PoolReader, PoolWriter};
use crate::tree::{self, Change};
use crate::{Error, Result};
use offshoot_format::directory::{
    DatasetRecord, DirectoryKey, SnapshotRecord, StoreExtra, TreeState, dataset_key, snapshot_key,
};
use offshoot_format::inode::{InodeRecord, Timestamp, inode_key};
use offshoot_pool::{Pool, Transaction};
use offshoot_types::{BlockHash, DatasetId, Ino, SnapshotId};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What the directory says, as of the last durable root.
pub(crate) struct DirectoryState {
    root: BlockHash,
    extra: StoreExtra,
    pub(crate) datasets: BTreeMap<DatasetId, DatasetRecord>,
    pub(crate) snapshots: BTreeMap<SnapshotId, SnapshotRecord>,
}

/// The directory, in memory and durable.
pub(crate) struct Directory {
    /// One commit of the pool's root at a time; each starts from the one before.
    order: Mutex<()>,
    state: RwLock<DirectoryState>,
}

/// A change of the directory; `None` removes.
pub(crate) enum DirectoryEntry {
    /// Of a dataset.
    Dataset(DatasetId, Option<DatasetRecord>),
    /// Of a snapshot.
    Snapshot(SnapshotId, Option<SnapshotRecord>),
}

impl DirectoryState {
    /// The directory's own tree.
    pub(crate) fn root(&self) -> BlockHash {
        self.root
    }
}

impl Directory {
    /// Reads the directory at the pool's root.
    pub(crate) fn load(pool: &Arc<Pool>) -> Result<Directory> {
        let root = pool.root();
        let mut state = DirectoryState {
            root: root.hash,
            extra: StoreExtra::decode(&root.extra)?,
            datasets: BTreeMap::new(),
            snapshots: BTreeMap::new(),
        };
        let mut damage = None;
        tree::scan(&reader(pool), root.hash, &[], &mut |entry| {
            let outcome = DirectoryKey::decode(&entry.key).and_then(|key| {
                match key {
                    DirectoryKey::Dataset(id) => {
                        state.datasets.insert(id, DatasetRecord::decode(&entry.value)?);
                    }
                    DirectoryKey::Snapshot(id) => {
                        state.snapshots.insert(id, SnapshotRecord::decode(&entry.value)?);
                    }
                }
                Ok(())
            });
            match outcome {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    damage = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        let extra = &state.extra;
        let unknown = state.datasets.keys().any(|id| id.0 >= extra.next_dataset)
            || state.snapshots.keys().any(|id| id.0 >= extra.next_snapshot);
        match damage {
            Some(error) => Err(Error::from(error)),
            None if unknown => {
                Err(Error::Corrupt("an id in the directory was not given out".into()))
            }
            None => Ok(Directory { order: Mutex::new(()), state: RwLock::new(state) }),
        }
    }

    /// The directory as of the last durable root.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, DirectoryState> {
        self.state.read()
    }

    /// While this is held no commit is under way: what [`Directory::read`] answers is in the pool.
    pub(crate) fn settled(&self) -> MutexGuard<'_, ()> {
        self.order.lock()
    }

    /// Makes durable in one root what `plan` says and everything the transaction wrote for it.
    pub(crate) fn commit(
        &self,
        pool: &Arc<Pool>,
        transaction: Transaction,
        plan: impl FnOnce(&DirectoryState, &mut StoreExtra) -> Result<Vec<DirectoryEntry>>,
    ) -> Result<()> {
        let _order = self.order.lock();
        let (entries, root, extra) = {
            let state = self.state.read();
            let mut extra = state.extra;
            (plan(&state, &mut extra)?, state.root, extra)
        };
        assert_valid(&self.state.read(), &extra, &entries);
        let mut changes: Vec<Change> = Vec::with_capacity(entries.len());
        for entry in &entries {
            changes.push(match entry {
                DirectoryEntry::Dataset(id, record) => {
                    (dataset_key(*id), record.as_ref().map(DatasetRecord::encode))
                }
                DirectoryEntry::Snapshot(id, record) => {
                    (snapshot_key(*id), record.as_ref().map(SnapshotRecord::encode))
                }
            });
        }
        changes.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        let new_root = {
            let writer = PoolWriter { reader: reader(pool), transaction: &transaction };
            tree::merge(&writer, root, changes)?
        };
        pool.commit(transaction, new_root, &extra.encode())?;
        // Published only now that it is durable: nobody acts on an id that a crash could take back.
        let mut state = self.state.write();
        (state.root, state.extra) = (new_root, extra);
        for entry in entries {
            match entry {
                DirectoryEntry::Dataset(id, Some(record)) => {
                    state.datasets.insert(id, record);
                }
                DirectoryEntry::Dataset(id, None) => {
                    state.datasets.remove(&id);
                }
                DirectoryEntry::Snapshot(id, Some(record)) => {
                    state.snapshots.insert(id, record);
                }
                DirectoryEntry::Snapshot(id, None) => {
                    state.snapshots.remove(&id);
                }
            }
        }
        Ok(())
    }
}

/// Asserts what must hold for each commit of the directory: continuing without it would cost data.
///
/// - I1: ids are given out once: every id in the directory is below the next one.
/// - I2: a dataset's commit holds all operations that the one before held, and counts inodes on from there.
/// - I3: a snapshot never changes, but for its label.
fn assert_valid(state: &DirectoryState, extra: &StoreExtra, entries: &[DirectoryEntry]) {
    for entry in entries {
        match entry {
            DirectoryEntry::Dataset(id, Some(record)) => {
                assert!(id.0 < extra.next_dataset, "{id} was not given out");
                let before = state.datasets.get(id);
                assert!(before.is_none_or(|before| follows(before, record)), "{id} goes back");
            }
            DirectoryEntry::Snapshot(id, Some(record)) => {
                assert!(id.0 < extra.next_snapshot, "{id} was not given out");
                let before = state.snapshots.get(id);
                assert!(before.is_none_or(|before| before.tree == record.tree), "{id} changes");
            }
            DirectoryEntry::Dataset(_, None) | DirectoryEntry::Snapshot(_, None) => {}
        }
    }
}

/// I2.
fn follows(before: &DatasetRecord, after: &DatasetRecord) -> bool {
    after.applied >= before.applied && after.tree.next_ino >= before.tree.next_ino
}

fn reader(pool: &Arc<Pool>) -> PoolReader {
    // Owner 0: no dataset has that id.
    PoolReader { pool: Arc::clone(pool), owner: 0 }
}

/// The tree of an empty dataset.
pub(crate) fn empty_tree(
    pool: &Arc<Pool>,
    transaction: &Transaction,
    time: Timestamp,
) -> Result<TreeState> {
    let record = InodeRecord {
        kind: 2,
        mode: 0o755,
        nlink: 2,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 0,
        blocks: 0,
        atime: time,
        mtime: time,
        ctime: time,
        parent: Ino::ROOT.0,
        height: 0,
        root: BlockHash::ZERO,
        target: Vec::new(),
    };
    let writer = PoolWriter { reader: reader(pool), transaction };
    let changes = vec![(inode_key(Ino::ROOT), Some(record.encode()))];
    let root = tree::merge(&writer, BlockHash::ZERO, changes)?;
    Ok(TreeState { root, next_ino: Ino::ROOT.0 + 1, inodes: 1, blocks: 0 })
}

/// A snapshot to be taken.
pub(crate) struct SnapshotRequest {
    pub(crate) created: Timestamp,
    pub(crate) label: Vec<u8>,
}

#[cfg(test)]
mod tests;
