//! What many files cost. Figures: `cargo test --release -p offshoot-dataset --test many_files -- --ignored --nocapture`,
//! with `FILES=N` for another number than a million.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // it measures time

mod support;

use offshoot_dataset::{Ino, NewInode, StoreOptions};
use std::time::Instant;
use support::{Dice, TestStore, make_file};

/// Files of a directory.
const IN_ONE: u64 = 1000;

fn resident_mb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096 / 1_000_000
}

#[test]
#[ignore = "prints figures of a million files, for a release build; smaller ones are checked elsewhere"]
fn a_dataset_with_a_million_files() {
    let count = std::env::var("FILES").map_or(1_000_000, |text| text.parse().unwrap());
    let test = TestStore::new(StoreOptions::default());
    let id = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(id).unwrap();
    let begun = Instant::now();
    for directory in 0..count / IN_ONE {
        let name = format!("directory-{directory}");
        let new = NewInode::directory(0o700);
        let parent = dataset.create(Ino::ROOT, name.as_bytes(), &new).unwrap().ino;
        for file in 0..IN_ONE {
            let name = format!("{file}");
            let made = dataset.create(parent, name.as_bytes(), &NewInode::file(0o600)).unwrap();
            dataset.write(made.ino, 0, name.as_bytes()).unwrap();
        }
    }
    dataset.commit().unwrap();
    println!("{count} files made in {:.1?}; process {} MB", begun.elapsed(), resident_mb());
    drop(dataset);
    let begun = Instant::now();
    let test = test.reopen(true);
    println!("closed and opened in {:.2?}; process {} MB", begun.elapsed(), resident_mb());
    let dataset = test.store.dataset(id).unwrap();
    let mut dice = Dice::new(1);
    let begun = Instant::now();
    for _ in 0..10_000 {
        let directory = format!("directory-{}", dice.roll(count / IN_ONE));
        let parent = dataset.lookup(Ino::ROOT, directory.as_bytes()).unwrap().ino;
        let name = format!("{}", dice.roll(IN_ONE));
        let found = dataset.lookup(parent, name.as_bytes()).unwrap().ino;
        assert_eq!(dataset.read(found, 0, 10).unwrap(), name.as_bytes());
    }
    println!("found and read by path: {:.1?} each", begun.elapsed() / 10_000);
    let begun = Instant::now();
    let snapshot = test.store.snapshot(id).unwrap();
    test.store.clone_snapshot(snapshot).unwrap();
    println!("snapshot and clone: {:.2?}", begun.elapsed());
    let stats = test.store.stats();
    println!("pool {} MB, {} blocks", stats.used / 1_000_000, stats.blocks);
}

#[test]
#[ignore = "prints figures of a tebibyte, for a release build"]
fn a_file_of_a_tebibyte() {
    const BLOCK: u64 = 8192;
    let test = TestStore::new(StoreOptions::default());
    let id = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(id).unwrap();
    let ino = make_file(&dataset, b"file");
    let mut dice = Dice::new(2);
    let blocks: Vec<u64> = (0..100_000).map(|_| dice.roll((1 << 40) / BLOCK)).collect();
    let begun = Instant::now();
    for block in &blocks {
        dataset.write(ino, block * BLOCK, &block.to_le_bytes().repeat(1024)).unwrap();
    }
    dataset.commit().unwrap();
    let took = begun.elapsed();
    println!(
        "100,000 random blocks of a file of 1 TiB: {took:.1?}; pool {} MB",
        test.store.stats().used / 1_000_000
    );
    drop(dataset);
    let test = test.reopen(true);
    let dataset = test.store.dataset(id).unwrap();
    let begun = Instant::now();
    for block in &blocks {
        assert_eq!(dataset.read(ino, block * BLOCK, 8).unwrap(), block.to_le_bytes()[..]);
    }
    println!("each read again: {:.1?}", begun.elapsed() / blocks.len() as u32);
}
