//! Copies of ranges that share blocks.
//!
//! A changed block in memory is shared as it is; a committed block by its hash, pinned until the
//! target's commit refers to it. Such an operation has no form in the log (the block may be gone by
//! the time of a replay), so a sync of the target commits instead. If every operation must survive
//! the engine, bytes are copied; identical blocks are still stored once.

use super::{Dataset, FILE_SIZE_MAX};
use crate::inode::{Inode, Place};
use crate::layer::Slot;
use crate::{Error, Result};
use offshoot_types::{BLOCK_SIZE, BlockHash, Ino};
use std::sync::Arc;

const BLOCK: u64 = BLOCK_SIZE as u64;
/// Blocks shared by one operation.
const SHARE_BLOCKS: u64 = 512;
/// Bytes copied by one operation if blocks cannot be shared.
const COPY_LEN_MAX: u64 = 1 << 20;
/// How often to look again for a block that a commit replaced in the meantime.
const ATTEMPTS_MAX: u32 = 8;

impl Dataset {
    /// Copies a range, sharing blocks where offsets are aligned to 8 KiB. `source` may be this
    /// dataset. Returns the bytes copied: fewer than `len` only at the end of the source.
    #[allow(clippy::too_many_arguments)] // the six numbers of copy_file_range
    pub fn copy_range(
        &self,
        source: &Dataset,
        source_ino: Ino,
        source_offset: u64,
        target_ino: Ino,
        target_offset: u64,
        len: u64,
    ) -> Result<u64> {
        let from = source.inode(source_ino)?;
        let to = self.inode(target_ino)?;
        from.expect_file()?;
        to.expect_file()?;
        let size = from.state.read().size;
        let len = len.min(size.saturating_sub(source_offset));
        if target_offset.checked_add(len).is_none_or(|end| end > FILE_SIZE_MAX) {
            return Err(Error::FileTooBig);
        }
        let overlap = source_offset.abs_diff(target_offset) < len;
        if source.id == self.id && source_ino == target_ino && overlap {
            return Err(Error::Invalid("the ranges overlap"));
        }
        let mut done = 0;
        while done < len {
            let (at, to_at, rest) = (source_offset + done, target_offset + done, len - done);
            let aligned = at % BLOCK == 0 && to_at % BLOCK == 0;
            // The last block may be shared whole if the target has nothing after it.
            let ends = at + rest >= size && to_at + rest >= to.state.read().size;
            let whole = if ends { rest } else { rest / BLOCK * BLOCK };
            let copied = if aligned && whole > 0 && self.volatile().is_none() {
                let part = whole.min(SHARE_BLOCKS * BLOCK);
                self.share(source, &from, at, &to, to_at, part)?
            } else {
                // Up to where the target is aligned, or all of it.
                let edge = BLOCK - to_at % BLOCK;
                let alignable = at % BLOCK == to_at % BLOCK;
                let part = if alignable && edge < BLOCK { edge } else { COPY_LEN_MAX };
                let bytes = source.read(source_ino, at, part.min(rest) as usize)?;
                self.write(target_ino, to_at, &bytes)?;
                bytes.len() as u64
            };
            if copied == 0 {
                break;
            }
            done += copied;
        }
        Ok(done)
    }

    /// One operation that shares the blocks of an aligned range.
    fn share(
        &self,
        source: &Dataset,
        from: &Inode,
        source_offset: u64,
        to: &Arc<Inode>,
        target_offset: u64,
        len: u64,
    ) -> Result<u64> {
        let count = len.div_ceil(BLOCK);
        self.admit(count * 128, self.purpose_of(to, false))?;
        let slots = source.shareable(from, source_offset / BLOCK, count as usize)?;
        let time = self.now();
        let gate = self.enter()?;
        let mut state = to.state.write();
        if state.gone {
            return Err(Error::Stale);
        }
        let end = target_offset + len;
        if !end.is_multiple_of(BLOCK) && end < state.size {
            // The target has grown: what follows the range must stay.
            return Ok(0);
        }
        let first = target_offset / BLOCK;
        self.change(*gate, to, &mut state, |state| {
            state.clear_blocks(first, first + count);
            for (index, slot) in slots.into_iter().enumerate() {
                if let Some(slot) = slot {
                    state.put_block(first + index as u64, slot);
                }
            }
            state.set_size(state.size.max(end));
            (state.mtime, state.ctime) = (time, time);
            self.queue.lock().push_commit_only();
        });
        Ok(len)
    }

    /// Blocks of a file in a form that can be put into another; `None`: a hole.
    fn shareable(&self, inode: &Inode, first: u64, count: usize) -> Result<Vec<Option<Slot>>> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.try_shareable(inode, first, count) {
                Err(Error::Missing(_)) if attempts < ATTEMPTS_MAX => self.wait_for_commit()?,
                other => return other,
            }
        }
    }

    fn try_shareable(&self, inode: &Inode, first: u64, count: usize) -> Result<Vec<Option<Slot>>> {
        let mut slots: Vec<Option<Slot>> = vec![None; count];
        let mut committed = Vec::new();
        let map = {
            let state = inode.state.read();
            if state.gone {
                return Err(Error::Stale);
            }
            for (index, slot) in slots.iter_mut().enumerate() {
                match state.place(first + index as u64) {
                    Place::Data(data) => *slot = Some(Slot::Data(data)),
                    Place::Shared(shared, _) => *slot = Some(shared),
                    Place::Hole => {}
                    Place::Committed => committed.push(index),
                }
            }
            state.map
        };
        if committed.is_empty() {
            return Ok(slots);
        }
        let mut hashes = vec![BlockHash::ZERO; count];
        map.lookup(&self.reader, first, &mut hashes)?;
        for index in committed {
            if !hashes[index].is_zero() {
                // `Missing` if a commit replaced it in the meantime: the caller looks again.
                let pin = self.ground.pool.pin(&hashes[index])?;
                slots[index] = Some(Slot::Shared(Arc::new(pin)));
            }
        }
        Ok(slots)
    }
}
