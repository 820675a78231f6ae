//! How a client reads a block while the engine may take its frame away, as a sequence lock for readers (`core` only: the
//! client library is compiled with this file, too).
//!
//! The reader loads the entry, copies the frame, and loads the entry again: unchanged, and what was copied is the block.
//! The writer changes the entry before it touches the frame. Both sides have a fence between entry and frame: if the
//! reader copied a byte that was written after the change, its second load sees the change.
//! Entries count their changes, so one that changed twice does not look unchanged.
//!
//! The atomics are parameters, so that a test runs these very functions in a model of all interleavings.

use core::sync::atomic::Ordering;

/// A word that both sides see.
pub trait Word {
    /// Loads it.
    fn load(&self, ordering: Ordering) -> u64;
    /// Stores it.
    fn store(&self, value: u64, ordering: Ordering);
}

/// Orders this thread's accesses.
pub trait Fences {
    /// A fence.
    fn fence(ordering: Ordering);
}

/// Copies what `word` leads to. `copy` is given the word, and says whether it leads anywhere.
/// Returns whether what was copied is whole and was current at some moment in between.
pub fn read<W: Word, F: Fences>(word: &W, copy: impl FnOnce(u64) -> bool) -> bool {
    let seen = word.load(Ordering::Acquire);
    if !copy(seen) {
        return false;
    }
    F::fence(Ordering::Acquire);
    word.load(Ordering::Relaxed) == seen
}

/// Takes a frame from its readers: afterwards it may be written. The writer has no rival.
pub fn withdraw<W: Word, F: Fences>(word: &W, next: u64) {
    word.store(next, Ordering::Relaxed);
    F::fence(Ordering::Release);
}

/// Gives a frame that has been written to its readers.
pub fn publish<W: Word>(word: &W, next: u64) {
    word.store(next, Ordering::Release);
}

/// The real ones.
pub struct Real;

impl Fences for Real {
    fn fence(ordering: Ordering) {
        core::sync::atomic::fence(ordering);
    }
}

impl Word for core::sync::atomic::AtomicU64 {
    fn load(&self, ordering: Ordering) -> u64 {
        core::sync::atomic::AtomicU64::load(self, ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        core::sync::atomic::AtomicU64::store(self, value, ordering);
    }
}
