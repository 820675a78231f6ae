//! How long the hot paths take. Not a check: run with `--ignored --nocapture`, best in release.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod support;

use offshoot_dataset::{StoreOptions, VolatileLog};
use std::sync::Arc;
use std::time::Instant;
use support::{Dice, TestStore, make_file};

fn report(what: &str, count: u64, start: Instant) {
    let elapsed = start.elapsed();
    println!("{what}: {:.2} µs", elapsed.as_secs_f64() * 1e6 / count as f64);
}

#[test]
#[ignore = "prints figures, checks nothing"]
#[expect(clippy::too_many_lines, reason = "one course of events")]
fn hot_paths() {
    // QUIET=1: without commits meanwhile.
    let background = std::env::var("QUIET").is_err();
    let mut options = StoreOptions { background, ..StoreOptions::default() };
    options.pool.cache_size = 512 << 20;
    let test = TestStore::new(options);
    let id = test.store.create_dataset().unwrap();
    let dataset = test.store.dataset(id).unwrap();
    // SURVIVE=1: with every operation in a volatile log.
    if std::env::var("SURVIVE").is_ok() {
        dataset.survive(Arc::new(VolatileLog::create().unwrap()));
    }
    let ino = make_file(&dataset, b"file");
    let mut dice = Dice::new(1);
    let (blocks, count) = (20_000u64, 200_000);
    let content = dice.bytes(1 << 20);
    let start = Instant::now();
    for part in 0..blocks / 128 {
        let mut content = content.clone();
        content[..8].copy_from_slice(&part.to_le_bytes());
        dataset.write(ino, part << 20, &content).unwrap();
    }
    report("write of 1 MiB, new", blocks / 128, start);
    let start = Instant::now();
    dataset.commit().unwrap();
    report("commit", 1, start);
    let mut buffer = vec![0; 8192];
    for what in ["random read of 8 KiB, first", "random read of 8 KiB, again"] {
        let start = Instant::now();
        for _ in 0..count {
            let block = dice.roll(blocks);
            dataset.read_into(ino, block * 8192, &mut buffer).unwrap();
        }
        report(what, count, start);
    }
    let start = Instant::now();
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let dataset = &dataset;
            scope.spawn(move || {
                let (mut dice, mut buffer) = (Dice::new(seed), vec![0; 8192]);
                for _ in 0..count {
                    dataset.read_into(ino, dice.roll(blocks) * 8192, &mut buffer).unwrap();
                }
            });
        }
    });
    report("the same by two threads, of both", 2 * count, start);
    let start = Instant::now();
    for block in 0..blocks {
        dataset.read_into(ino, block * 8192, &mut buffer).unwrap();
    }
    report("sequential read of 8 KiB", blocks, start);
    let start = Instant::now();
    for _ in 0..20_000 {
        let block = dice.roll(blocks);
        buffer[..8].copy_from_slice(&dice.roll(1 << 40).to_le_bytes());
        dataset.write(ino, block * 8192, &buffer).unwrap();
    }
    report("random write of 8 KiB", 20_000, start);
    let start = Instant::now();
    dataset.commit().unwrap();
    report("commit of 20,000 random blocks", 1, start);
    for what in ["write of 8 KiB and sync", "the same during a commit"] {
        let start = Instant::now();
        for round in 0..300 {
            dataset.write(ino, (round % 16) * 8192, &buffer).unwrap();
            dataset.sync().unwrap();
        }
        report(what, 300, start);
    }
    let start = Instant::now();
    let snapshot = test.store.snapshot(id).unwrap();
    report("snapshot", 1, start);
    let start = Instant::now();
    let clone = test.store.clone_snapshot(snapshot).unwrap();
    report("clone", 1, start);
    let clone = test.store.dataset(clone).unwrap();
    let start = Instant::now();
    for _ in 0..20_000 {
        clone.read_into(ino, dice.roll(blocks) * 8192, &mut buffer).unwrap();
    }
    report("random read of 8 KiB of a clone", 20_000, start);
    test.store.close().unwrap();
}
