//! States of files that pass from one store to another, block by block.
//!
//! # Invariants
//! 1. What is received becomes visible in one commit of the directory, after all of it is in the pool and every tree is
//!    sound. Until then nothing refers to it, and a crash leaves nothing of it.
//! 2. A state that is sent stays whole until [`HeldState`] is dropped, whatever is deleted meanwhile.

use super::Store;
use crate::blocks::PassingReader;
use crate::check::files::{Maps, check_state};
use crate::directory::DirectoryEntry;
use crate::ground::Ground;
use crate::inode::to_timestamp;
use crate::{Caching, Error, Result};
use offshoot_format::directory::{DatasetRecord, SnapshotRecord, TreeState};
use offshoot_pool::{BlockData, BlockPin, Checked, PassingBlock, Pool, Transaction};
use offshoot_types::{BlockHash, DatasetId, SnapshotId};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A state of files that is kept while it is sent.
pub struct HeldState {
    tree: TreeState,
    pool: Arc<Pool>,
    _pin: BlockPin,
}

impl HeldState {
    /// Its root and sums: what the receiver has to know of it besides its blocks.
    pub fn tree(&self) -> &TreeState {
        &self.tree
    }

    /// The bytes of a node of it.
    ///
    /// # Errors
    /// As [`HeldState::block`].
    pub fn node(&self, hash: &BlockHash) -> Result<BlockData> {
        // No dataset has that number.
        Ok(self.pool.read(hash, 0)?)
    }

    /// A block of it as it is stored, and its content.
    ///
    /// # Errors
    /// `Damaged` if it is; the fault is noted.
    pub fn block(&self, hash: &BlockHash) -> Result<(PassingBlock, Vec<u8>)> {
        Ok(self.pool.read_passing(hash)?)
    }

    /// Hands blocks of it to `take` as they are stored, in no particular order; neighbours on disk are read together.
    ///
    /// # Errors
    /// As [`HeldState::block`], and those of `take`.
    pub fn blocks<E: From<Error>>(
        &self,
        hashes: &[BlockHash],
        checked: Checked,
        take: &mut dyn FnMut(PassingBlock) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut taken = Ok(());
        let read = self.pool.read_many_passing(hashes, checked, &mut |block| {
            taken = take(block);
            if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        read.map_err(Error::from)?;
        taken
    }
}

/// What a received state becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Becomes {
    /// A snapshot.
    Snapshot,
    /// A dataset that files can be written to.
    Dataset,
}

/// What a received state has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// This snapshot.
    Snapshot(SnapshotId),
    /// This dataset.
    Dataset(DatasetId),
}

/// Blocks that are being received. Dropped without [`Receiving::finish`], nothing of them stays.
pub struct Receiving {
    ground: Arc<Ground>,
    transaction: Transaction,
}

impl Store {
    /// Holds the state of a snapshot, to be sent elsewhere.
    pub fn hold_snapshot(&self, snapshot: SnapshotId) -> Result<HeldState> {
        self.check_open()?;
        let record = self.ground.directory.read().snapshots.get(&snapshot).cloned();
        let tree = record.ok_or(Error::NoSnapshot(snapshot))?.tree;
        // Deleted since it was looked up, or held from here on (invariant 2).
        let pin = self.ground.pool.pin(&tree.root).map_err(|_| Error::NoSnapshot(snapshot))?;
        Ok(HeldState { tree, pool: Arc::clone(&self.ground.pool), _pin: pin })
    }

    /// Begins to receive states.
    pub fn receive(&self) -> Result<Receiving> {
        self.check_open()?;
        let transaction = self.ground.pool.begin().cached(Caching::Past);
        Ok(Receiving { ground: Arc::clone(&self.ground), transaction })
    }
}

impl Receiving {
    /// Whether a block is here already, and with a node everything below it.
    pub fn has(&self, hash: &BlockHash) -> bool {
        self.ground.pool.has_committed(hash)
    }

    /// Stores a block; a node after all that it refers to. Returns its name, and whether it was here already.
    ///
    /// # Errors
    /// `Corrupt` if it is no block, `Missing` if a child of the node is not here, `NoSpace`.
    pub fn put(&self, block: PassingBlock) -> Result<(BlockHash, bool)> {
        let opened = block.open()?;
        Ok((opened.name(), self.transaction.write_passing(&opened)?))
    }

    /// Makes all of the states visible at once, and durable: this is the only thing that does.
    ///
    /// # Errors
    /// `Corrupt` if a tree is not sound, `Missing` if a block of one was not received. Nothing is visible then.
    pub fn finish(self, states: &[(TreeState, Becomes)]) -> Result<Vec<Received>> {
        show(&self.ground, self.transaction, states, None)
    }
}

/// Makes states visible that a transaction has written, once they are sound (invariant 1); a dataset goes with it.
pub(super) fn show(
    ground: &Ground,
    transaction: Transaction,
    states: &[(TreeState, Becomes)],
    gone: Option<DatasetId>,
) -> Result<Vec<Received>> {
    let mut maps = Maps::default();
    for (tree, _) in states {
        // What is committed already was checked when it came, or was made here.
        if !ground.pool.has_committed(&tree.root) {
            let problems = check_state(&PassingReader(&ground.pool), tree, &mut maps);
            if let Some(problem) = problems.into_iter().next() {
                return Err(Error::Corrupt(format!("what was received: {problem}")));
            }
        }
    }
    let created = to_timestamp(ground.clock.now());
    let mut received = Vec::with_capacity(states.len());
    ground.directory.commit(&ground.pool, transaction, |directory, extra| {
        // The dataset that snapshots were taken of is elsewhere: its number here stands for none.
        let elsewhere = DatasetId(extra.next_dataset);
        extra.next_dataset += 1;
        let mut entries = Vec::with_capacity(states.len());
        for (tree, becomes) in states {
            let (tree, label) = (tree.clone(), Vec::new());
            match becomes {
                Becomes::Snapshot => {
                    let id = SnapshotId(extra.next_snapshot);
                    extra.next_snapshot += 1;
                    let record = SnapshotRecord { tree, dataset: elsewhere, created, label };
                    entries.push(DirectoryEntry::Snapshot(id, Some(record)));
                    received.push(Received::Snapshot(id));
                }
                Becomes::Dataset => {
                    let id = DatasetId(extra.next_dataset);
                    extra.next_dataset += 1;
                    let (applied, origin, lost) = (0, 0, false);
                    let record = DatasetRecord { tree, applied, origin, lost, created, label };
                    entries.push(DirectoryEntry::Dataset(id, Some(record)));
                    received.push(Received::Dataset(id));
                }
            }
        }
        if let Some(gone) = gone {
            directory.datasets.get(&gone).ok_or(Error::Stale)?;
            entries.push(DirectoryEntry::Dataset(gone, None));
        }
        Ok(entries)
    })?;
    Ok(received)
}
