//! Loss of power at every operation of the disk: what comes back is a prefix of each dataset's
//! history that holds all that was durable, and snapshots, clones and deletions that returned.
//! `OFFSHOOT_SEEDS=n` runs more.

mod support;

use offshoot_dataset::{Ino, NewInode, Store};
use offshoot_os::disk::sim::SimDisk;
use std::sync::Arc;
use support::run::{Run, create, open, take_step};
use support::{Dice, seeds};

/// Opens a store after a crash, crashing now and then while it recovers.
fn recover(disk: &Arc<SimDisk>, run: &Run, dice: &mut Dice, context: &str) -> Arc<Store> {
    for attempt in 0.. {
        disk.crash();
        if attempt < 3 && dice.chance(2) {
            disk.crash_after(1 + dice.roll(25));
            match open(disk, &run.options) {
                // It was done before the power went.
                Ok(store) => drop(store),
                Err(_) => continue,
            }
            disk.crash();
        }
        match open(disk, &run.options) {
            Ok(store) => return store,
            Err(error) => panic!("{context}: cannot open after a crash: {error}"),
        }
    }
    unreachable!()
}

/// Repeats a run with a loss of power at its `at`-th operation of the disk.
fn crash_at(run: &Run, seed: u64, at: u64) {
    let context = format!("seed {seed}, crash at operation {at}");
    let disk = SimDisk::new(seed ^ at << 32);
    create(&disk, &run.options).unwrap();
    let store = open(&disk, &run.options).unwrap();
    disk.crash_after(at);
    let mut crashed = run.steps.len();
    for (index, step) in run.steps.iter().enumerate() {
        let failed = take_step(&store, step).is_err_and(|error| error.errno() == 5);
        if failed {
            crashed = index;
            break;
        }
    }
    drop(store);
    let mut dice = Dice::new(seed ^ at);
    let store = recover(&disk, run, &mut dice, &context);
    run.check_recovered(&store, crashed, &context);
    // It can be used, and what it says then is as durable.
    let mut marked = Vec::new();
    for info in store.datasets() {
        let dataset = store.dataset(info.id).unwrap();
        let new = dataset.create(Ino::ROOT, b"mark", &NewInode::file(0o600)).unwrap();
        dataset.write(new.ino, 3, format!("{}", info.id).as_bytes()).unwrap();
        dataset.sync().unwrap();
        marked.push((info.id, new.ino));
    }
    drop(store);
    let store = recover(&disk, run, &mut dice, &context);
    for (id, ino) in marked {
        let dataset = store.dataset(id).unwrap();
        assert_eq!(dataset.lookup(Ino::ROOT, b"mark").unwrap().ino, ino, "{context}");
        assert_eq!(dataset.read(ino, 3, 100).unwrap(), format!("{id}").as_bytes(), "{context}");
        store.delete_dataset(id).unwrap();
    }
    for info in store.snapshots() {
        store.delete_snapshot(info.id).unwrap();
    }
    while store.pool().reclaim_step().unwrap() {}
    assert_eq!(store.stats().blocks, 0, "{context}: the pool is not empty");
    store.close().unwrap();
}

/// A run without a crash; answers it and how many operations of the disk it took.
fn plan(seed: u64, steps: usize) -> (Run, u64) {
    let disk = SimDisk::new(seed);
    let mut run = Run::new(seed);
    create(&disk, &run.options).unwrap();
    let store = open(&disk, &run.options).unwrap();
    let before = disk.operations();
    run.go(&store, steps);
    (run, disk.operations() - before)
}

#[test]
fn a_crash_leaves_a_prefix() {
    for seed in seeds(8) {
        let (run, operations) = plan(seed, 90);
        println!("seed {seed}: {operations} operations of the disk");
        let mut dice = Dice::new(seed);
        for _ in 0..16 {
            crash_at(&run, seed, 1 + dice.roll(operations + 3));
        }
    }
}

#[test]
fn a_crash_at_every_operation_of_a_short_run_leaves_a_prefix() {
    let (run, operations) = plan(77, 40);
    for at in 1..=operations + 1 {
        crash_at(&run, 77, at);
    }
}

