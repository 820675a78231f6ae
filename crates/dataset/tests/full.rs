//! A disk that fills up: refused writes, nothing lost, deletion fixes it without a reopening.
#![allow(clippy::unwrap_used)]

mod support;

use offshoot_dataset::{AllocateMode, Dataset, Error, Ino, SetAttr};
use offshoot_os::disk::sim::SimDisk;
use support::{Dice, create, make_file, open, seeds, small_options};

/// A block that does not compress.
fn noise(dice: &mut Dice) -> Vec<u8> {
    (0..8192).map(|_| dice.roll(256) as u8).collect()
}

/// Writes random blocks until there is no room; returns how many.
fn fill(dataset: &Dataset, ino: Ino, seed: u64, sync_every: u64) -> u64 {
    let mut dice = Dice::new(seed);
    for block in 0..100_000 {
        let bytes = noise(&mut dice);
        match dataset.write(ino, block * 8192, &bytes) {
            Ok(()) => {}
            Err(Error::NoSpace) => return block,
            Err(error) => panic!("block {block}: {error}"),
        }
        if block % sync_every == 0 {
            dataset.sync().unwrap();
        }
    }
    panic!("the disk never fills");
}

fn check(dataset: &Dataset, ino: Ino, seed: u64, blocks: u64) {
    let mut dice = Dice::new(seed);
    for block in 0..blocks {
        let bytes = noise(&mut dice);
        assert!(dataset.read(ino, block * 8192, 8192).unwrap() == bytes, "block {block}");
    }
}

#[test]
fn a_full_pool_refuses_loses_nothing_and_recovers_by_deletion() {
    for seed in seeds(3) {
        let disk = SimDisk::new(seed);
        let options = small_options();
        create(&disk, &options).unwrap();
        disk.set_capacity(Some(12 << 20));
        let store = open(&disk, &options).unwrap();
        let ids = [store.create_dataset().unwrap(), store.create_dataset().unwrap()];
        let one = store.dataset(ids[0]).unwrap();
        let two = store.dataset(ids[1]).unwrap();
        let keep = make_file(&two, b"keep");
        for block in 0..20 {
            two.write(keep, block * 8192, &[block as u8 + 1; 8192]).unwrap();
        }
        let big = make_file(&one, b"big");
        let blocks = fill(&one, big, seed, 1 + seed * 7);
        assert!(blocks > 300, "only {blocks} blocks fit");
        // Full for everyone, even after commits; what exists stays.
        one.commit().unwrap();
        two.commit().unwrap();
        for _ in 0..5 {
            assert_eq!(one.write(big, 0, &vec![1; 1 << 20]), Err(Error::NoSpace));
            assert_eq!(two.write(keep, 1 << 20, &vec![2; 1 << 20]), Err(Error::NoSpace));
            let len = 16 << 20;
            let refused = two.allocate(keep, 0, len, AllocateMode::Extend);
            assert_eq!(refused, Err(Error::NoSpace));
        }
        check(&one, big, seed, blocks);
        assert_eq!(two.read(keep, 19 * 8192, 8192).unwrap(), [20; 8192][..]);
        // A power loss does not change that.
        drop((one, two));
        drop(store);
        disk.crash();
        let store = open(&disk, &options).unwrap();
        let one = store.dataset(ids[0]).unwrap();
        let two = store.dataset(ids[1]).unwrap();
        check(&one, big, seed, blocks);
        // Deleting a file, part of a file or a dataset works; then there is room again.
        let snapshot = store.snapshot(ids[0]).unwrap();
        let size = SetAttr { size: Some(blocks / 2 * 8192), ..SetAttr::default() };
        one.setattr(big, &size).unwrap();
        one.unlink(Ino::ROOT, b"big").unwrap();
        one.commit().unwrap();
        store.delete_snapshot(snapshot).unwrap();
        let again = make_file(&two, b"again");
        let more = fill(&two, again, seed + 1000, 64);
        assert!(more > blocks * 6 / 10, "{more} of {blocks} blocks came back");
        check(&two, again, seed + 1000, more);
        store.delete_dataset(ids[1]).unwrap();
        let last = make_file(&one, b"last");
        let more = fill(&one, last, seed + 2000, 64);
        assert!(more > blocks * 6 / 10, "{more} of {blocks} blocks came back");
        check(&one, last, seed + 2000, more);
        store.close().unwrap();
    }
}

