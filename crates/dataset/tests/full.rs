//! A disk that fills up: refused writes, nothing lost, deletion mends it without a reopening.

mod support;

use offshoot_dataset::{AllocateMode, Dataset, Error, Ino, SetAttr};
use offshoot_os::disk::sim::SimDisk;
use support::run::{create, open};
use support::{Dice, make_file, seeds, small_options};

/// Writes random blocks until there is no room; answers how many.
fn fill(dataset: &Dataset, ino: Ino, seed: u64, sync_every: u64) -> u64 {
    let mut dice = Dice::new(seed);
    for block in 0..100_000 {
        let bytes: Vec<u8> = (0..8192).map(|_| dice.roll(256) as u8).collect();
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
        let bytes: Vec<u8> = (0..8192).map(|_| dice.roll(256) as u8).collect();
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
        // Full for everyone, also after commits; what is there is there.
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
        // A loss of power changes nothing of that.
        drop((one, two));
        drop(store);
        disk.crash();
        let store = open(&disk, &options).unwrap();
        let one = store.dataset(ids[0]).unwrap();
        let two = store.dataset(ids[1]).unwrap();
        check(&one, big, seed, blocks);
        // Deleting works, be it a file, part of a file, or a dataset; then there is room again.
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