/// Crash tests that cannot fail prove nothing: without the flushes they do.
#[test]
fn a_flush_that_is_left_out_is_noticed() {
    for prefix in ["log/", "segments/", "root."] {
        let noticed = (0..60).any(|seed| {
            std::panic::catch_unwind(|| {
                let (run, operations) = plan(seed, 60);
                let disk = SimDisk::new(seed);
                create(&disk, &run.options).unwrap();
                let store = open(&disk, &run.options).unwrap();
                disk.ignore_syncs(prefix);
                disk.crash_after(operations / 2);
                let failed = |step| take_step(&store, step).is_err_and(|error| error.errno() == 5);
                let crashed = run.steps.iter().position(failed).unwrap_or(run.steps.len());
                drop(store);
                disk.crash();
                let store = open(&disk, &run.options).unwrap();
                run.check_recovered(&store, crashed, "without flushes");
            })
            .is_err()
        });
        assert!(noticed, "nothing noticed that {prefix} is never flushed");
    }
}

/// The log of another dataset is not held back by one that is clean, nor trimmed under one that
/// has logged what no commit holds.
#[test]
fn the_log_is_trimmed_behind_the_slowest_dataset_only() {
    let disk = SimDisk::new(5);
    let options = support::small_options();
    create(&disk, &options).unwrap();
    let store = open(&disk, &options).unwrap();
    let ids: Vec<_> = (0..3).map(|_| store.create_dataset().unwrap()).collect();
    let datasets: Vec<_> = ids.iter().map(|id| store.dataset(*id).unwrap()).collect();
    // The first logs once and is left alone; the second commits all the time; the third is clean.
    let slow = support::make_file(&datasets[0], b"slow");
    datasets[0].write(slow, 0, b"logged once").unwrap();
    datasets[0].sync().unwrap();
    let busy = support::make_file(&datasets[1], b"busy");
    let mut dice = Dice::new(1);
    let mut content = Vec::new();
    // Several times the log's size: it fills, as the first holds it back; commits take over.
    for round in 0..200u64 {
        content = dice.bytes(8192);
        datasets[1].write(busy, 0, &content).unwrap();
        datasets[1].sync().unwrap();
        if round % 20 == 19 {
            datasets[1].commit().unwrap();
        }
    }
    drop(datasets);
    drop(store);
    disk.crash();
    let store = open(&disk, &options).unwrap();
    let read = |id: usize, ino| store.dataset(ids[id]).unwrap().read(ino, 0, 1 << 16).unwrap();
    assert_eq!(read(0, slow), b"logged once"[..]);
    assert_eq!(read(1, busy), content);
    store.close().unwrap();
}

/// A flush that fails is never taken for done: with a failed pool the log still serves, with a
/// failed log commits do, and what was acknowledged either way is there afterwards.
#[test]
fn failed_flushes_lose_nothing_that_was_acknowledged() {
    for (prefix, log_fails) in [("segments/", false), ("root.", false), ("log/", true)] {
        let disk = SimDisk::new(8);
        let options = support::small_options();
        create(&disk, &options).unwrap();
        let store = open(&disk, &options).unwrap();
        let id = store.create_dataset().unwrap();
        let dataset = store.dataset(id).unwrap();
        let ino = support::make_file(&dataset, b"file");
        dataset.write(ino, 0, &[1; 20_000]).unwrap();
        dataset.sync().unwrap();
        disk.fail_syncs(Some(prefix));
        dataset.write(ino, 10_000, &[2; 20_000]).unwrap();
        assert_eq!(dataset.commit().is_ok(), log_fails, "{prefix}");
        dataset.write(ino, 20_000, &[3; 20_000]).unwrap();
        dataset.sync().unwrap_or_else(|error| panic!("{prefix}: {error}"));
        disk.fail_syncs(None);
        dataset.write(ino, 30_000, &[4; 20_000]).unwrap();
        dataset.sync().unwrap_or_else(|error| panic!("{prefix}: {error}"));
        let expected = [[1; 10_000], [2; 10_000], [3; 10_000], [4; 10_000], [4; 10_000]].concat();
        assert_eq!(dataset.read(ino, 0, 1 << 20).unwrap(), expected);
        drop(dataset);
        drop(store);
        disk.crash();
        let store = open(&disk, &options).unwrap();
        let dataset = store.dataset(id).unwrap();
        assert_eq!(dataset.read(ino, 0, 1 << 20).unwrap(), expected, "{prefix}");
        store.close().unwrap();
    }
}
