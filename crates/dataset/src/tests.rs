//! What this crate's tests have in common: a store on a real directory, and dice.

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

/// Numbers below what each is asked for; a seed repeats a run.
pub(crate) fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |sides| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % sides
    }
}
