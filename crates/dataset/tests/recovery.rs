//! How long a store takes to open after its process was killed, by what had not been committed. Figures: `cargo test
//! --release -p offshoot-dataset --test recovery -- --ignored --nocapture --test-threads=1`.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // it measures time

mod support;

use offshoot_dataset::{Dataset, DatasetId, Ino, Store, StoreOptions, VolatileLog};
use offshoot_os::SystemClock;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;
use support::{Dice, TestStore, make_file};

const BLOCK: u64 = 8192;
/// What a database of this many blocks has changed at random.
const FILE_BLOCKS: u64 = 256 << 10;

/// A committed dataset with a large file.
fn dataset_with_file(test: &TestStore) -> (DatasetId, Arc<Dataset>, Ino) {
    let id = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(id).unwrap();
    let ino = make_file(&dataset, b"file");
    let mut part = vec![7; 1 << 20];
    for number in 0..(FILE_BLOCKS * BLOCK) >> 20 {
        for block in part.chunks_exact_mut(BLOCK as usize) {
            block[..8].copy_from_slice(&number.to_le_bytes());
        }
        dataset.write(ino, number << 20, &part).unwrap();
    }
    dataset.commit().unwrap();
    (id, dataset, ino)
}

/// Overwrites this many MiB of random blocks; half of each does not compress.
fn overwrite(dataset: &Dataset, ino: Ino, mib: u64, dice: &mut Dice) {
    let mut block = vec![9; BLOCK as usize];
    for _ in 0..(mib << 20) / BLOCK {
        block[..BLOCK as usize / 2].copy_from_slice(&dice.bytes(BLOCK as usize / 2));
        dataset.write(ino, dice.roll(FILE_BLOCKS) * BLOCK, &block).unwrap();
    }
}

#[test]
#[ignore = "prints figures, checks nothing"]
fn opening_by_what_was_synced_and_not_committed() {
    for mib in [0, 16, 64, 256, 1024] {
        let test = TestStore::new(StoreOptions::default());
        let (_, dataset, ino) = dataset_with_file(&test);
        let mut dice = Dice::new(3);
        for _ in 0..mib {
            overwrite(&dataset, ino, 1, &mut dice);
            dataset.sync().unwrap();
        }
        drop(dataset);
        let begun = Instant::now();
        // Without `close`: what the log holds is replayed.
        let test = test.reopen(false);
        println!("{mib:>4} MiB synced, then killed: opened in {:.2?}", begun.elapsed());
        drop(test);
    }
}

#[test]
#[ignore = "prints figures, checks nothing"]
fn taking_over_by_what_a_database_had_changed() {
    for mib in [0, 64, 256, 1024] {
        let test = TestStore::new(StoreOptions::default());
        let (id, dataset, ino) = dataset_with_file(&test);
        let log = Arc::new(VolatileLog::create().unwrap());
        dataset.survive(log.clone());
        dataset.commit().unwrap();
        overwrite(&dataset, ino, mib, &mut Dice::new(3));
        drop(dataset);
        let TestStore { disk, options, store, dir } = test;
        drop(store);
        let again = VolatileLog::open(log.as_fd().try_clone_to_owned().unwrap()).unwrap();
        let logs = [(id, Arc::new(again))];
        let begun = Instant::now();
        let store = Store::take_over(disk, &options, Arc::new(SystemClock), &logs).unwrap();
        println!("{mib:>4} MiB written, then taken over: opened in {:.2?}", begun.elapsed());
        drop((store, dir));
    }
}
