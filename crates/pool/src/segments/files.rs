//! The segment files, and what is known of each.

use super::dead::DeadRanges;
use crate::table::Place;
use offshoot_format::segment::Layout;
use offshoot_os::disk::DiskFile;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The directory of segment files.
pub(crate) const DIR: &str = "segments";

/// The path of a segment file.
pub(crate) fn path_of(number: u32) -> String {
    format!("{DIR}/{number:08}.seg")
}

/// The number in a segment file's name.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    name.strip_suffix(".seg")?.parse().ok()
}

/// One segment file.
pub(super) struct Segment {
    pub(super) number: u32,
    pub(super) layout: Layout,
    /// Bytes that can be read from the file; what follows is in a buffer.
    pub(super) written: AtomicU32,
    pub(super) state: Mutex<SegmentState>,
}

impl Segment {
    /// Whether the bytes up to `end` are in the file.
    pub(super) fn has_written(&self, end: u32) -> bool {
        end <= self.written.load(Ordering::Acquire)
    }
}

#[derive(Default)]
pub(super) struct SegmentState {
    /// Bytes appended.
    pub(super) len: u32,
    /// Bytes of blocks that the table refers to.
    pub(super) live: u64,
    pub(super) dead: DeadRanges,
    /// Bytes given back by holes.
    pub(super) punched: u64,
    pub(super) sealed: bool,
    /// Nothing in it is live, and nothing will be.
    pub(super) deleted: bool,
    /// Compaction met damage; do not retry it for ever.
    pub(super) damaged: bool,
    /// Live bytes when compaction found nothing it could move; it waits until that changes.
    pub(super) stuck_at: Option<u64>,
    pub(super) reader: Option<Arc<dyn DiskFile>>,
}

/// All segments of a pool. Every other part of [`super::Segments`] looks them up here.
#[derive(Default)]
pub(super) struct Files {
    all: RwLock<BTreeMap<u32, Arc<Segment>>>,
    /// Segments of which only the committed blocks are reliable: the device had no room when the others
    /// were flushed.
    unreliable: RwLock<BTreeSet<u32>>,
}

impl Files {
    pub(super) fn get(&self, number: u32) -> Option<Arc<Segment>> {
        self.all.read().get(&number).cloned()
    }

    pub(super) fn insert(&self, segment: Arc<Segment>) {
        self.all.write().insert(segment.number, segment);
    }

    pub(super) fn remove(&self, number: u32) {
        self.all.write().remove(&number);
        self.unreliable.write().remove(&number);
    }

    /// Counts a place as dead. What may be given back to the device for it.
    pub(super) fn count_dead(&self, place: Place) -> Option<(u32, u32)> {
        let segment = self.get(place.segment)?;
        let mut state = segment.state.lock();
        state.live = state.live.saturating_sub(u64::from(place.room()));
        let whole_pages = state.dead.add(place.offset, place.end());
        whole_pages.filter(|_| state.sealed)
    }

    /// A dead range found at open. What may be given back to the device for it.
    pub(super) fn add_dead(&self, number: u32, begin: u32, end: u32) -> Option<(u32, u32)> {
        let segment = self.get(number)?;
        let mut state = segment.state.lock();
        let whole_pages = state.dead.add(begin, end);
        whole_pages.filter(|_| state.sealed)
    }

    /// Makes a dead page live, unless its segment is about to go or is not reliable.
    pub(super) fn revive(&self, place: Place) -> bool {
        let Some(segment) = self.get(place.segment) else { return false };
        if !segment.has_written(place.end()) || !self.is_reliable(place.segment) {
            return false;
        }
        let mut state = segment.state.lock();
        // Compaction is to empty it.
        let nearly_empty = state.live * 8 < u64::from(state.len);
        if state.deleted || state.damaged || nearly_empty {
            return false;
        }
        state.live += u64::from(place.room());
        state.dead.remove(place.offset, place.end());
        true
    }

    /// Hands each segment to `look`, in order.
    pub(super) fn map<T>(&self, look: impl FnMut(&Arc<Segment>) -> T) -> Vec<T> {
        self.all.read().values().map(look).collect()
    }

    /// Invariant 4 of each segment that breaks it: every byte behind the header is either a live block's or
    /// dead.
    pub(super) fn accounts_that_do_not_add_up(&self) -> Vec<String> {
        let problem = |segment: &Segment| {
            let state = segment.state.lock();
            let (live, dead) = (state.live, state.dead.bytes());
            let len = u64::from(state.len.saturating_sub(segment.layout.begin()));
            let number = segment.number;
            (live + dead != len)
                .then(|| format!("segment {number}: {live} live and {dead} dead bytes of {len}"))
        };
        self.all.read().values().filter_map(|segment| problem(segment)).collect()
    }

    /// Adds up something of all segments.
    pub(super) fn sum(&self, of: impl Fn(&Segment) -> u64) -> u64 {
        self.all.read().values().map(|segment| of(segment)).sum()
    }

    /// Blocks of these that are not committed by now are not reliable.
    pub(super) fn give_up(&self, numbers: impl Iterator<Item = u32>) {
        self.unreliable.write().extend(numbers);
    }

    /// Whether what a flush has written of it can be relied upon.
    pub(super) fn is_reliable(&self, number: u32) -> bool {
        !self.unreliable.read().contains(&number)
    }

    pub(super) fn all_reliable(&self) -> bool {
        self.unreliable.read().is_empty()
    }
}
