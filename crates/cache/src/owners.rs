//! Hits and misses by owner.

use parking_lot::RwLock;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Figures of one owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerStats {
    /// The owner.
    pub owner: u64,
    /// Its reads answered from memory.
    pub hits: u64,
    /// Its reads that went to disk.
    pub misses: u64,
}

#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Distinguishes the caches of one process in [`RECENT`].
static NEXT_ID: AtomicU64 = AtomicU64::new(0);
const RECENT_LEN: usize = 8;

type Recent = [Option<(u64, u64, Arc<Counters>)>; RECENT_LEN];

thread_local! {
    /// The counters this thread used last, so that a hit looks up nothing that all threads share.
    static RECENT: RefCell<Recent> = const { RefCell::new([const { None }; RECENT_LEN]) };
}

/// The counters of all owners of one cache.
#[derive(Debug)]
pub(crate) struct Owners {
    id: u64,
    counters: RwLock<BTreeMap<u64, Arc<Counters>>>,
}

impl Owners {
    pub(crate) fn new() -> Owners {
        Owners { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), counters: RwLock::default() }
    }

    pub(crate) fn count(&self, owner: u64, hit: bool) {
        let slot = owner as usize % RECENT_LEN;
        RECENT.with_borrow_mut(|recent| {
            let counters = match &mut recent[slot] {
                Some((id, of, counters)) if *id == self.id && *of == owner => counters,
                other => &mut other.insert((self.id, owner, self.of(owner))).2,
            };
            let counter = if hit { &counters.hits } else { &counters.misses };
            counter.fetch_add(1, Ordering::Relaxed);
        });
    }

    fn of(&self, owner: u64) -> Arc<Counters> {
        if let Some(counters) = self.counters.read().get(&owner) {
            return counters.clone();
        }
        self.counters.write().entry(owner).or_default().clone()
    }

    pub(crate) fn forget(&self, owner: u64) {
        self.counters.write().remove(&owner);
    }

    pub(crate) fn stats(&self) -> Vec<OwnerStats> {
        let counters = self.counters.read();
        let stats = counters.iter().map(|(owner, counters)| OwnerStats {
            owner: *owner,
            hits: counters.hits.load(Ordering::Relaxed),
            misses: counters.misses.load(Ordering::Relaxed),
        });
        stats.collect()
    }
}
