//! What a power loss and failed flushes leave of the log. That a crash at any operation of the disk
//! leaves a prefix of each dataset's history is what `offshoot-sim` shows.
#![allow(clippy::unwrap_used)]

mod support;

use offshoot_dataset::{Dataset, DatasetId, Error, Ino, Store};
use offshoot_os::disk::sim::SimDisk;
use std::sync::Arc;
use support::{Dice, create, open};

/// A dataset with one file, in a store of its own.
struct OneFile {
    disk: Arc<SimDisk>,
    store: Arc<Store>,
    id: DatasetId,
    dataset: Arc<Dataset>,
    ino: Ino,
}

impl OneFile {
    fn new(seed: u64) -> OneFile {
        let disk = SimDisk::new(seed);
        let options = support::small_options();
        create(&disk, &options).unwrap();
        let store = open(&disk, &options).unwrap();
        let id = store.create_dataset().unwrap();
        let dataset = store.dataset(id).unwrap();
        let ino = support::make_file(&dataset, b"file");
        OneFile { disk, store, id, dataset, ino }
    }

    fn write(&self, at: u64, content: &[u8]) {
        self.dataset.write(self.ino, at, content).unwrap();
    }

    /// After a power loss all of the file is as it is now.
    fn survives_a_crash(self, context: &str) {
        let OneFile { disk, store, id, dataset, ino } = self;
        let expected = dataset.read(ino, 0, 1 << 20).unwrap();
        drop(dataset);
        drop(store);
        disk.crash();
        let store = open(&disk, &support::small_options()).unwrap();
        let dataset = store.dataset(id).unwrap();
        assert_eq!(dataset.read(ino, 0, 1 << 20).unwrap(), expected, "{context}");
        store.close().unwrap();
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

/// A flush for which the device has no room loses nothing that was acknowledged, and once there is
/// room all continues without a reopening: by the log and by commits.
#[test]
fn flushes_without_room_lose_nothing_and_all_goes_on_with_room() {
    for seed in 0..10 {
        for prefix in ["segments/", "table/", "root.", "log/"] {
            let file = OneFile::new(seed);
            for round in 1..6 {
                file.write(u64::from(round) * 10_000, &[round; 20_000]);
                file.dataset.sync().unwrap();
                file.disk.refuse_syncs(Some(prefix));
                file.write(u64::from(round) * 10_000 + 15_000, &[round + 100; 5000]);
                // By the other of the two, unless that has something to catch up on.
                if prefix != "log/" {
                    assert_eq!(file.dataset.commit(), Err(Error::NoSpace), "{prefix}");
                }
                file.dataset.sync().unwrap();
                file.disk.refuse_syncs(None);
                if round % 2 == 0 {
                    file.dataset.commit().unwrap();
                }
            }
            file.write(0, &[9; 10_000]);
            file.dataset.sync().unwrap();
            file.survives_a_crash(&format!("{prefix}, seed {seed}"));
        }
    }
}

/// A failed flush never counts as done: with a failed pool the log still serves, with a failed log
/// commits do, and what was acknowledged either way is there afterwards.
#[test]
fn failed_flushes_lose_nothing_that_was_acknowledged() {
    for (prefix, log_fails) in [("segments/", false), ("root.", false), ("log/", true)] {
        let file = OneFile::new(8);
        let sync = || file.dataset.sync().unwrap_or_else(|error| panic!("{prefix}: {error}"));
        file.write(0, &[1; 20_000]);
        sync();
        file.disk.fail_syncs(Some(prefix));
        file.write(10_000, &[2; 20_000]);
        assert_eq!(file.dataset.commit().is_ok(), log_fails, "{prefix}");
        file.write(20_000, &[3; 20_000]);
        sync();
        file.disk.fail_syncs(None);
        file.write(30_000, &[4; 20_000]);
        sync();
        let expected = [[1; 10_000], [2; 10_000], [3; 10_000], [4; 10_000], [4; 10_000]].concat();
        assert_eq!(file.dataset.read(file.ino, 0, 1 << 20).unwrap(), expected);
        file.survives_a_crash(prefix);
    }
}
