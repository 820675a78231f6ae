//! The memory of a table, as the engine writes it.

use crate::layout::{
    ENTRIES_AT, ENTRIES_LEN, Header, MAGIC, MARKS_AT, Mark, PROBES, SLOTS, SLOTS_AT, Slot, VERSION,
    count_at,
};
use crate::memory::Memory;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory of a table.
#[derive(Debug)]
pub(crate) struct TableMemory(Memory);

impl TableMemory {
    /// Makes it a table without files, for so many frames.
    pub(crate) fn new(memory: Memory, frames: usize) -> io::Result<TableMemory> {
        let shared = TableMemory(memory);
        shared.reset(frames)?;
        Ok(shared)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// How many blocks its clients say that they have read.
    pub(crate) fn reads(&self, frames: usize) -> u64 {
        // SAFETY: an atomic.
        let count: &AtomicU64 = unsafe { self.0.get(count_at(frames)) };
        count.load(Ordering::Relaxed)
    }

    fn header(&self) -> &Header {
        // SAFETY: all atomics.
        unsafe { self.0.get(0) }
    }

    pub(crate) fn slot(&self, index: usize) -> &Slot {
        // SAFETY: all atomics.
        unsafe { self.0.get(SLOTS_AT + index * size_of::<Slot>()) }
    }

    pub(crate) fn entry(&self, number: u32) -> &AtomicU64 {
        assert!((number as usize) < ENTRIES_LEN / 8, "an entry of the table");
        // SAFETY: an atomic.
        unsafe { self.0.get(ENTRIES_AT + number as usize * 8) }
    }

    pub(crate) fn mark(&self, frame: u32) -> &Mark {
        // SAFETY: an atomic.
        unsafe { self.0.get(MARKS_AT + frame as usize) }
    }

    /// Whoever reads by it finds out (D4).
    fn reset(&self, frames: usize) -> io::Result<()> {
        for index in 0..SLOTS + PROBES {
            let slot = self.slot(index);
            slot.place.store(0, Ordering::Relaxed);
            slot.ino.store(0, Ordering::Relaxed);
        }
        std::sync::atomic::fence(Ordering::SeqCst);
        self.0.clear(SLOTS_AT, MARKS_AT - SLOTS_AT)?;
        let header = self.header();
        header.magic.store(MAGIC, Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Relaxed);
        header.frames.store(frames as u64, Ordering::Relaxed);
        header.epoch.store(random() | 1, Ordering::Release);
        Ok(())
    }
}

/// A number that an earlier engine is not likely to have chosen.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
