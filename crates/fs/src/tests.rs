//! A pool for tests of this crate.

use crate::FileSystem;
use offshoot_dataset::{Dataset, Store, StoreOptions};
use offshoot_os::SystemClock;
use offshoot_os::disk::{Disk, LinuxDisk};
use std::sync::Arc;

pub(crate) struct Pool {
    _dir: tempfile::TempDir,
    store: Arc<Store>,
}

impl Pool {
    pub(crate) fn new() -> Pool {
        let dir = tempfile::tempdir().unwrap();
        let mut options = StoreOptions { log_file_size: 1 << 20, ..StoreOptions::default() };
        options.pool.cache_size = 16 << 20;
        let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(dir.path()).unwrap());
        Store::create(&disk, &options).unwrap();
        let store = Store::open(disk, &options, Arc::new(SystemClock)).unwrap();
        Pool { _dir: dir, store }
    }

    pub(crate) fn dataset(&self) -> Arc<Dataset> {
        self.store.dataset(self.store.create_dataset().unwrap()).unwrap()
    }

    pub(crate) fn fs(&self) -> Arc<FileSystem> {
        FileSystem::new(self.dataset())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.store.close().unwrap();
    }
}
