//! What this crate's tests on a real directory have in common.

use crate::{Store, StoreOptions};
use offshoot_os::SystemClock;
use offshoot_os::disk::{Disk, LinuxDisk};
use std::sync::Arc;

/// A small store in which nothing happens on its own.
fn options() -> StoreOptions {
    let mut options =
        StoreOptions { log_file_size: 128 << 10, background: false, ..StoreOptions::default() };
    options.pool.background = false;
    options
}

/// An empty one.
pub(crate) fn create() -> (tempfile::TempDir, Arc<dyn Disk>) {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(dir.path().join("pool")).unwrap());
    Store::create(&disk, &options()).unwrap();
    (dir, disk)
}

pub(crate) fn open(disk: &Arc<dyn Disk>) -> Arc<Store> {
    Store::open(disk.clone(), &options(), Arc::new(SystemClock)).unwrap()
}
