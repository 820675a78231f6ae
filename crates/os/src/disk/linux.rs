//! The real disk.

use super::patience::{self, patiently};
use super::{Disk, DiskFile, DiskLock, DiskSpace};
use crate::limits::is_shortage;
use crate::{Clock, SystemClock};
use rustix::fs::{Advice, FallocateFlags, FlockOperation, OFlags};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Direct reads start and end at multiples of this; no device in use asks for more.
const DIRECT_ALIGN: u64 = 4096;
/// Pause before a read that the kernel had no memory for is repeated.
const MEMORY_PAUSE: Duration = Duration::from_millis(20);
/// Pages of its window that a thread keeps: 256 KiB.
const WINDOW_PAGES_MAX: usize = 64;

/// A directory of this machine.
#[derive(Debug)]
pub struct LinuxDisk {
    dir: PathBuf,
}

impl LinuxDisk {
    /// The directory at `dir`, created (mode 0700) when missing.
    pub fn new(dir: impl AsRef<Path>) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        patience::restore();
        Ok(LinuxDisk { dir: dir.as_ref().to_owned() })
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options
    }
}

impl Disk for LinuxDisk {
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.dir.join(path);
        Ok(Arc::new(LinuxFile { file: patiently(|| Self::options().open(&path))? }))
    }

    fn open_uncached(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.dir.join(path);
        let direct = patiently(|| Self::options().custom_flags(libc::O_DIRECT).open(&path));
        let (file, direct) = match direct {
            // Not every file system accepts the flag (some network ones do not).
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                (patiently(|| Self::options().open(&path))?, false)
            }
            other => (other?, true),
        };
        Ok(Arc::new(UncachedFile { file: LinuxFile { file }, direct: AtomicBool::new(direct) }))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.dir.join(path);
        let file = patiently(|| Self::options().create_new(true).open(&path))?;
        Ok(Arc::new(LinuxFile { file }))
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        match std::fs::DirBuilder::new().mode(0o700).create(self.dir.join(path)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let path = self.dir.join(path);
        patiently(|| std::fs::remove_file(&path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let dir = self.dir.join(dir);
        for entry in patiently(|| std::fs::read_dir(&dir))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.extend(entry.file_name().into_string());
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let dir = self.dir.join(dir);
        patiently(|| File::open(&dir))?.sync_all()
    }

    fn space(&self) -> io::Result<DiskSpace> {
        let stat = rustix::fs::statvfs(&self.dir)?;
        Ok(DiskSpace {
            total: stat.f_blocks.saturating_mul(stat.f_frsize),
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
        })
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        let file = Self::options().create(true).truncate(false).open(self.dir.join(path))?;
        let deadline = SystemClock.elapsed() + LOCK_PATIENCE;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Box::new(LinuxLock { _file: file })),
                Err(rustix::io::Errno::WOULDBLOCK) if SystemClock.elapsed() < deadline => {
                    SystemClock.sleep(Duration::from_millis(20));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// How long to wait for a lock. A child that was being started when its parent was killed holds a
/// copy of the parent's descriptors until its `execve`, and the lock with them.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// An flock lives as long as its file description.
struct LinuxLock {
    _file: File,
}

impl DiskLock for LinuxLock {}

struct LinuxFile {
    file: File,
}

impl LinuxFile {
    fn read_full(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_shortage(&error) => SystemClock.sleep(MEMORY_PAUSE),
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

impl DiskFile for LinuxFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_full(offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        patiently(|| self.file.write_all_at(data, offset))
    }

    fn write_vectored_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let mut at = offset;
        // The kernel accepts 1024 parts at a time.
        for chunk in parts.chunks(1024) {
            let len: usize = chunk.iter().map(|part| part.len()).sum();
            let mut done = patiently(|| Ok(rustix::io::pwritev(&self.file, chunk, at)?))?;
            if done < len {
                // Rare (a signal, a full disk): the rest part by part, for its own error.
                let mut begin = 0;
                for part in chunk {
                    if begin + part.len() > done {
                        let skip = done.saturating_sub(begin);
                        self.file.write_all_at(&part[skip..], at + (begin + skip) as u64)?;
                        done = begin + part.len();
                    }
                    begin += part.len();
                }
            }
            at += len as u64;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), offset, len) {
            Err(rustix::io::Errno::OPNOTSUPP) => {
                let end = offset + len;
                if self.len()? < end { self.file.set_len(end) } else { Ok(()) }
            }
            other => Ok(other?),
        }
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, flags, offset, len)?)
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }

    fn forget_cached(&self, offset: u64, len: u64) {
        // A hint: nothing is lost if the kernel ignores it.
        let _ = rustix::fs::fadvise(&self.file, offset, NonZeroU64::new(len), Advice::DontNeed);
    }
}

