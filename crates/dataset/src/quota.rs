//! How much of the pool datasets, with their snapshots, may take for themselves.
//!
//! When a change is admitted, nobody knows what it will take: it may compress, or be stored already.
//! So growth is counted at full size. When that reaches the quota, the real use is measured: stored
//! bytes that only the members and their snapshots reach.

use crate::ground::Ground;
use crate::{Error, Result};
use offshoot_types::{BlockHash, DatasetId};
use std::sync::atomic::{AtomicU64, Ordering};

/// The next measurement is made after at least this many times the duration of the last.
const REST: u64 = 10;
/// Nor before this time, in ms.
const REST_MS_MIN: u64 = 500;
/// Fewer bytes than this count as nothing.
const NOTHING: u64 = 64 << 10;

/// A quota, shared by the datasets it limits.
pub(crate) struct Quota {
    limit: u64,
    members: Vec<DatasetId>,
    /// Bytes that may be added before it is measured again.
    left: AtomicU64,
    /// No measurement before this time, in ms of the clock.
    rests_until: AtomicU64,
}

impl Quota {
    pub(crate) fn new(limit: u64, members: &[DatasetId]) -> Quota {
        let (left, rests_until) = (AtomicU64::new(0), AtomicU64::new(0));
        Quota { limit, members: members.to_vec(), left, rests_until }
    }

    /// Whether it is the same promise.
    pub(crate) fn is(&self, limit: u64, members: &[DatasetId]) -> bool {
        self.limit == limit && self.members == members
    }

    /// Whether almost nothing may be added.
    pub(crate) fn is_used_up(&self, ground: &Ground) -> bool {
        self.has_less(ground, NOTHING)
    }

    /// Whether fewer bytes than these may be added.
    pub(crate) fn has_less(&self, ground: &Ground, bytes: u64) -> bool {
        if self.left.load(Ordering::Relaxed) >= bytes {
            return false;
        }
        // A failed measurement is no reason to refuse.
        self.measure(ground).is_ok() && self.left.load(Ordering::Relaxed) < bytes
    }

    /// Counts bytes that are to be added.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Measures what is left. All members should be committed.
    pub(crate) fn measure(&self, ground: &Ground) -> Result<()> {
        let began = ground.now_ms();
        if began < self.rests_until.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut attempts = 0;
        let used = loop {
            attempts += 1;
            match ground.pool.freed_by(&self.roots(ground)) {
                // A commit has replaced a tree in the meantime.
                Err(offshoot_pool::Error::Missing(_)) if attempts < 8 => {}
                other => break other.map_err(Error::from)?,
            }
        };
        let ended = ground.now_ms();
        let rest = ((ended - began) * REST).max(REST_MS_MIN);
        self.left.store(self.limit.saturating_sub(used), Ordering::Relaxed);
        self.rests_until.store(ended + rest, Ordering::Relaxed);
        Ok(())
    }

    fn roots(&self, ground: &Ground) -> Vec<BlockHash> {
        let directory = ground.directory.read();
        let datasets = self.members.iter().filter_map(|id| directory.datasets.get(id));
        let taken = directory.snapshots.values().filter(|one| self.members.contains(&one.dataset));
        datasets.map(|one| one.tree.root).chain(taken.map(|one| one.tree.root)).collect()
    }
}
