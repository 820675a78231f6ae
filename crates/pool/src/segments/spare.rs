//! Dead pages that new ones overwrite, instead of becoming holes.
//!
//! When little room is left, a hole for each dead page and room for each new one cost more than the pages themselves:
//! the filesystem's free space is in single pages, and it searches for each. Overwriting a page needs neither. Only
//! pages that might be given back to the device come here, and they become holes if there are too many.

use super::files::path_of;
use crate::table::Place;
use offshoot_format::segment::{Layout, PAGE_LEN};
use offshoot_os::disk::{Disk, DiskFile};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A segment's dead pages are overwritten once this share of it is dead, and then all of them: each flush has to
/// sync every file that was written to.
const SHARE_MIN: u32 = 128;

/// The dead pages of all segments that are neither given back nor overwritten yet. Each is here once, or on its way to
/// become a hole, never both.
#[derive(Default)]
pub(super) struct Spares {
    /// Where they begin, by segment.
    pages: BTreeMap<u32, Vec<u32>>,
    count: u64,
    /// Segments that have enough of them, in the order they got them.
    worthwhile: VecDeque<u32>,
    /// What is being overwritten: the segment's number, its file, and what is left of its pages.
    open: Option<(u32, Arc<dyn DiskFile>, Vec<u32>)>,
}

impl Spares {
    /// Adds the pages of a range.
    pub(super) fn add(&mut self, number: u32, begin: u32, end: u32, segment_size: u32) {
        let worthwhile = (segment_size / (SHARE_MIN * PAGE_LEN)).max(1) as usize;
        let of = self.pages.entry(number).or_default();
        let before = of.len();
        of.extend((begin..end).step_by(PAGE_LEN as usize));
        self.count += (of.len() - before) as u64;
        if before < worthwhile && of.len() >= worthwhile {
            self.worthwhile.push_back(number);
        }
    }

    /// Takes whole segments' pages out until at most `max` bytes are left: ranges of them.
    pub(super) fn shrink(&mut self, max: u64) -> Vec<(u32, u32, u32)> {
        let mut taken = Vec::new();
        while self.count * u64::from(PAGE_LEN) > max {
            let open = self.open.take().map(|(number, _, pages)| (number, pages));
            let Some((number, pages)) = open.or_else(|| self.pages.pop_first()) else { break };
            self.count -= pages.len() as u64;
            taken.extend(holes(number, pages));
        }
        taken
    }

    /// Takes the next page out, with its file. `refused` gets what is to become a hole.
    ///
    /// Nothing is taken while `may_take` says no. It is asked only when the page is known: pages released later
    /// are not among these.
    pub(super) fn take(
        &mut self,
        disk: &dyn Disk,
        may_take: impl Fn() -> bool,
        refused: &mut Vec<(u32, u32, u32)>,
    ) -> Option<(Place, Arc<dyn DiskFile>)> {
        loop {
            if let Some((segment, file, pages)) = &mut self.open
                && !pages.is_empty()
            {
                if !may_take() {
                    return None;
                }
                let (segment, offset) = (*segment, pages.pop()?);
                self.count -= 1;
                let (stored_len, layout) = (PAGE_LEN, Layout::Pages);
                return Some((Place { segment, offset, stored_len, layout }, file.clone()));
            }
            self.open_next(disk, refused)?;
        }
    }

    /// Chooses the next segment to be overwritten.
    fn open_next(&mut self, disk: &dyn Disk, refused: &mut Vec<(u32, u32, u32)>) -> Option<()> {
        let number = self.worthwhile.pop_front()?;
        self.open = None;
        // Given back meanwhile.
        let Some(mut pages) = self.pages.remove(&number) else { return Some(()) };
        // Ascending: the last is taken first.
        pages.sort_unstable_by(|one, other| other.cmp(one));
        match disk.open(&path_of(number)) {
            Ok(file) => self.open = Some((number, file, pages)),
            // Deleted since, or it cannot be opened now.
            Err(_) => {
                self.count -= pages.len() as u64;
                refused.extend(holes(number, pages));
            }
        }
        Some(())
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
