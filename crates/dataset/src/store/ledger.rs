//! What datasets and snapshots hold of the pool: stored bytes, computed on paper.

use super::Store;
use crate::Result;
use crate::blocks::{NodeSource, PoolReader};
use crate::directory::DirectoryState;
use crate::ground::Ground;
use offshoot_format::tree::NodeView;
use offshoot_pool::{BlockPin, PAPER_LONG, Reach};
use offshoot_types::{BlockHash, DatasetId, SnapshotId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often an answer is computed again because the directory changed in between.
const ATTEMPTS_MAX: u32 = 4;

/// Datasets and snapshots taken together, each once. Those already gone hold nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Holding {
    /// Datasets.
    pub datasets: Vec<DatasetId>,
    /// Snapshots.
    pub snapshots: Vec<SnapshotId>,
}

impl Holding {
    /// Takes another one's in.
    pub fn extend(&mut self, other: &Holding) {
        self.datasets.extend(&other.datasets);
        self.snapshots.extend(&other.snapshots);
        self.datasets.sort_unstable();
        self.datasets.dedup();
        self.snapshots.sort_unstable();
        self.snapshots.dedup();
    }

    /// Everything in the store.
    pub fn all(store: &Store) -> Holding {
        let directory = store.ground.directory.read();
        Holding {
            datasets: directory.datasets.keys().copied().collect(),
            snapshots: directory.snapshots.keys().copied().collect(),
        }
    }
}

/// The stored bytes that a changing set of datasets and snapshots reaches.
///
/// While this lives, the pool keeps what is in the set as it was when it was added.
pub struct StoredBytes {
    store: Arc<Store>,
    reach: Reach,
    roots: BTreeSet<BlockHash>,
}

impl StoredBytes {
    /// Replaces the set and returns its stored bytes, frames included, each block once. Costs the
    /// difference between the sets. After an error it is of no use.
    pub fn replace(&mut self, holding: &Holding) -> Result<u64> {
        let trees = self.store.hold(|directory| directory.roots_of(holding))?;
        let roots: BTreeSet<BlockHash> = trees.roots.iter().copied().collect();
        // First in, then out: what both reach is not walked.
        roots.difference(&self.roots).try_for_each(|root| self.reach.add(root))?;
        self.roots.difference(&roots).try_for_each(|root| self.reach.remove(root))?;
        self.roots = roots;
        Ok(self.reach.bytes())
    }
}

/// Trees that no commit takes away while this lives.
struct HeldTrees {
    /// The directory's root when they were in it.
    directory: BlockHash,
    roots: Vec<BlockHash>,
    _pins: Vec<BlockPin>,
}

impl DirectoryState {
    fn roots_of(&self, holding: &Holding) -> Vec<BlockHash> {
        let datasets = holding.datasets.iter().filter_map(|id| self.datasets.get(id));
        let snapshots = holding.snapshots.iter().filter_map(|id| self.snapshots.get(id));
        datasets.map(|one| one.tree.root).chain(snapshots.map(|one| one.tree.root)).collect()
    }
}

impl Store {
    /// Holds trees that the directory names.
    fn hold(&self, choose: impl Fn(&DirectoryState) -> Vec<BlockHash>) -> Result<HeldTrees> {
        let Ground { directory, pool, .. } = &*self.ground;
        let hold = || {
            let (root, roots) = {
                let state = directory.read();
                (state.root(), choose(&state))
            };
            let pins: offshoot_pool::Result<_> = roots.iter().map(|root| pool.pin(root)).collect();
            pins.map(|pins| HeldTrees { directory: root, roots, _pins: pins })
        };
        // A commit removes a tree a moment before the directory says so.
        let held = hold().or_else(|_| {
            let _settled = directory.settled();
            hold()
        });
        Ok(held?)
    }

    /// Stored bytes (frames included) that deleting all of a holding would free, exact to the block, as
    /// of the last commits. The cost follows what would be freed.
    pub fn freed_by_deleting(&self, holding: &Holding) -> Result<u64> {
        let pool = &self.ground.pool;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let held = self.hold(|directory| directory.roots_of(holding))?;
            let begun = self.ground.clock.elapsed();
            let freed = pool.freed_by(&held.roots);
            let enough = self.ground.clock.elapsed() - begun > PAPER_LONG;
            let same = pool.root().hash == held.directory;
            if attempts == ATTEMPTS_MAX || (freed.is_ok() && (same || enough)) {
                return Ok(freed?);
            }
        }
    }

    /// A counter of the stored bytes that sets of datasets and snapshots reach.
    pub fn stored_bytes(self: &Arc<Self>) -> StoredBytes {
        StoredBytes { store: self.clone(), reach: self.ground.pool.reach(), roots: BTreeSet::new() }
    }

    /// Changes exactly when any dataset or snapshot does: figures computed at the same version are the
    /// same. What is only in memory does not count.
    pub fn version(&self) -> BlockHash {
        self.ground.pool.root().hash
    }

    /// Stored bytes of the directory itself: they belong to no dataset and no snapshot.
    pub fn directory_bytes(&self) -> Result<u64> {
        let pool = &self.ground.pool;
        let present = |root: BlockHash| (!root.is_zero()).then_some(root);
        let held = self.hold(|directory| Vec::from_iter(present(directory.root())))?;
        let reader = PoolReader { pool: Arc::clone(pool), owner: 0 };
        let mut bytes = 0;
        let mut stack = held.roots.clone();
        while let Some(hash) = stack.pop() {
            bytes += pool.stored_len(&hash).unwrap_or_default();
            let node = reader.read_node(&hash)?;
            let view = NodeView::new(&node)?;
            if view.level() > 0 {
                for index in 0..view.count() {
                    stack.push(view.child(index)?);
                }
            }
        }
        Ok(bytes)
    }
}
