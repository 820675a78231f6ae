//! What a client does with the memory that it has mapped (`core` only: the client library is compiled with this file, too).

use crate::layout::{
    BLOCK, ENTRIES_AT, Entry, Header, MARKS_AT, Mark, PROBES, Place, SLOTS_AT, Slot,
};
use crate::layout::{count_at, first_slot};
use crate::protocol::{self, Real};
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// A table and the frames of its group, where they are mapped.
#[derive(Clone, Copy)]
pub struct Mapped {
    /// A table of `count` frames.
    pub table: *const u8,
    /// The frames.
    pub frames: *const u8,
    /// How many.
    pub count: usize,
}

/// A file's slot, and whose it was when it was found.
#[derive(Clone, Copy)]
pub struct Found {
    /// Its number.
    pub index: u32,
    /// Its generation.
    pub generation: u32,
}

/// The methods are safe to call for as long as both mappings last.
impl Mapped {
    fn at<T>(&self, offset: usize) -> &T {
        // SAFETY: within the table, by its layout; all that is there is made of atomics.
        unsafe { &*self.table.add(offset).cast() }
    }

    /// Differs with each engine.
    pub fn epoch(&self) -> u64 {
        self.at::<Header>(0).epoch.load(Ordering::Acquire)
    }

    fn slot(&self, index: u32) -> &Slot {
        self.at(SLOTS_AT + index as usize * size_of::<Slot>())
    }

    /// The slot of an inode.
    pub fn find(&self, ino: u64) -> Option<Found> {
        let first = first_slot(ino) as u32;
        (first..first + PROBES as u32).find_map(|index| {
            let slot = self.slot(index);
            if slot.ino.load(Ordering::Acquire) != ino {
                return None;
            }
            let generation = slot.generation.load(Ordering::Acquire);
            (slot.ino.load(Ordering::Relaxed) == ino).then_some(Found { index, generation })
        })
    }

    /// Whether a slot is still that of the file for which it was found.
    pub fn is_still(&self, found: Found) -> bool {
        fence(Ordering::Acquire);
        let slot = self.slot(found.index);
        slot.generation.load(Ordering::Relaxed) == found.generation
            && slot.ino.load(Ordering::Relaxed) != 0
    }

    /// The length of a file. It counts if the slot [is still](Mapped::is_still) the file's.
    pub fn size(&self, found: Found) -> u64 {
        self.slot(found.index).size.load(Ordering::Acquire)
    }

    /// Reads all of it, or nothing that counts. It counts if the slot [is still](Mapped::is_still) the file's.
    ///
    /// # Safety
    /// `target` has room for `len` bytes.
    pub unsafe fn read(&self, found: Found, target: *mut u8, len: usize, offset: usize) -> bool {
        let slot = self.slot(found.index);
        let size = slot.size.load(Ordering::Acquire);
        if len == 0 || offset.checked_add(len).is_none_or(|end| end as u64 > size) {
            return false;
        }
        protocol::read::<_, Real>(&slot.place, |word| {
            let Some((first, count)) = Place::of(word).and_then(Place::entries) else {
                return false;
            };
            let mut done = 0;
            while done < len {
                let (block, at) = ((offset + done) / BLOCK, (offset + done) % BLOCK);
                let part = (len - done).min(BLOCK - at);
                // SAFETY: as much room is left.
                if block >= count
                    || !unsafe { self.copy(first + block, at, target.add(done), part) }
                {
                    return false;
                }
                done += part;
            }
            true
        })
    }

    /// Whether all of it could be read just now. It counts if the slot [is still](Mapped::is_still) the file's.
    pub fn has(&self, found: Found, offset: usize, len: usize) -> bool {
        let place = Place::of(self.slot(found.index).place.load(Ordering::Acquire));
        let Some((first, count)) = place.and_then(Place::entries) else { return false };
        let Some(end) = offset.checked_add(len).map(|end| end.div_ceil(BLOCK)) else {
            return false;
        };
        let leads = |block| {
            let entry: &AtomicU64 = self.at(ENTRIES_AT + (first + block) * 8);
            Entry(entry.load(Ordering::Relaxed)).frame().is_some()
        };
        end <= count && (offset / BLOCK..end).all(leads)
    }

    /// Copies a part of a block.
    unsafe fn copy(&self, entry: usize, at: usize, target: *mut u8, len: usize) -> bool {
        let entry: &AtomicU64 = self.at(ENTRIES_AT + entry * 8);
        protocol::read::<_, Real>(entry, |word| {
            let frame = Entry(word).frame().filter(|frame| (*frame as usize) < self.count);
            let Some(frame) = frame else { return false };
            // SAFETY: within the frame; `target` has the room. The engine may write there meanwhile; then the entry has changed.
            unsafe {
                self.frames.add(frame as usize * BLOCK + at).copy_to_nonoverlapping(target, len)
            };
            let mark: &Mark = self.at(MARKS_AT + frame as usize);
            // Looked at first: a line of memory that is only read is in every processor's cache.
            if mark.load(Ordering::Relaxed) == 0 {
                mark.store(1, Ordering::Relaxed);
            }
            true
        })
    }

    /// Adds to the blocks that were read directly.
    pub fn add_reads(&self, blocks: u64) {
        self.at::<AtomicU64>(count_at(self.count)).fetch_add(blocks, Ordering::Relaxed);
    }
}
