//! A device on which each read costs the same, however long: what belongs together is read at once.

mod support;

use offshoot_dataset::{Dataset, Error, Ino, Store};
use offshoot_os::Clock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use support::{Dice, create, make_file, open, small_options};

const BLOCK: usize = 8192;
/// As much as the kernel asks for at most.
const REQUEST: usize = 128 * BLOCK;

/// A clock by which everything takes two milliseconds.
#[derive(Default)]
struct Slow(AtomicU64);

impl Clock for Slow {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(2 * self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) {}
}

/// A dataset with a file of these blocks, opened anew on a device that has shown that it is slow.
fn cold(
    disk: &Arc<SimDisk>,
    blocks: impl Iterator<Item = Vec<u8>>,
) -> (Arc<Store>, Arc<Dataset>, Ino) {
    let mut options = small_options();
    options.pool.cache_size = 32 << 20;
    create(disk, &options).unwrap();
    let store = open(disk, &options).unwrap();
    let dataset = store.dataset(store.create_dataset().unwrap()).unwrap();
    let (file, other) = (make_file(&dataset, b"file"), make_file(&dataset, b"other"));
    for (number, block) in blocks.enumerate() {
        dataset.write(file, (number * BLOCK) as u64, &block).unwrap();
    }
    let mut dice = Dice::new(9);
    dataset.write(other, 0, &dice.bytes(20 * 16 * BLOCK)).unwrap();
    let id = dataset.id();
    drop(dataset);
    store.close().unwrap();
    drop(store);
    let store = Store::open(disk.clone() as Arc<dyn Disk>, &options, Arc::new(Slow::default()));
    let store = store.unwrap();
    let dataset = store.dataset(id).unwrap();
    for block in (0..20 * 16).step_by(16) {
        dataset.read(other, (block * BLOCK) as u64, BLOCK).unwrap();
    }
    (store, dataset, file)
}

fn can_be_read(dataset: &Dataset, file: Ino, block: usize) -> bool {
    match dataset.read(file, (block * BLOCK) as u64, REQUEST) {
        Ok(content) => content.len() == REQUEST,
        Err(Error::Io(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_sequential_read_brings_what_comes_next() {
    let disk = SimDisk::new(1);
    let mut dice = Dice::new(5);
    let (_store, dataset, file) = cold(&disk, (0..1000).map(|_| dice.bytes(BLOCK)));
    assert!(can_be_read(&dataset, file, 0));
    disk.fail_reads(Some("segments/"));
    assert!(can_be_read(&dataset, file, 128) && can_be_read(&dataset, file, 256));
    assert!(!can_be_read(&dataset, file, 384), "of the next group nothing was read");
}

#[test]
fn nodes_of_a_file_are_read_together() {
    let disk = SimDisk::new(1);
    let mut dice = Dice::new(5);
    // All nodes differ, and all blocks are among the first.
    let blocks: Vec<Vec<u8>> = (0..100).map(|_| dice.bytes(BLOCK)).collect();
    let (_store, dataset, file) = cold(&disk, (0..1000).map(|number| blocks[number % 100].clone()));
    assert!(can_be_read(&dataset, file, 0));
    disk.fail_reads(Some("segments/"));
    for block in [128, 384, 640, 768] {
        assert!(can_be_read(&dataset, file, block), "block {block}");
    }
}
