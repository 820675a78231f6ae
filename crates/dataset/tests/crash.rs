//! What a loss of power and failed flushes leave of the log. That a crash at any operation of the disk
//! leaves a prefix of each dataset's history is what `offshoot-sim` shows.

mod support;

use offshoot_os::disk::sim::SimDisk;
use support::{Dice, create, open};

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

/// A flush for which the device has no room loses nothing that was acknowledged, and once there is
/// room all goes on without a reopening: by the log and by commits.
#[test]
fn flushes_without_room_lose_nothing_and_all_goes_on_with_room() {
    for seed in 0..10 {
        for prefix in ["segments/", "table/", "root.", "log/"] {
            let disk = SimDisk::new(seed);
            let options = support::small_options();
            create(&disk, &options).unwrap();
            let store = open(&disk, &options).unwrap();
            let id = store.create_dataset().unwrap();
            let dataset = store.dataset(id).unwrap();
            let ino = support::make_file(&dataset, b"file");
            for round in 1..6 {
                dataset.write(ino, u64::from(round) * 10_000, &[round; 20_000]).unwrap();
                dataset.sync().unwrap();
                disk.refuse_syncs(Some(prefix));
                let late = [round + 100; 5000];
                dataset.write(ino, u64::from(round) * 10_000 + 15_000, &late).unwrap();
                // By the other of the two, unless that has something to make up for.
                if prefix == "log/" {
                    dataset.sync().unwrap();
                } else {
                    assert_eq!(dataset.commit(), Err(offshoot_dataset::Error::NoSpace), "{prefix}");
                    dataset.sync().unwrap();
                }
                disk.refuse_syncs(None);
                if round % 2 == 0 {
                    dataset.commit().unwrap();
                }
            }
            dataset.write(ino, 0, &[9; 10_000]).unwrap();
            dataset.sync().unwrap();
            let expected = dataset.read(ino, 0, 1 << 20).unwrap();
            drop(dataset);
            drop(store);
            disk.crash();
            let store = open(&disk, &options).unwrap();
            let dataset = store.dataset(id).unwrap();
            assert_eq!(dataset.read(ino, 0, 1 << 20).unwrap(), expected, "{prefix}, seed {seed}");
            store.close().unwrap();
        }
    }
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
