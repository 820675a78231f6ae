//! The engine's heap.

/// Has all threads share one heap. By itself the C library gives each a heap of its own: blocks that
/// one thread allocates and another frees then leave each with gaps that the others cannot use,
/// hundreds of megabytes after a minute of writes. Call it before any other thread is started.
pub fn share_heap() {
    // SAFETY: sets a number under the allocator's own lock; nothing is allocated or freed.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
