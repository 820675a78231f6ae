//! An open file of the engine.

use crate::{Error, FileSystem, SetAttr};
use offshoot_types::Ino;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file the engine has open: it stays when its name is removed. Dropping it closes it.
///
/// Nothing is durable before [`File::sync`]. Mounts see changes immediately, except in parts of the
/// file that the kernel has cached: those when `sync` is called or the file is dropped.
pub struct File {
    fs: Arc<FileSystem>,
    ino: Ino,
    changed: AtomicBool,
}

impl File {
    pub(crate) fn open(fs: Arc<FileSystem>, ino: Ino) -> Result<File, Error> {
        fs.dataset().open(ino)?;
        Ok(File { fs, ino, changed: AtomicBool::new(false) })
    }

    /// Its inode number.
    pub fn ino(&self) -> Ino {
        self.ino
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// As [`offshoot_dataset::Dataset::getattr`].
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.fs.dataset().getattr(self.ino)?.size)
    }

    /// Whether it has no content.
    ///
    /// # Errors
    /// As [`File::len`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Reads into `buffer`; returns how many bytes, fewer than asked only at the end of the file.
    ///
    /// # Errors
    /// As [`offshoot_dataset::Dataset::read_into`].
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.fs.dataset().read_into(self.ino, offset, buffer)
    }

    /// Writes all of `data`.
    ///
    /// # Errors
    /// As [`offshoot_dataset::Dataset::write`].
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.changed.store(true, Ordering::Relaxed);
        self.fs.dataset().write(self.ino, offset, data)
    }

    /// Writes all of `data` at the end; returns its offset.
    ///
    /// # Errors
    /// As [`offshoot_dataset::Dataset::append`].
    pub fn append(&self, data: &[u8]) -> Result<u64, Error> {
        self.changed.store(true, Ordering::Relaxed);
        self.fs.dataset().append(self.ino, data)
    }

    /// Truncates the file, or extends it with a hole.
    ///
    /// # Errors
    /// As [`offshoot_dataset::Dataset::setattr`].
    pub fn set_len(&self, len: u64) -> Result<(), Error> {
        self.changed.store(true, Ordering::Relaxed);
        let change = SetAttr { size: Some(len), ..SetAttr::default() };
        self.fs.dataset().setattr(self.ino, &change).map(drop)
    }

    /// Makes everything done so far in the whole dataset durable.
    ///
    /// # Errors
    /// As [`offshoot_dataset::Dataset::sync`].
    pub fn sync(&self) -> Result<(), Error> {
        self.announce();
        self.fs.sync()
    }

    fn announce(&self) {
        if self.changed.swap(false, Ordering::Relaxed) {
            self.fs.watchers.inode_changed(self.ino);
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.announce();
        self.fs.dataset().close(self.ino);
    }
}
