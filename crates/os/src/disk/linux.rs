//! The real disk.

use super::{Disk, DiskFile, DiskLock, DiskSpace};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of this machine.
#[derive(Debug)]
pub struct LinuxDisk {
    dir: PathBuf,
}

impl LinuxDisk {
    /// The directory at `dir`, created (mode 0700) when missing.
    pub fn new(dir: impl AsRef<Path>) -> io::Result<Self> {
        std::fs::create_dir_all(&dir)?;
        Ok(LinuxDisk { dir: dir.as_ref().to_owned() })
    }
}

#[allow(unused_variables)]
impl Disk for LinuxDisk {
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        todo!("{:?}", self.dir)
    }
    fn open_uncached(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        todo!()
    }
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        todo!()
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        todo!()
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        todo!()
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        todo!()
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        todo!()
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        todo!()
    }
    fn space(&self) -> io::Result<DiskSpace> {
        todo!()
    }
    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        todo!()
    }
}
