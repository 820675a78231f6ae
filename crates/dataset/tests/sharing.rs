//! One copy of each block in memory for all clones.
#![allow(clippy::unwrap_used)]

mod support;

use offshoot_dataset::Ino;
use support::{Dice, TestStore, make_file, small_options};

/// Guarantee 9: what one clone of a snapshot has read is read from memory by every other.
#[test]
fn a_second_clone_reads_without_the_disk_what_the_first_has_read() {
    let mut options = small_options();
    options.pool.cache_size = 32 << 20;
    let test = TestStore::new(options);
    let content = Dice::new(7).bytes(4 << 20);
    let original = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(original).unwrap();
    let ino = make_file(&dataset, b"table");
    dataset.write(ino, 0, &content).unwrap();
    let snapshot = test.store.snapshot(original).unwrap();
    let clones = [(); 2].map(|()| test.store.clone_snapshot(snapshot).unwrap());
    test.store.pool().clear_cache();

    let blocks = (content.len() / 8192) as u64;
    let read = |clone| {
        let before = test.store.stats().cache;
        let dataset = test.store.dataset(clone).unwrap();
        let ino = dataset.lookup(Ino::ROOT, b"table").unwrap().ino;
        let mut back = Vec::new();
        for block in 0..blocks {
            back.extend_from_slice(&dataset.read(ino, block * 8192, 8192).unwrap());
        }
        assert!(back == content, "every clone holds the same");
        let after = test.store.stats().cache;
        (after.hits - before.hits, after.misses - before.misses, after.used)
    };
    let (_, missed, used) = read(clones[0]);
    assert!(missed > 0, "the first clone starts cold");
    let (hits, missed, used_then) = read(clones[1]);
    assert_eq!(missed, 0, "the second needs no disk");
    assert!(hits >= blocks, "{hits} hits for {blocks} blocks");
    assert!(used_then <= used + used / 20, "no second copy: {used_then} bytes after {used}");
}

#[test]
fn what_differs_between_clones_is_told_without_reading_it() {
    let test = TestStore::new(small_options());
    let original = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(original).unwrap();
    let ino = make_file(&dataset, b"table");
    let block = |number: u64| number * 8192;
    dataset.write(ino, 0, &Dice::new(7).bytes(block(1000) as usize)).unwrap();
    let opened = |snapshot| {
        let id = test.store.clone_snapshot(snapshot).unwrap();
        test.store.dataset(id).unwrap()
    };
    let before = opened(test.store.snapshot(original).unwrap());
    let differing = |one: &offshoot_dataset::Dataset| {
        let ranges = one.differing_blocks(ino, &before, ino).unwrap();
        ranges.iter().map(|range| (range.start, range.end)).collect::<Vec<_>>()
    };
    let changed = || differing(&opened(test.store.snapshot(original).unwrap()));
    assert_eq!(changed(), []);
    dataset.write(ino, block(17) + 5, b"x").unwrap();
    dataset.write(ino, block(300), &Dice::new(8).bytes(block(2) as usize)).unwrap();
    assert_eq!(differing(&dataset), [(0, 1000)], "nothing is known of what is not committed");
    assert_eq!(changed(), [(17, 18), (300, 302)]);
    // A block that has its old content again does not differ; a longer one does.
    let old = before.read(ino, block(300), 8192).unwrap();
    dataset.write(ino, block(300), &old).unwrap();
    dataset.write(ino, block(1000), b"short").unwrap();
    assert_eq!(changed(), [(17, 18), (301, 302), (1000, 1001)]);
    let cut = offshoot_dataset::SetAttr { size: Some(block(301)), ..Default::default() };
    dataset.setattr(ino, &cut).unwrap();
    assert_eq!(changed(), [(17, 18)], "there is nothing behind the end");
}
