//! What belongs together is read together: a device may count reads, not bytes.
#![allow(clippy::unwrap_used)]

mod support;

use offshoot_dataset::{Dataset, Error, Ino, Store};
use offshoot_os::SystemClock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::sync::Arc;
use support::{Dice, create, make_file, open, small_options};

const BLOCK: usize = 8192;
/// As much as the kernel asks for at most.
const REQUEST: usize = 128 * BLOCK;

/// A dataset with a file of these blocks, opened again.
fn cold(
    disk: &Arc<SimDisk>,
    blocks: impl Iterator<Item = Vec<u8>>,
) -> (Arc<Store>, Arc<Dataset>, Ino) {
    let mut options = small_options();
    options.pool.cache_size = 32 << 20;
    create(disk, &options).unwrap();
    let store = open(disk, &options).unwrap();
    let dataset = store.dataset(store.create_dataset().unwrap()).unwrap();
    let file = make_file(&dataset, b"file");
    for (number, block) in blocks.enumerate() {
        dataset.write(file, (number * BLOCK) as u64, &block).unwrap();
    }
    let id = dataset.id();
    drop(dataset);
    store.close().unwrap();
    drop(store);
    let disk = disk.clone() as Arc<dyn Disk>;
    let store = Store::open(disk, &options, Arc::new(SystemClock)).unwrap();
    let dataset = store.dataset(id).unwrap();
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
    assert!(can_be_read(&dataset, file, 128));
    assert!(!can_be_read(&dataset, file, 256), "of the next group nothing was read");
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
    for block in [128, 384, 640, 850] {
        assert!(can_be_read(&dataset, file, block), "block {block}");
    }
}