/// Reads that bypass the page cache, through an aligned window of the calling thread.
struct UncachedFile {
    file: LinuxFile,
    direct: AtomicBool,
}

/// A page-aligned unit, so that a vector of them is an aligned buffer.
#[repr(C, align(4096))]
#[derive(Clone, Copy)]
struct Page([u8; DIRECT_ALIGN as usize]);

thread_local! {
    static WINDOW: RefCell<Vec<Page>> = const { RefCell::new(Vec::new()) };
}

impl UncachedFile {
    /// Hands up to `len` bytes to `take`, fewer only at the end of the file.
    fn read_direct<T>(
        &self,
        offset: u64,
        len: usize,
        take: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<T> {
        let begin = offset / DIRECT_ALIGN * DIRECT_ALIGN;
        let end = (offset + len as u64).next_multiple_of(DIRECT_ALIGN);
        let pages = ((end - begin) / DIRECT_ALIGN) as usize;
        WINDOW.with_borrow_mut(|window| {
            if window.len() < pages {
                window.resize(pages, Page([0; DIRECT_ALIGN as usize]));
            }
            // SAFETY: `Page` is plain bytes without padding, and the slice covers exactly `pages`
            // initialised elements of the vector, which stays borrowed as long as the slice lives.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(
                    window.as_mut_ptr().cast::<u8>(),
                    pages * DIRECT_ALIGN as usize,
                )
            };
            let read = self.read_aligned(begin, bytes)?;
            let skip = (offset - begin) as usize;
            let len = read.saturating_sub(skip).min(len);
            let taken = take(bytes.get(skip..skip + len).unwrap_or_default());
            // Somebody may have asked for a large window; don't keep that per thread.
            if window.len() > WINDOW_PAGES_MAX {
                window.truncate(WINDOW_PAGES_MAX);
                window.shrink_to_fit();
            }
            Ok(taken)
        })
    }

    /// The result of a direct read; `None` if reads are not direct, or from now on if the file system
    /// accepted the flag but refused the read.
    fn direct<T>(&self, read: impl FnOnce() -> io::Result<T>) -> Option<io::Result<T>> {
        if !self.direct.load(Ordering::Relaxed) {
            return None;
        }
        let error = match read() {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => error,
            other => return Some(other),
        };
        let flags = rustix::fs::fcntl_getfl(&self.file.file);
        let set = flags
            .and_then(|flags| rustix::fs::fcntl_setfl(&self.file.file, flags - OFlags::DIRECT));
        if set.is_err() {
            return Some(Err(error));
        }
        self.direct.store(false, Ordering::Relaxed);
        None
    }

    /// Reads until the window is full or the file ends; a direct read must stay aligned, so an odd
    /// count is the end of the file.
    fn read_aligned(&self, offset: u64, window: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < window.len() {
            match self.file.file.read_at(&mut window[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => {
                    done += n;
                    if n % DIRECT_ALIGN as usize != 0 {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_shortage(&error) => SystemClock.sleep(MEMORY_PAUSE),
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn unsupported() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "the file is open for uncached reading")
    }
}

impl DiskFile for UncachedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len();
        let copy = |bytes: &[u8]| {
            buffer[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        };
        if let Some(read) = self.direct(|| self.read_direct(offset, len, copy)) {
            return read;
        }
        let read = self.file.read_full(offset, buffer)?;
        self.forget_cached(offset, read as u64);
        Ok(read)
    }

    fn read_with(&self, offset: u64, len: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let whole = |bytes: &[u8]| {
            if bytes.len() < len {
                return Err(super::too_short());
            }
            take(bytes);
            Ok(())
        };
        if let Some(taken) = self.direct(|| self.read_direct(offset, len, whole)) {
            return taken.flatten();
        }
        let mut buffer = vec![0; len];
        super::read_exact_at(self, offset, &mut buffer)?;
        take(&buffer);
        Ok(())
    }

    fn write_at(&self, _offset: u64, _data: &[u8]) -> io::Result<()> {
        Err(Self::unsupported())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Err(Self::unsupported())
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch_hole(offset, len)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.file.allocated()
    }

    fn forget_cached(&self, offset: u64, len: u64) {
        self.file.forget_cached(offset, len);
    }
}

#[cfg(test)]
mod tests;
