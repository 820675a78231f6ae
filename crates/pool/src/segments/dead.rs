//! The dead ranges of one segment.

use std::collections::BTreeMap;

/// Room is given back in units of this many bytes.
const PAGE: u32 = 4096;

/// Ranges of bytes that no block uses, merged where they touch.
#[derive(Debug, Default)]
pub(super) struct DeadRanges {
    /// End by begin.
    ranges: BTreeMap<u32, u32>,
}

impl DeadRanges {
    /// Adds a range. Returns the whole pages that became dead through it, including pages it shares
    /// with its neighbours; each page is returned once.
    ///
    /// Returns none if a part of it is already dead, which only a wrong table can cause (invariant 4): a page
    /// that was handed out for use must not be handed out once more.
    pub(super) fn add(&mut self, begin: u32, end: u32) -> Option<(u32, u32)> {
        let (mut merged_begin, mut merged_end, mut twice) = (begin, end, false);
        if let Some((&before, &before_end)) = self.ranges.range(..=begin).next_back()
            && before_end >= begin
        {
            twice |= before_end > begin;
            merged_begin = before;
            merged_end = merged_end.max(before_end);
        }
        while let Some((&after, &after_end)) = self.ranges.range(merged_begin + 1..=end).next() {
            twice |= after < end;
            merged_end = merged_end.max(after_end);
            self.ranges.remove(&after);
        }
        self.ranges.insert(merged_begin, merged_end);
        let first = merged_begin.next_multiple_of(PAGE).max(begin / PAGE * PAGE);
        let last = (merged_end / PAGE * PAGE).min(end.next_multiple_of(PAGE));
        if twice {
            tracing::error!(
                begin,
                end,
                "a place is given back twice: the table of blocks is wrong"
            );
        }
        (!twice && first < last).then_some((first, last))
    }

    /// Removes a range that is entirely dead, because it is reused.
    ///
    /// # Panics
    /// Invariant 4, if a part of it is not dead: a live block there would be overwritten.
    pub(super) fn remove(&mut self, begin: u32, end: u32) {
        let range = self.ranges.range(..=begin).next_back().map(|(&from, &to)| (from, to));
        let (from, to) = range.filter(|(_, to)| end <= *to).unwrap_or_default();
        assert!(begin < to, "{begin} to {end} is to be written over, and is not dead");
        self.ranges.remove(&from);
        if from < begin {
            self.ranges.insert(from, begin);
        }
        if end < to {
            self.ranges.insert(end, to);
        }
    }

    /// The end of the range that covers `offset`.
    pub(super) fn end_at(&self, offset: u32) -> Option<u32> {
        let (_, &end) = self.ranges.range(..=offset).next_back()?;
        (end > offset).then_some(end)
    }

    /// Bytes of all ranges.
    pub(super) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|(begin, end)| u64::from(end - begin)).sum()
    }

    /// All ranges: begin and end.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.ranges.iter().map(|(begin, end)| (*begin, *end))
    }

    /// All whole pages that are dead.
    pub(super) fn punchable(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let pages = self.ranges.iter().filter_map(|(&begin, &end)| {
            let (first, last) = (begin.next_multiple_of(PAGE), end / PAGE * PAGE);
            (first < last).then_some((first, last))
        });
        pages.collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_each_page_is_punched_once() {
        let mut dead = DeadRanges::default();
        assert_eq!(dead.add(100, 3000), None);
        assert_eq!(dead.add(5000, 9000), None, "its pages are shared with live blocks");
        assert_eq!(dead.add(3000, 5000), Some((4096, 8192)));
        assert_eq!(dead.end_at(100), Some(9000));
        assert_eq!(dead.end_at(9000), None);
        assert_eq!(dead.add(0, 100), Some((0, 4096)));
        assert_eq!(dead.add(9000, 20_480), Some((8192, 20_480)));
        assert_eq!(dead.punchable().collect::<Vec<_>>(), [(0, 20_480)]);
    }

    #[test]
    fn what_is_used_again_is_dead_no_more_until_it_is_added() {
        let mut dead = DeadRanges::default();
        dead.add(4096, 20_480);
        dead.remove(8192, 12_288);
        assert_eq!(dead.ranges().collect::<Vec<_>>(), [(4096, 8192), (12_288, 20_480)]);
        dead.remove(12_288, 20_480);
        dead.remove(4096, 8192);
        assert_eq!(dead.ranges().count(), 0);
        assert_eq!(dead.add(4096, 12_288), Some((4096, 12_288)));
    }

    #[test]
    fn what_is_dead_is_not_given_back_again() {
        let mut dead = DeadRanges::default();
        assert_eq!(dead.add(0, 8500), Some((0, 8192)));
        assert_eq!(dead.add(8000, 16_384), None);
        assert_eq!(dead.ranges().collect::<Vec<_>>(), [(0, 16_384)]);
    }

    #[test]
    fn nor_is_what_holds_something_dead() {
        let mut dead = DeadRanges::default();
        assert_eq!(dead.add(2000, 3000), None);
        assert_eq!(dead.add(0, 4096), None);
        assert_eq!(dead.ranges().collect::<Vec<_>>(), [(0, 4096)]);
    }

    #[test]
    #[should_panic(expected = "8192 to 16384 is to be written over, and is not dead")]
    fn what_lives_is_not_written_over() {
        let mut dead = DeadRanges::default();
        dead.add(4096, 12_288);
        dead.remove(8192, 16_384);
    }

    #[test]
    fn any_order_gives_every_page_exactly_once() {
        let mut order: Vec<u32> = (0..512).collect();
        let mut z = 12345u32;
        for i in (1..order.len()).rev() {
            z = z.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            order.swap(i, (z >> 8) as usize % (i + 1));
        }
        let mut dead = DeadRanges::default();
        let mut pages = vec![0; 512 * 1000 / 4096];
        for piece in order {
            if let Some((begin, end)) = dead.add(piece * 1000, piece * 1000 + 1000) {
                (begin / PAGE..end / PAGE).for_each(|page| pages[page as usize] += 1);
            }
        }
        assert!(pages.iter().all(|&count| count == 1), "{pages:?}");
    }
}
