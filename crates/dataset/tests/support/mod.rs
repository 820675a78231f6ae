//! What the tests of datasets share: a disk that is removed in the end, options for small stores,
//! and a generator that repeats with its seed.

#![allow(dead_code, unused_imports, clippy::disallowed_methods)]

pub mod model;
pub mod run;

use offshoot_dataset::{Dataset, Ino, NewInode, Store, StoreOptions};
use offshoot_os::disk::{Disk, LinuxDisk};
use offshoot_os::{Clock, SystemClock};
use std::sync::Arc;
use std::time::Duration;

/// Options for a store of a few MiB on which nothing happens by itself.
pub fn small_options() -> StoreOptions {
    let mut options = StoreOptions {
        log_file_size: 128 << 10,
        log_files: 3,
        commit_workers: 1,
        background: false,
        commit_interval: Duration::from_millis(200),
        ..StoreOptions::default()
    };
    options.pool.cache_size = 4 << 20;
    options.pool.segment_size = 1 << 20;
    options.pool.reserve = Some(1 << 20);
    options.pool.checkpoint_log_min = 16 << 10;
    options.pool.background = false;
    options
}

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

/// Numbers that repeat with their seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % sides.max(1)
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.roll(one_in) == 0
    }

    /// Bytes that compress a little.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let byte = self.roll(256) as u8;
            let run = 1 + self.roll(16) as usize;
            bytes.extend(std::iter::repeat_n(byte, run.min(len - bytes.len())));
        }
        bytes
    }
}

/// Number of seeds: `few` by default, `OFFSHOOT_SEEDS` when set; and the first one,
/// `OFFSHOOT_FIRST_SEED`.
pub fn seeds(few: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("OFFSHOOT_FIRST_SEED").unwrap_or(1);
    first..first + number("OFFSHOOT_SEEDS").unwrap_or(few)
}

pub fn make_file(dataset: &Dataset, name: &[u8]) -> Ino {
    dataset.create(Ino::ROOT, name, &NewInode::file(0o644)).unwrap().ino
}