/// A commit that fails keeps everything for the next one, with what is changed in between over it.
#[test]
fn a_failed_commit_is_made_good_by_the_next() {
    let disk = SimDisk::new(3);
    let options = small_options();
    create(&disk, &options).unwrap();
    let store = open(&disk, &options).unwrap();
    let id = store.create_dataset().unwrap();
    let dataset = store.dataset(id).unwrap();
    let mut dice = Dice::new(4);
    let mut model = dice.bytes(1 << 20);
    let ino = make_file(&dataset, b"file");
    let gone = make_file(&dataset, b"gone");
    dataset.write(ino, 0, &model).unwrap();
    dataset.write(gone, 0, &model[..30_000]).unwrap();
    disk.set_capacity(Some(disk.used()));
    for round in 0..4u64 {
        assert_eq!(dataset.commit(), Err(Error::NoSpace), "round {round}");
        let at = (round * 150_001) as usize;
        let bytes = dice.bytes(50_000);
        model[at..at + 50_000].copy_from_slice(&bytes);
        // What is already in memory may be changed; the check for room comes first, so it is
        // lifted.
        disk.set_capacity(None);
        dataset.write(ino, at as u64, &bytes).unwrap();
        disk.set_capacity(Some(disk.used()));
        let hole = 700_000 + round as usize * 20_000;
        dataset.allocate(ino, hole as u64, 9000, AllocateMode::PunchHole).unwrap();
        model[hole..hole + 9000].fill(0);
        assert_eq!(dataset.read(ino, 0, 2 << 20).unwrap(), model, "round {round}");
        if round == 2 {
            dataset.unlink(Ino::ROOT, b"gone").unwrap();
        }
    }
    disk.set_capacity(None);
    dataset.commit().unwrap();
    assert_eq!(dataset.read(ino, 0, 2 << 20).unwrap(), model);
    assert_eq!(store.unwritten_bytes(), 0);
    drop(dataset);
    drop(store);
    disk.crash();
    let store = open(&disk, &options).unwrap();
    let dataset = store.dataset(id).unwrap();
    assert_eq!(dataset.read(ino, 0, 2 << 20).unwrap(), model);
    assert_eq!(dataset.lookup(Ino::ROOT, b"gone"), Err(Error::NotFound));
    assert_eq!(dataset.space().unwrap().inodes, 2);
}

/// Nine tenths of what fits are live, without any order in what is rewritten: space is given back as
/// fast as it is asked for, down to what is dead between live blocks.
#[test]
fn a_pool_that_is_nine_tenths_full_can_be_rewritten_for_ever() {
    for seed in seeds(1) {
        let disk = SimDisk::new(seed);
        let mut options = small_options();
        // Larger than the room that is left to move one.
        options.pool.segment_size = 16 << 20;
        create(&disk, &options).unwrap();
        disk.set_capacity(Some(64 << 20));
        let store = open(&disk, &options).unwrap();
        let id = store.create_dataset().unwrap();
        let dataset = store.dataset(id).unwrap();
        let ino = make_file(&dataset, b"file");
        let blocks = fill(&dataset, ino, seed, 64) * 9 / 10;
        let size = SetAttr { size: Some(blocks * 8192), ..SetAttr::default() };
        dataset.setattr(ino, &size).unwrap();
        dataset.commit().unwrap();
        let content = |version: u64| noise(&mut Dice::new(seed << 32 | version));
        let mut versions = vec![0; blocks as usize];
        let mut dice = Dice::new(seed + 1);
        for version in 1..=blocks * 3 {
            let block = dice.roll(blocks);
            dataset.write(ino, block * 8192, &content(version)).unwrap();
            versions[block as usize] = version;
            if version % 32 == 0 {
                dataset.sync().unwrap();
            }
        }
        for (block, version) in versions.iter().enumerate().filter(|(_, version)| **version > 0) {
            let read = dataset.read(ino, block as u64 * 8192, 8192).unwrap();
            assert!(read == content(*version), "block {block}");
        }
        store.close().unwrap();
    }
}
