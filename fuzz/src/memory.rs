//! An allocator with a bound, so that a length taken from the input does not become memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// No input is larger than some KiB: no decoder needs this much for one.
const ONCE_BYTES_MAX: usize = 64 << 20;
/// Everything that is allocated at a time, including targets that keep a store.
const TOTAL_BYTES_MAX: usize = 512 << 20;

static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which ends the process beyond the bound.
pub(crate) struct Bounded;

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let total = TOTAL.fetch_add(layout.size(), Relaxed) + layout.size();
        if layout.size() > ONCE_BYTES_MAX || total > TOTAL_BYTES_MAX {
            TOTAL.store(0, Relaxed);
            eprintln!("panicked: {} bytes at once, {total} bytes in all", layout.size());
            std::process::abort();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        TOTAL.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}
