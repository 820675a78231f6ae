//! Dead pages that new ones are written over, in place of holes.
//!
//! Where little room is left, a hole for each dead page and room for each new one cost more than the pages themselves:
//! the filesystem's free space is then in pieces of a page, and each is searched for. A page that is written over needs
//! neither. Only pages that might be given back to the device come here, and they go the same way when they are too many.

use super::Segments;
use crate::table::Place;
use offshoot_format::segment::{Layout, PAGE_LEN};
use offshoot_os::disk::DiskFile;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A segment is written over once this share of it is dead, and then all of that: each flush has to sync every file
/// that was written to.
const SHARE_MIN: u32 = 128;

/// The dead pages of all segments that are neither given back nor written over yet. Each is here once, or on its way to
/// become a hole, never both.
#[derive(Default)]
pub(super) struct Spares {
    /// Where they begin, by segment.
    pages: BTreeMap<u32, Vec<u32>>,
    count: u64,
    /// Segments that have enough of them, in the order they got them.
    worthwhile: VecDeque<u32>,
    /// What is being written over: the segment's number, its file, and what is left of its pages.
    open: Option<(u32, Arc<dyn DiskFile>, Vec<u32>)>,
}

impl Spares {
    fn add(&mut self, number: u32, begin: u32, end: u32, worthwhile: usize) {
        let of = self.pages.entry(number).or_default();
        let before = of.len();
        of.extend((begin..end).step_by(PAGE_LEN as usize));
        self.count += (of.len() - before) as u64;
        if before < worthwhile && of.len() >= worthwhile {
            self.worthwhile.push_back(number);
        }
    }

    /// Takes whole segments' pages out until at most `max` bytes are left: ranges of them.
    fn shrink(&mut self, max: u64) -> Vec<(u32, u32, u32)> {
        let mut taken = Vec::new();
        while self.count * u64::from(PAGE_LEN) > max {
            let open = self.open.take().map(|(number, _, pages)| (number, pages));
            let Some((number, pages)) = open.or_else(|| self.pages.pop_first()) else { break };
            self.count -= pages.len() as u64;
            taken.extend(holes(number, pages));
        }
        taken
    }

    /// Bytes of a segment.
    pub(super) fn bytes_of(&self, number: u32) -> u64 {
        let open = self.open.iter().filter(|(open, ..)| *open == number);
        let open: usize = open.map(|(_, _, pages)| pages.len()).sum();
        let others = self.pages.get(&number).map_or(0, Vec::len);
        (open + others) as u64 * u64::from(PAGE_LEN)
    }
}

/// What is to become a hole for these pages of a segment.
fn holes(number: u32, pages: Vec<u32>) -> impl Iterator<Item = (u32, u32, u32)> {
    pages.into_iter().map(move |begin| (number, begin, begin + PAGE_LEN))
}

impl Segments {
    /// What is dead of a sealed segment, in whole pages of the device: to be written over, or given back.
    pub(super) fn offer(&self, number: u32, layout: Layout, begin: u32, end: u32) {
        match layout {
            Layout::Frames => self.punches.lock().push((number, begin, end)),
            Layout::Pages => {
                let worthwhile = self.segment_size / (SHARE_MIN * PAGE_LEN);
                self.spares.lock().add(number, begin, end, worthwhile.max(1) as usize);
            }
        }
    }

    /// At most so many bytes of dead pages are kept to be written over, the rest is given back to the device; with 0
    /// none is written over.
    pub(crate) fn keep_spares(&self, max: u64) {
        self.spare_max.store(max, Ordering::Relaxed);
        let taken = self.spares.lock().shrink(max);
        self.punches.lock().extend(taken);
    }

    /// Writes a page over a dead one; `None` when there is none, or it could not be written.
    pub(super) fn write_over(&self, page: &[u8]) -> Option<Place> {
        let (place, file) = self.take_spare()?;
        if file.write_at(u64::from(place.offset), page).is_err() {
            // A filesystem that writes elsewhere may have no room. Not tried again.
            self.count_dead(place);
            self.punches.lock().push((place.segment, place.offset, place.end()));
            return None;
        }
        // Before anybody learns of the place: a flush that begins from now on syncs it.
        let mut appender = self.appender.lock();
        let first = (file, place.offset, place.end());
        let (_, begin, end) = appender.unsynced.entry(place.segment).or_insert(first);
        (*begin, *end) = (place.offset.min(*begin), place.end().max(*end));
        self.written_over.fetch_add(u64::from(place.room()), Ordering::Relaxed);
        Some(place)
    }

    /// A dead page, live from now on, and its file.
    ///
    /// ORDER 4 holds as for holes: what is here was released, and what is released while it is unknown which root the
    /// device has is not handed out.
    fn take_spare(&self) -> Option<(Place, Arc<dyn DiskFile>)> {
        if self.spare_max.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut spares = self.spares.lock();
        loop {
            let (number, file, pages) = match &mut spares.open {
                Some((number, file, pages)) if !pages.is_empty() => (*number, file.clone(), pages),
                _ => {
                    self.open_spares(&mut spares)?;
                    continue;
                }
            };
            // Asked only when the page is known: what is released later is not among these.
            if self.keep_dead.load(Ordering::Acquire) {
                return None;
            }
            let offset = pages.pop()?;
            spares.count -= 1;
            let (stored_len, layout) = (PAGE_LEN, Layout::Pages);
            let place = Place { segment: number, offset, stored_len, layout };
            if self.revive(place) {
                return Some((place, file));
            }
            self.punches.lock().push((number, offset, place.end()));
        }
    }

    /// Chooses the next segment to be written over.
    fn open_spares(&self, spares: &mut Spares) -> Option<()> {
        let number = spares.worthwhile.pop_front()?;
        spares.open = None;
        // Given back meanwhile.
        let Some(mut pages) = spares.pages.remove(&number) else { return Some(()) };
        // Ascending: the last is taken first.
        pages.sort_unstable_by(|one, other| other.cmp(one));
        match self.disk.open(&super::path_of(number)) {
            Ok(file) => spares.open = Some((number, file, pages)),
            // Deleted meanwhile, or it does not open now.
            Err(_) => {
                spares.count -= pages.len() as u64;
                self.punches.lock().extend(holes(number, pages));
            }
        }
        Some(())
    }

    /// Makes a dead page live, unless its segment is about to go, or not to be relied upon.
    fn revive(&self, place: Place) -> bool {
        let Some(segment) = self.get(place.segment) else { return false };
        if place.end() > segment.written.load(Ordering::Acquire) || !self.is_kept(place) {
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
}
