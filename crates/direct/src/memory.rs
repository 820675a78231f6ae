//! Memory without a name that other processes can map by its descriptor.

use rustix::fs::{FallocateFlags, MemfdFlags, Mode, SealFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of a huge page.
pub(crate) const HUGE_PAGE: usize = 2 << 20;
/// `madvise(2)`.
const MADV_COLLAPSE: i32 = 25;

/// Reserves addresses that begin with a huge page: elsewhere none can be mapped.
fn aligned_addresses(len: usize) -> io::Result<*mut u8> {
    let all = len + HUGE_PAGE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: addresses that nothing else uses; those before and behind are given back.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let before = start.align_offset(HUGE_PAGE);
        let base = start.cast::<u8>().add(before);
        if before > 0 {
            libc::munmap(start, before);
        }
        let len = len.next_multiple_of(4096);
        libc::munmap(base.add(len).cast(), all - before - len);
        Ok(base)
    }
}

/// A mapping of all of it. Only what is touched is allocated.
#[derive(Debug)]
pub(crate) struct Memory {
    fd: OwnedFd,
    base: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to this value until it is dropped. Whoever accesses it says why nobody writes what they
// read: all of it goes through atomics, or through frames that nobody but the group writes.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// New memory, all zeros. Nobody can make it shorter: that would end whoever has it mapped.
    pub(crate) fn create(name: &str, len: usize) -> io::Result<Memory> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create(name, flags)?;
        rustix::fs::ftruncate(&fd, len as u64)?;
        // Who has a descriptor for reading cannot open the memory anew for writing.
        rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Memory::open(fd, len)
    }

    /// Memory that another process made. Its seals were set by the engine that made it, and cannot be taken away.
    pub(crate) fn open(fd: OwnedFd, len: usize) -> io::Result<Memory> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        if rustix::fs::fstat(&fd)?.st_size != len as i64 {
            return Err(invalid("shared memory of another size"));
        }
        if !rustix::fs::fcntl_get_seals(&fd)?.contains(SealFlags::SHRINK) {
            return Err(invalid("shared memory that can become shorter"));
        }
        let base = aligned_addresses(len)?;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: replaces addresses that are reserved for this.
        let mapped = unsafe { libc::mmap(base.cast(), len, rights, flags, fd.as_raw_fd(), 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Memory { fd, base, len })
    }

    /// Asks for a huge page at its offset, where nothing is in use yet. The kernel gives shared memory none at a fault, whatever
    /// its settings advise; it does where a page is there already and asked for so (Linux 6.1). Without, all goes on with
    /// small ones.
    pub(crate) fn use_huge_page(&self, offset: usize) {
        let at = self.at(offset);
        // SAFETY: a byte of ours that nobody uses yet, and advice about our own mapping; a refusal changes nothing.
        unsafe {
            at.write_volatile(0);
            libc::madvise(at.cast(), HUGE_PAGE, libc::MADV_HUGEPAGE);
            libc::madvise(at.cast(), HUGE_PAGE, MADV_COLLAPSE);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The address of a byte.
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.len, "within the memory");
        // SAFETY: within the mapping.
        unsafe { self.base.add(offset) }
    }

    /// Something that lies there and is made of atomics, whose every value is valid.
    ///
    /// # Safety
    /// `T` has only atomic fields.
    pub(crate) unsafe fn get<T>(&self, offset: usize) -> &T {
        assert!(offset.is_multiple_of(align_of::<T>()) && offset + size_of::<T>() <= self.len);
        // SAFETY: within the mapping and aligned; lives as long as self; any bytes are a value of it.
        unsafe { &*self.base.add(offset).cast::<T>() }
    }

    /// Gives memory back: it is all zeros afterwards.
    pub(crate) fn clear(&self, from: usize, len: usize) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.fd, flags, from as u64, len as u64)?)
    }

    /// A descriptor that can be mapped for reading only, by whoever it is given to.
    pub(crate) fn read_only(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        Ok(std::fs::File::open(path)?.into())
    }

    /// Whether both are the same memory.
    pub(crate) fn is_same(&self, fd: BorrowedFd<'_>) -> io::Result<bool> {
        let (one, other) = (rustix::fs::fstat(&self.fd)?, rustix::fs::fstat(fd)?);
        Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
    }
}

impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: unmaps what `open` mapped; no reference outlives self.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}
