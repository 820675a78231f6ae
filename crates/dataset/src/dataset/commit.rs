//! Commits: turning what is changed in memory into a durable tree.
//!
//! 1. The epoch ends (`gate` held exclusively, for a moment): the last operation's number and the
//!    list of changed inodes define the cut; every dirty layer becomes a frozen one.
//! 2. Worker threads hash and compress the blocks; then block maps and the dataset's tree are
//!    written. Operations continue in the next epoch.
//! 3. The directory gets the new tree with the number of the last operation in it, and the pool
//!    makes its root durable. Only this step is shared between datasets.
//! 4. Inodes take their new maps and drop their frozen layers; the log is trimmed.
//!
//! Rules:
//! - C1: the tree holds exactly the operations up to the number stored beside it, in one durable
//!   root: replay starts after it.
//! - C2: readers must always find a block: the new tree is published before a frozen layer is
//!   dropped.
//! - C3: the root MUST be durable before operations leave the queue and records the log.
//! - C4: a failed commit loses nothing: frozen layers stay, and the next commit takes them.

use super::{Committed, Dataset};
use crate::block_map::BlockMap;
use crate::blocks::PoolWriter;
use crate::directory::{DirectoryEntry, SnapshotRequest};
use crate::inode::{Frozen, Inode};
use crate::layer::Slot;
use crate::tree::{self, Change};
use crate::{Error, Result};
use offshoot_format::directory::{SnapshotRecord, TreeState};
use offshoot_format::inode::{encode_name, inode_key, name_key, orphan_key, xattr_key};
use offshoot_pool::Transaction;
use offshoot_types::{BLOCK_SIZE, BlockHash, SnapshotId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// For commits of fewer blocks the committing thread hashes alone.
const PARALLEL_BLOCKS_MIN: usize = 64;
/// Blocks a worker takes at a time: neighbours in a file stay neighbours on disk.
const WORK_BLOCKS: usize = 32;

/// What outlives a commit that failed.
#[derive(Default)]
pub(super) struct CommitState {
    /// Inodes with a frozen layer, by number.
    pub(super) frozen: BTreeMap<u64, Arc<Inode>>,
}

/// Where an epoch ended.
struct Cut {
    /// Number of the last operation in it.
    last: u64,
    next_ino: u64,
    inodes: u64,
}

/// A frozen inode, and what the commit makes of it.
struct Work {
    inode: Arc<Inode>,
    frozen: Arc<Frozen>,
    map: BlockMap,
    blocks: u64,
}

impl Dataset {
    /// Writes everything changed into the pool. Nobody needs to call this for durability.
    pub fn commit(&self) -> Result<()> {
        let target = self.queue.lock().last;
        let mut state = self.commit.lock();
        let covered = self.queue.lock().applied >= target;
        if covered && self.dirty_since_ms.load(Ordering::Relaxed) == 0 && state.frozen.is_empty() {
            return self.check_usable();
        }
        self.commit_locked(&mut state, None).map(|_| ())
    }

    /// Returns when every operation up to `target` is in a durable commit.
    pub(super) fn commit_up_to(&self, target: u64) -> Result<()> {
        let mut state = self.commit.lock();
        if self.queue.lock().applied >= target {
            return Ok(());
        }
        self.commit_locked(&mut state, None).map(|_| ())
    }

    /// Commits, and in the same durable step takes a snapshot of the committed tree.
    pub(crate) fn commit_snapshot(&self, request: &SnapshotRequest) -> Result<SnapshotId> {
        let mut state = self.commit.lock();
        let id = self.commit_locked(&mut state, Some(request))?;
        id.ok_or_else(|| Error::Corrupt("the snapshot was not taken".into()))
    }

    fn commit_locked(
        &self,
        state: &mut CommitState,
        snapshot: Option<&SnapshotRequest>,
    ) -> Result<Option<SnapshotId>> {
        self.check_usable()?;
        let cut = self.end_epoch(state);
        let unchanged = state.frozen.is_empty() && self.queue.lock().applied == cut.last;
        if unchanged && snapshot.is_none() {
            return Ok(None);
        }
        let outcome = self.write_commit(state, &cut, snapshot);
        if outcome.is_err() {
            self.note_dirty();
        }
        let (done, tree, id) = outcome?;
        self.finish_commit(state, &cut, done, &tree);
        Ok(id)
    }

    /// Step 1.
    fn end_epoch(&self, state: &mut CommitState) -> Cut {
        let (cut, changed, epoch) = {
            // Alone: no operation is half done, so the cut is between two operations (C1).
            let mut gate = self.gate.write();
            *gate += 1;
            self.dirty_since_ms.store(0, Ordering::Relaxed);
            let cut = Cut {
                last: self.queue.lock().last,
                next_ino: self.next_ino.load(Ordering::Relaxed),
                inodes: self.inode_count.load(Ordering::Relaxed),
            };
            (cut, std::mem::take(&mut *self.dirty_inodes.lock()), *gate)
        };
        for inode in changed {
            let mut inode_state = inode.state.write();
            // An operation of the new epoch may have frozen the layer already.
            if inode_state.dirty_epoch != 0 && inode_state.dirty_epoch < epoch {
                let before = inode_state.weight();
                inode_state.freeze(inode.kind);
                self.account(before, inode_state.weight());
            }
            drop(inode_state);
            state.frozen.insert(inode.ino.0, inode);
        }
        cut
    }

    /// Steps 2 and 3.
    fn write_commit(
        &self,
        state: &CommitState,
        cut: &Cut,
        snapshot: Option<&SnapshotRequest>,
    ) -> Result<(Vec<Work>, TreeState, Option<SnapshotId>)> {
        // From the reserve if necessary: this data was admitted when there was room (`admit`).
        let transaction = self.ground.pool.begin_freeing().cached(*self.caching.lock());
        let mut work: Vec<Work> = Vec::with_capacity(state.frozen.len());
        for inode in state.frozen.values() {
            let inode_state = inode.state.read();
            let Some(frozen) = inode_state.frozen.clone() else { continue };
            let (map, blocks) = (inode_state.map, inode_state.blocks);
            work.push(Work { inode: Arc::clone(inode), frozen, map, blocks });
        }
        let mut hashes = self.write_blocks(&transaction, &work)?.into_iter();
        let root = self.committed.read().root;
        let writer = PoolWriter { reader: self.reader.clone(), transaction: &transaction };
        let mut changes = Vec::new();
        let mut grown = 0;
        for item in &mut work {
            let count = if item.frozen.gone { 0 } else { item.frozen.layer.blocks.len() };
            let written: Vec<(u64, BlockHash)> = hashes.by_ref().take(count).collect();
            grown += self.write_inode(&writer, root, item, &written, &mut changes)?;
        }
        changes.sort_unstable_by(|left: &Change, right| left.0.cmp(&right.0));
        let tree = TreeState {
            root: tree::merge(&writer, root, changes)?,
            next_ino: cut.next_ino,
            inodes: cut.inodes,
            blocks: self.blocks.load(Ordering::Relaxed).saturating_add_signed(grown),
        };
        let id = self.publish(transaction, &tree, cut.last, snapshot)?;
        Ok((work, tree, id))
    }

    /// Writes the data blocks of all inodes; their hashes in the order of inodes and blocks.
    fn write_blocks(
        &self,
        transaction: &Transaction,
        work: &[Work],
    ) -> Result<Vec<(u64, BlockHash)>> {
        let slots: Vec<(u64, &Slot)> = work
            .iter()
            .filter(|item| !item.frozen.gone)
            .flat_map(|item| item.frozen.layer.blocks.iter().map(|(block, slot)| (*block, slot)))
            .collect();
        let data = slots.iter().filter(|(_, slot)| matches!(slot, Slot::Data(_))).count();
        self.written.fetch_add(data as u64, Ordering::Relaxed);
        let write = |slot: &Slot| match slot {
            Slot::Data(data) => transaction.write_shared(data).map_err(Error::from),
            Slot::Shared(pin) => Ok(pin.hash()),
        };
        let workers = self.ground.options.commit_workers;
        if slots.len() < PARALLEL_BLOCKS_MIN || workers == 1 {
            return slots.iter().map(|(block, slot)| Ok((*block, write(slot)?))).collect();
        }
        let next = AtomicUsize::new(0);
        let run = || -> Result<Vec<(usize, BlockHash)>> {
            let mut written = Vec::new();
            loop {
                let start = next.fetch_add(WORK_BLOCKS, Ordering::Relaxed);
                let end = slots.len().min(start + WORK_BLOCKS);
                for (index, (_, slot)) in slots.iter().enumerate().take(end).skip(start) {
                    written.push((index, write(slot)?));
                }
                if start >= slots.len() {
                    return Ok(written);
                }
            }
        };
        let mut hashes: Vec<_> = slots.iter().map(|(block, _)| (*block, BlockHash::ZERO)).collect();
        let parts: Vec<_> = std::thread::scope(|scope| {
            // Without more threads, this one does all.
            let more = |_| std::thread::Builder::new().spawn_scoped(scope, run).ok();
            let threads: Vec<_> = (1..workers).filter_map(more).collect();
            let own = run();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| Err(Error::Io("a commit thread ended".into())))
            };
            std::iter::once(own).chain(threads.into_iter().map(join)).collect()
        });
        for part in parts {
            for (index, hash) in part? {
                hashes[index].1 = hash;
            }
        }
        Ok(hashes)
    }

    /// Writes an inode's block map and collects its changes to the tree; returns by how many data
    /// blocks it grew.
    fn write_inode(
        &self,
        writer: &PoolWriter<'_>,
        root: BlockHash,
        item: &mut Work,
        written: &[(u64, BlockHash)],
        changes: &mut Vec<Change>,
    ) -> Result<i64> {
        let Frozen { layer, record, gone } = &*item.frozen;
        let ino = item.inode.ino;
        for ((hash, name), entry) in &layer.names {
            let value = entry.map(|(ino, kind)| encode_name(ino, kind));
            changes.push((name_key(ino, *hash, name), value));
        }
        if *gone {
            changes.push((inode_key(ino), None));
            changes.push((orphan_key(ino), None));
            for name in super::xattrs::stored_names(&self.reader, root, ino)? {
                changes.push((xattr_key(ino, &name), None));
            }
            let lost = item.blocks as i64;
            (item.map, item.blocks) = (BlockMap::EMPTY, 0);
            return Ok(-lost);
        }
        for (name, value) in &layer.xattrs {
            let store = |value: &Arc<[u8]>| super::xattrs::store_value(value, writer.transaction);
            changes.push((xattr_key(ino, name), value.as_ref().map(store).transpose()?));
        }
        let size = record.size.div_ceil(BLOCK_SIZE as u64);
        let mut grown = 0;
        let emptied = layer.cleared.covers(0, u64::MAX);
        if emptied {
            // Truncated to nothing: no need to walk the old map to count it.
            grown = -(item.blocks as i64);
            item.map = BlockMap::EMPTY;
        }
        if !layer.has_no_blocks() {
            let (map, more) = item.map.update(writer, &layer.cleared, written, size)?;
            item.map = map;
            grown += more;
        }
        item.blocks = item.blocks.saturating_add_signed(grown);
        let mut record = record.clone();
        (record.height, record.root) = (item.map.height, item.map.root);
        record.blocks = item.blocks;
        if record.nlink == 0 {
            // Found again by the next opening, which frees it.
            changes.push((orphan_key(ino), Some(Default::default())));
        }
        changes.push((inode_key(ino), Some(record.encode())));
        Ok(grown)
    }

    /// Step 3: the directory and the pool's root.
    fn publish(
        &self,
        transaction: Transaction,
        tree: &TreeState,
        last: u64,
        snapshot: Option<&SnapshotRequest>,
    ) -> Result<Option<SnapshotId>> {
        let mut id = None;
        self.ground.directory.commit(&self.ground.pool, transaction, |directory, extra| {
            let record = directory.datasets.get(&self.id).ok_or(Error::Stale)?;
            let mut record = record.clone();
            (record.tree, record.applied) = (tree.clone(), last);
            let mut entries = vec![DirectoryEntry::Dataset(self.id, Some(record))];
            if let Some(request) = snapshot {
                let new = SnapshotId(extra.next_snapshot);
                extra.next_snapshot += 1;
                id = Some(new);
                let record = SnapshotRecord {
                    tree: tree.clone(),
                    dataset: self.id,
                    created: request.created,
                    label: request.label.clone(),
                };
                entries.push(DirectoryEntry::Snapshot(new, Some(record)));
            }
            Ok(entries)
        })?;
        Ok(id)
    }

    /// Step 4. The root is durable (C3).
    fn finish_commit(&self, state: &mut CommitState, cut: &Cut, done: Vec<Work>, tree: &TreeState) {
        {
            let mut committed = self.committed.write();
            let generation = committed.generation + 1;
            *committed = Committed { root: tree.root, generation };
        }
        self.blocks.store(tree.blocks, Ordering::Relaxed);
        // C2: the tree is published, so layers may go now.
        state.frozen.clear();
        for Work { inode, frozen, map, blocks } in done {
            let mut inode_state = inode.state.write();
            let before = inode_state.weight();
            inode_state.commit_done(map, blocks);
            self.account(before, inode_state.weight());
            if frozen.gone {
                // Only now: until here it stopped readers from finding the inode in the old tree.
                self.inodes.remove(inode.ino);
            }
        }
        self.queue.lock().commit_done(cut.last);
        self.trim_volatile(cut.last);
        self.ground.logged.commit_done(self.ground.log.get(), self.id, Some(cut.last));
        self.inodes.evict(super::IDLE_INODES_MAX);
        self.ground.progress.announce();
    }
}
