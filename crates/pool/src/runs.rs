//! Blocks that are worth reading together.

use crate::table::{Entry, Place};
use offshoot_types::BlockHash;

/// Blocks closer than this on disk are read together, in bytes.
const RUN_GAP: u32 = 32 << 10;

/// Blocks that are near each other in one segment.
pub(crate) struct Run<'a> {
    pub(crate) segment: u32,
    pub(crate) begin: u32,
    pub(crate) end: u32,
    pub(crate) blocks: &'a [(BlockHash, Entry)],
}

impl Run<'_> {
    /// A block's frame, if it has one, and its stored bytes in those of the run.
    pub(crate) fn cut<'b>(&self, bytes: &'b [u8], place: Place) -> Option<(&'b [u8], &'b [u8])> {
        let from = place.offset.checked_sub(self.begin)? as usize;
        let frame_len = place.layout.frame_len();
        let block = bytes.get(from..from + (frame_len + place.stored_len) as usize)?;
        Some(block.split_at(frame_len as usize))
    }
}

/// Cuts blocks in the order of their places into runs of at most `len_max` bytes that are worth one
/// read each.
pub(crate) fn runs(mut rest: &[(BlockHash, Entry)], len_max: u32) -> impl Iterator<Item = Run<'_>> {
    std::iter::from_fn(move || {
        let first = rest.first()?.1.place();
        let (segment, begin) = (first.segment, first.offset);
        let (mut end, mut count) = (first.end(), 0);
        for (_, entry) in rest {
            let place = entry.place();
            // Sorted by place: within a segment nothing comes before the run's begin.
            if place.segment != segment
                || place.offset > end.saturating_add(RUN_GAP)
                || place.end() - begin > len_max
            {
                break;
            }
            end = end.max(place.end());
            count += 1;
        }
        let (blocks, after) = rest.split_at(count.max(1));
        rest = after;
        Some(Run { segment, begin, end, blocks })
    })
}
