//! The inodes of a dataset that are in memory.

use crate::inode::Inode;
use hashbrown::HashMap;
use offshoot_types::Ino;
use parking_lot::RwLock;
use std::sync::Arc;

const SHARDS: usize = 16;

/// Inodes by number, in shards, so that users do not contend for one lock.
#[derive(Default)]
pub(crate) struct InodeTable {
    shards: [RwLock<HashMap<u64, Arc<Inode>>>; SHARDS],
}

impl InodeTable {
    fn shard(&self, ino: Ino) -> &RwLock<HashMap<u64, Arc<Inode>>> {
        &self.shards[ino.0 as usize % SHARDS]
    }

    pub(crate) fn get(&self, ino: Ino) -> Option<Arc<Inode>> {
        self.shard(ino).read().get(&ino.0).cloned()
    }

    /// Adds a new inode.
    pub(crate) fn insert(&self, inode: Arc<Inode>) {
        self.shard(inode.ino).write().insert(inode.ino.0, inode);
    }

    /// Adds an inode read from the tree; if another thread was faster, returns that one. `None` if
    /// `is_current` says that the tree it was read from is no longer the latest.
    pub(crate) fn insert_loaded(
        &self,
        inode: Arc<Inode>,
        is_current: impl FnOnce() -> bool,
    ) -> Option<Arc<Inode>> {
        let mut shard = self.shard(inode.ino).write();
        if let Some(present) = shard.get(&inode.ino.0) {
            return Some(Arc::clone(present));
        }
        // Asked under the lock: a thread that evicted a newer version has already changed the
        // answer.
        if !is_current() {
            return None;
        }
        shard.insert(inode.ino.0, Arc::clone(&inode));
        Some(inode)
    }

    pub(crate) fn remove(&self, ino: Ino) {
        self.shard(ino).write().remove(&ino.0);
    }

    /// Does something to each inode in memory.
    pub(crate) fn for_each(&self, act: impl Fn(&Inode)) {
        for shard in &self.shards {
            let inodes: Vec<_> = shard.read().values().cloned().collect();
            inodes.iter().for_each(|inode| act(inode));
        }
    }

    pub(crate) fn clear(&self) {
        self.shards.iter().for_each(|shard| shard.write().clear());
    }

    /// Drops inodes that nobody uses and that have no uncommitted changes, if there are more than
    /// `max`.
    pub(crate) fn evict(&self, max: usize) {
        for shard in &self.shards {
            let mut shard = shard.write();
            if shard.len() <= max / SHARDS {
                continue;
            }
            shard.retain(|_, inode| {
                // Under the shard's lock nobody can take another reference. Do not wait for the
                // state of one in use: its holder may be waiting for this shard.
                Arc::strong_count(inode) > 1
                    || inode.state.try_read().is_none_or(|state| {
                        state.open > 0 || state.dirty_epoch != 0 || state.frozen.is_some()
                    })
            });
        }
    }
}
