//! How much memory all groups together use.

use crate::memory::HUGE_PAGE;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Who has pages of it.
pub(crate) trait Holder: Send + Sync + std::fmt::Debug {
    /// How many; none if its lock is taken.
    fn pages(&self) -> Option<usize>;
    /// Gives one to another, if its lock is not taken; not if much of it was read lately, unless it must.
    fn give_page(&self, must: bool) -> bool;
}

/// Memory that groups share, in huge pages.
///
/// A group takes one as it needs frames. Once all are taken, a group that reads more than its frames hold gets pages of the
/// group that has the most: at once where that has more than twice as many, else those of which little was read lately.
/// Locks: a group's, then this one's; another group's is tried, never waited for.
#[derive(Debug)]
pub struct Budget {
    pages: usize,
    used: AtomicUsize,
    groups: Mutex<Vec<Weak<dyn Holder>>>,
}

impl Budget {
    /// So many bytes, up to a whole number of huge pages.
    pub fn new(size: u64) -> Arc<Budget> {
        let pages = usize::try_from(size.div_ceil(HUGE_PAGE as u64)).unwrap_or(usize::MAX);
        Arc::new(Budget { pages, used: AtomicUsize::new(0), groups: Mutex::default() })
    }

    /// The addresses that a group needs to be able to use all of it.
    pub(crate) fn len(&self) -> usize {
        self.pages.saturating_mul(HUGE_PAGE)
    }

    /// Pages that no group has.
    pub(crate) fn left(&self) -> usize {
        self.pages.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    pub(crate) fn join(&self, group: Weak<dyn Holder>) {
        let mut groups = self.groups.lock();
        groups.retain(|group| group.strong_count() > 0);
        groups.push(group);
    }

    /// One of those that no group has.
    pub(crate) fn take(&self) -> bool {
        let more = |used| (used < self.pages).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// One of another group, for the one that has `own` and whose lock the caller holds.
    pub(crate) fn take_from_others(&self, own: usize) -> bool {
        let groups: Vec<Arc<dyn Holder>> =
            self.groups.lock().iter().filter_map(Weak::upgrade).collect();
        // The caller's own is locked.
        let others = groups.iter().filter_map(|group| Some((group.pages()?, group)));
        let Some((pages, richest)) = others.max_by_key(|(pages, _)| *pages) else { return false };
        pages > 0 && richest.give_page(pages > 2 * own)
    }

    pub(crate) fn give_back(&self, pages: usize) {
        self.used.fetch_sub(pages, Ordering::Relaxed);
    }
}
