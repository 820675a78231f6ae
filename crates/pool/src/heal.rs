//! Replaces the damaged copy of a block with a sound one.

use crate::block::{name_of, verify};
use crate::frames;
use crate::pool::Pool;
use crate::table::{Entry, Move, Place};
use crate::{BLOCK_LEN_MAX, BlockData, Purpose, Result};
use offshoot_format::segment::{BlockKind, FRAME_ALIGN, FRAME_LEN, Layout, PAGE_LEN};
use offshoot_types::BlockHash;
use std::ops::ControlFlow;

/// Bytes of dead ranges searched at a time.
const WINDOW_LEN: u32 = 256 << 10;

impl Pool {
    /// Stores a damaged block's content again and clears the fault. Returns whether that was possible:
    /// it is not for an uncommitted block, nor for a lost one, which only a commit restores.
    pub(crate) fn heal(&self, hash: &BlockHash, content: &[u8]) -> Result<bool> {
        let Some(entry) = self.table.get(hash) else { return Ok(false) };
        let place = entry.place();
        let kept = entry.is_committed() && !entry.is_lost();
        if !kept || name_of(entry.kind(), content) != *hash {
            return Ok(false);
        }
        let (to, codec) = self.append_block(*hash, entry.kind(), content, Purpose::Freeing)?;
        // ORDER 1 for the new copy; from here on it is moved as compaction moves blocks.
        if let Err(error) = self.flush_segments() {
            self.segments.release(to);
            return Err(error);
        }
        self.move_blocks(&[(*hash, Move { from: place, to, codec })])?;
        self.cache.insert(*hash, BlockData::new(content));
        self.faults.forget(hash);
        tracing::info!(%hash, "a damaged block was replaced by a sound copy");
        Ok(true)
    }

    /// Looks for sound copies of damaged blocks in the dead parts of segments, which compaction or an
    /// undone commit left behind. `tell` gets the bytes searched. Returns how many blocks were
    /// healed.
    pub(crate) fn heal_from_dead_copies(
        &self,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<u64> {
        let mut healed = 0;
        for (segment, layout, begin, end) in self.segments.dead_ranges() {
            let mut at = begin.max(layout.begin()).next_multiple_of(FRAME_ALIGN);
            while at < end && self.faults.len() > 0 {
                let until = end.min(at + WINDOW_LEN);
                // With the whole of a frame that begins at the end; of a sealed one the content, too.
                let beyond = if self.seals.are_on() { BLOCK_LEN_MAX as u32 } else { 0 };
                let read_to = end.min(until + layout.frame_len() + beyond);
                let bytes = self.segments.read_run(segment, at, read_to);
                let bytes = bytes.unwrap_or_default();
                // Given back to the device already, most often.
                let empty = bytes.iter().all(|byte| *byte == 0);
                if !empty {
                    healed += match layout {
                        Layout::Frames => self.heal_from_frames(segment, at, &bytes)?,
                        Layout::Pages => self.heal_from_pages(&bytes)?,
                    };
                }
                if tell(if empty { 0 } else { u64::from(until - at) }).is_break() {
                    return Ok(healed);
                }
                at = until;
            }
        }
        Ok(healed)
    }

    /// The same for pages, one after another.
    fn heal_from_pages(&self, bytes: &[u8]) -> Result<u64> {
        let mut healed = 0;
        for page in bytes.chunks_exact(PAGE_LEN as usize) {
            let hash = name_of(BlockKind::Data, page);
            if self.faults.contains(&hash) {
                healed += u64::from(self.heal(&hash, page)?);
            }
        }
        Ok(healed)
    }

    /// The same for the frames that begin in `bytes`, which are at `begin` of a segment.
    fn heal_from_frames(&self, segment: u32, begin: u32, bytes: &[u8]) -> Result<u64> {
        let mut healed = 0;
        let frames = bytes.windows(FRAME_LEN as usize).step_by(FRAME_ALIGN as usize);
        for (offset, header) in (begin..).step_by(FRAME_ALIGN as usize).zip(frames) {
            let stored = |len| {
                let content = bytes.get((offset - begin + FRAME_LEN) as usize..)?;
                content.get(..len as usize)
            };
            let Some(frame) = frames::identify(&self.seals, header, stored) else { continue };
            if !self.faults.contains(&frame.hash) {
                continue;
            }
            let (stored_len, layout) = (frame.stored_len, Layout::Frames);
            let place = Place { segment, offset, stored_len, layout };
            let entry = Entry::uncommitted(place, frame.raw_len, frame.kind, frame.codec);
            let stored = self.segments.read(place).ok();
            let content = stored.and_then(|stored| verify(&frame.hash, &entry, stored).ok());
            if let Some(content) = content {
                healed += u64::from(self.heal(&frame.hash, &content)?);
            }
        }
        Ok(healed)
    }

    /// Counts a block as damaged that was damaged when the pool was last open, until its state is
    /// known. A block that is gone is skipped.
    pub fn recall_damage(&self, hash: BlockHash) {
        if let Some(entry) = self.table.get(&hash).filter(|entry| !entry.is_lost()) {
            let error =
                crate::Error::Damaged { hash, detail: "it was found damaged before".into() };
            self.faults.add(hash, &entry, &error);
        }
    }

    /// Checks whether a block that counts as damaged really is.
    ///
    /// # Errors
    /// If a sound copy could not be stored.
    pub fn recheck_damage(&self, hash: &BlockHash) -> Result<()> {
        match self.table.get(hash) {
            Some(entry) => self.scrub_block(hash, &entry).map(drop),
            None => {
                self.faults.forget(hash);
                Ok(())
            }
        }
    }
}
