//! The heap of this process.

/// Larger buffers are mapped each by itself, so that they take memory only as far as they are used: each thread of a mount
/// has one of 16 MiB for requests of a few KiB. By itself glibc takes them from its heap once one was freed, and then fills
/// what is to be zeros.
#[cfg(target_env = "gnu")]
const MAPPED_MIN: i32 = 8 << 20;
/// Free memory at the end of the heap, in bytes, from which on it is given back.
#[cfg(target_env = "gnu")]
const TRIMMED_MIN: i32 = 64 << 20;

/// Has all threads share one heap. By itself the C library gives each a heap of its own: blocks that
/// one thread allocates and another frees then leave each with gaps that the others cannot use,
/// hundreds of megabytes after a minute of writes. Call it before any other thread is started.
pub fn share_heap() {
    // SAFETY: sets numbers under the allocator's own lock; nothing is allocated or freed.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_MIN);
        // As it would be by itself after such a buffer was freed.
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIMMED_MIN);
    }
}
