//! What the tests of datasets share: a store on a disk that is removed at the end, and what the
//! simulation offers.

#![allow(dead_code, unused_imports, clippy::disallowed_methods)]

pub use offshoot_sim::{Dice, create, open, seeds, small_options};

use offshoot_dataset::{Dataset, Ino, NewInode, Store, StoreOptions};
use offshoot_os::SystemClock;
use offshoot_os::disk::{Disk, LinuxDisk};
use std::sync::Arc;

/// A store in a directory of its own.
pub struct TestStore {
    pub disk: Arc<dyn Disk>,
    pub options: StoreOptions,
    pub store: Arc<Store>,
    pub dir: tempfile::TempDir,
}

impl TestStore {
    pub fn new(options: StoreOptions) -> TestStore {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(dir.path().join("pool")).unwrap());
        Store::create(&disk, &options).unwrap();
        let store = Store::open(Arc::clone(&disk), &options, Arc::new(SystemClock)).unwrap();
        TestStore { disk, options, store, dir }
    }

    /// Opens the store again; what was not synced is lost without `close`.
    pub fn reopen(self, close: bool) -> TestStore {
        let TestStore { disk, options, store, dir } = self;
        if close {
            store.close().unwrap();
        }
        assert_eq!(Arc::strong_count(&store), 1, "a test holds the store");
        drop(store);
        let store = Store::open(Arc::clone(&disk), &options, Arc::new(SystemClock)).unwrap();
        TestStore { disk, options, store, dir }
    }
}

pub fn make_file(dataset: &Dataset, name: &[u8]) -> Ino {
    dataset.create(Ino::ROOT, name, &NewInode::file(0o644)).unwrap().ino
}
