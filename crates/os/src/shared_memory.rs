//! Memory that outlives the process that writes it: any holder of its descriptor can map it again.
//!
//! ```text
//! file    | head | ring |
//! mapped  | head | ring | the same ring again |      a range that wraps round is contiguous
//! ```

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

/// The unit in which memory is given back.
const PAGE: u64 = 4096;

/// A head of counters and a ring of bytes, in memory that has no name.
#[derive(Debug)]
pub struct SharedMemory {
    fd: OwnedFd,
    base: *mut u8,
    head_len: usize,
    ring_len: usize,
}

// SAFETY: the mapping belongs to this value until it is dropped; its counters are atomic, and who may
// touch which bytes of the ring is for the callers of `write` and `read` to settle.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes one, filled with zeros; memory is allocated only where it is written. Both lengths are
    /// multiples of 4096.
    ///
    /// # Errors
    /// The system's.
    pub fn create(head_len: usize, ring_len: usize) -> io::Result<Self> {
        let fd = rustix::fs::memfd_create("offshoot", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&fd, (head_len + ring_len) as u64)?;
        Self::open(fd, head_len, ring_len)
    }

    /// Maps one that was made with the same lengths.
    ///
    /// # Errors
    /// `InvalidData` for another length; the system's.
    pub fn open(fd: OwnedFd, head_len: usize, ring_len: usize) -> io::Result<Self> {
        let whole = head_len + ring_len;
        let aligned = |len: usize| len > 0 && (len as u64).is_multiple_of(PAGE);
        if rustix::fs::fstat(&fd)?.st_size != whole as i64
            || !aligned(head_len)
            || !aligned(ring_len)
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "shared memory of another size",
            ));
        }
        // SAFETY: reserves addresses that nothing else uses.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                whole + ring_len,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = SharedMemory { fd, base: base.cast(), head_len, ring_len };
        memory.map(0, whole, 0)?;
        memory.map(whole, ring_len, head_len)?;
        Ok(memory)
    }

    fn map(&self, at: usize, len: usize, offset: usize) -> io::Result<()> {
        // SAFETY: replaces part of the addresses that `open` reserved for this value.
        let mapped = unsafe {
            libc::mmap(
                self.base.add(at).cast(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                self.fd.as_raw_fd(),
                offset as i64,
            )
        };
        if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// A counter of the head, by its offset in bytes, a multiple of 8.
    pub fn counter(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.head_len, "a counter in the head");
        // SAFETY: mapped, aligned, as long as self; counters are only ever used atomically.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    /// Copies bytes into the ring. A position counts on for ever and wraps round. Nobody else may
    /// touch that range of the ring at the same time.
    pub fn write(&self, position: u64, bytes: &[u8]) {
        assert!(bytes.len() <= self.ring_len, "as long as the ring at most");
        // SAFETY: the ring is mapped twice in a row, so the range lies within it.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(position), bytes.len());
        }
    }

    /// A copy of bytes of the ring.
    pub fn read(&self, position: u64, len: usize) -> Vec<u8> {
        assert!(len <= self.ring_len, "as long as the ring at most");
        let mut bytes = vec![0; len];
        // SAFETY: as in `write`.
        unsafe { std::ptr::copy_nonoverlapping(self.at(position), bytes.as_mut_ptr(), len) };
        bytes
    }

    /// Gives back the memory of the pages that lie wholly in a range of the ring, and of the page in
    /// which it begins: the caller needs nothing before the range either.
    ///
    /// # Errors
    /// The system's; then the memory is just not given back.
    pub fn release(&self, from: u64, to: u64) -> io::Result<()> {
        let (mut from, to) = (from / PAGE * PAGE, to / PAGE * PAGE);
        let ring = self.ring_len as u64;
        while from < to {
            let start = from % ring;
            let len = (to - from).min(ring - start);
            let mode =
                rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(&self.fd, mode, self.head_len as u64 + start, len)?;
            from += len;
        }
        Ok(())
    }

    fn at(&self, position: u64) -> *mut u8 {
        let offset = self.head_len + (position % self.ring_len as u64) as usize;
        // SAFETY: within the mapping, which has the ring twice behind the head.
        unsafe { self.base.add(offset) }
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the addresses were reserved by `open`, and nothing borrows from a dropped value.
        unsafe { libc::munmap(self.base.cast(), self.head_len + 2 * self.ring_len) };
    }
}

/// Replaces what `target` refers to: from now on it is another descriptor of `source`.
///
/// # Errors
/// The system's.
pub fn redirect(target: BorrowedFd<'_>, source: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both are open; the number of `target` stays owned by whoever owns it.
    let fd = unsafe { libc::dup3(source.as_raw_fd(), target.as_raw_fd(), libc::O_CLOEXEC) };
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
