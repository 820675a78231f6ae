//! The files of a pool: one directory behind a trait, so that a simulation can replace it.
//!
//! Paths are relative to the directory, with `/` between parts (`segments/00000001.seg`). A write
//! is durable only after [`DiskFile::sync_data`]; a new, renamed or removed name only after
//! [`Disk::sync_dir`] of its directory. [`sim::SimDisk`] enforces exactly that.

mod linux;
mod patience;
pub mod sim;

pub use linux::LinuxDisk;

use std::io::{self, IoSlice};
use std::sync::Arc;

/// Room on the device below a [`Disk`], in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// All of it.
    pub total: u64,
    /// What a writer may still take.
    pub free: u64,
}

/// Held as long as the value lives.
pub trait DiskLock: Send + Sync {}

/// One directory of files.
pub trait Disk: Send + Sync {
    /// Opens an existing file for reading and writing.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing file so that reads leave no copy in the host's page cache. Writing through
    /// such a handle fails with `Unsupported`; punching holes works.
    fn open_uncached(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates a file that must not exist (`AlreadyExists`).
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates a directory; one that exists is fine.
    fn create_dir(&self, path: &str) -> io::Result<()>;
    /// Removes a file's name; open handles stay usable.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Renames a file, replacing the target atomically.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// The names of the files in a directory, sorted. `""` is the top.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Makes the names of a directory durable. `""` is the top.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
    /// Room on the device.
    fn space(&self) -> io::Result<DiskSpace>;
    /// Takes an exclusive lock on a file (created when missing); `WouldBlock` when another holds it.
    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>>;
}

/// An open file. Offsets and lengths are bytes.
#[allow(clippy::len_without_is_empty)] // a file's length can fail to be read
pub trait DiskFile: Send + Sync {
    /// Reads at `offset`; fewer bytes than asked for only at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// Hands `len` bytes at `offset` to `take`, without a copy if they are read through a buffer
    /// anyway; `UnexpectedEof` when the file is shorter. `take` must not read files itself.
    fn read_with(&self, offset: u64, len: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = vec![0; len];
        if self.read_at(offset, &mut buffer)? < len {
            return Err(too_short());
        }
        take(&buffer);
        Ok(())
    }
    /// Writes all of `data` at `offset`, extending the file.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Writes all parts one after another at `offset`.
    fn write_vectored_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let mut at = offset;
        for part in parts {
            self.write_at(at, part)?;
            at += part.len() as u64;
        }
        Ok(())
    }
    /// Returns when everything written before, and the length, is on the device.
    fn sync_data(&self) -> io::Result<()>;
    /// The length.
    fn len(&self) -> io::Result<u64>;
    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves room for a range, extending the file (new bytes read as zeros).
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Frees the room of a range, which then reads as zeros. The length stays.
    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Bytes of the device the file takes.
    fn allocated(&self) -> io::Result<u64>;
    /// Drops clean pages of a range from the host's page cache; a hint.
    fn forget_cached(&self, offset: u64, len: u64);
}

/// Reads exactly `buffer.len()` bytes; `UnexpectedEof` when the file is shorter.
pub fn read_exact_at(file: &dyn DiskFile, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    if file.read_at(offset, buffer)? < buffer.len() {
        return Err(too_short());
    }
    Ok(())
}

fn too_short() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends too early")
}
