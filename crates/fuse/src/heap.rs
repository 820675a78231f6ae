//! Keeps the memory ready into which the kernel copies requests.

use rustix::mm::{Advice, madvise, mlock, munlock};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

/// What fuser allocates for each thread that reads requests, in bytes: far more than a request has here.
const BUFFER_LEN: usize = (16 << 20) + HEADERS_MAX;
/// What comes before the data of a write, in bytes.
const HEADERS_MAX: usize = 4096;
/// The most data of a request. Only a list of forgotten inodes may be longer: nobody waits for its answer.
pub(crate) const HELD_DATA_LEN: usize = 128 << 10;
/// Bytes at the start of each buffer that are always in memory. An idle VDB has so much for each of its threads.
const HELD: usize = HELD_DATA_LEN + HEADERS_MAX;

/// The heap of a process that serves mounts that outlive it.
///
/// INVARIANT: the start of each buffer that fuser reads requests into is in memory before the first one is read, and
/// no request that is answered is longer.
/// The kernel takes a request off its queue, then copies it. If that needs a page that is not there and the process is
/// being killed, it gets none, and answers the request with `EIO`: a database then ends all its connections. So these
/// pages are locked: no shortage of memory takes them away. Nor are they shared with a child that has yet to `exec`:
/// the next write to a shared page would have to ask for it again.
///
/// It is done here because fuser allocates its buffers itself, in the threads that it starts.
#[derive(Debug)]
pub struct Heap<A>(pub A);

// SAFETY: each call is passed on as it came, and locking a block's memory does not change what it holds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Heap<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the heap below.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the heap below.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        if layout.size() == BUFFER_LEN && !block.is_null() {
            // SAFETY: the block is longer.
            unsafe { hold(block.cast()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() == BUFFER_LEN {
            // SAFETY: the block is longer.
            unsafe { release(block.cast()) };
        }
        // SAFETY: the caller's promises are those of the heap below.
        unsafe { self.0.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are those of the heap below.
        unsafe { self.0.realloc(block, layout, size) }
    }
}

/// Best effort: a process that may lock no more memory at least has the pages now.
///
/// # Safety
/// A block of at least [`HELD`] bytes.
unsafe fn hold(block: *mut c_void) {
    let (start, length) = whole_pages(block);
    // SAFETY: what lies in the first and last page beside the block keeps its content, too.
    unsafe {
        if mlock(start, length).is_err() {
            let _ = madvise(start, length, Advice::LinuxPopulateWrite);
        }
        let _ = madvise(start, length, Advice::LinuxDontFork);
    }
}

/// The next owner of this memory finds it as any other.
///
/// # Safety
/// As for [`hold`].
unsafe fn release(block: *mut c_void) {
    let (start, length) = whole_pages(block);
    // SAFETY: as in `hold`.
    unsafe {
        let _ = munlock(start, length);
        let _ = madvise(start, length, Advice::LinuxDoFork);
    }
}

/// The pages with the start of a block.
fn whole_pages(block: *mut c_void) -> (*mut c_void, usize) {
    let before = block.addr() % rustix::param::page_size();
    (block.wrapping_byte_sub(before), before + HELD)
}
