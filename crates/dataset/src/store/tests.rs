use super::*;
use crate::StoreOptions;
use crate::{Ino, NewInode, XattrMode};
use offshoot_format::operation::{Operation, encode_batch_header};
use offshoot_intent_log::IntentLog;
use offshoot_os::SystemClock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::io::IoSlice;
use std::sync::atomic::AtomicBool;

pub(super) fn options() -> StoreOptions {
    let mut options = StoreOptions {
        log_file_size: 64 << 10,
        log_files: 3,
        background: false,
        commit_workers: 1,
        ..StoreOptions::default()
    };
    options.pool.background = false;
    options.pool.segment_size = 1 << 20;
    options.pool.reserve = Some(1 << 20);
    options.pool.cache_size = 1 << 20;
    options
}

pub(super) fn open(disk: &Arc<SimDisk>) -> Result<Arc<Store>> {
    let disk: Arc<dyn Disk> = disk.clone();
    Store::open(disk, &options(), Arc::new(SystemClock))
}

pub(super) fn create(seed: u64) -> Arc<SimDisk> {
    let disk = SimDisk::new(seed);
    let dyn_disk: Arc<dyn Disk> = disk.clone();
    Store::create(&dyn_disk, &options()).unwrap();
    disk
}

/// Appends a record to the log of a closed store: creations of files `f<number>`.
fn log_creations(log: &IntentLog, dataset: DatasetId, first: u64, count: u32) {
    let header = encode_batch_header(dataset, first, count);
    let mut body = Vec::new();
    for number in first..first + u64::from(count) {
        let mut operation = Vec::new();
        Operation::Create {
            parent: Ino::ROOT,
            name: format!("f{number}").as_bytes(),
            ino: Ino(1000 + number),
            kind: 1,
            mode: 0o600,
            uid: 0,
            gid: 0,
            rdev: 0,
            target: &[],
            time: Timestamp::default(),
        }
        .encode(&mut operation);
        body.extend_from_slice(&(operation.len() as u32).to_le_bytes());
        body.extend_from_slice(&operation);
    }
    let parts = [IoSlice::new(&header), IoSlice::new(&body)];
    let sequence = log.append(dataset.0, first + u64::from(count) - 1, &parts).unwrap();
    log.sync(sequence).unwrap();
}

pub(super) fn names(store: &Store, id: DatasetId) -> Vec<String> {
    let dataset = store.dataset(id).unwrap();
    let entries = dataset.readdir(Ino::ROOT, 0, 1000).unwrap();
    let mut names: Vec<_> =
        entries.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()).collect();
    names.sort();
    names
}

#[test]
fn replay_stops_at_a_gap_of_one_dataset_and_skips_what_is_applied() {
    let disk = create(1);
    let store = open(&disk).unwrap();
    let ids: Vec<_> = (0..3).map(|_| store.create_dataset().unwrap()).collect();
    for id in &ids {
        let dataset = store.dataset(*id).unwrap();
        for name in [b"f1", b"f2"] {
            dataset.create(Ino::ROOT, name, &NewInode::file(0o600)).unwrap();
        }
    }
    store.close().unwrap();
    drop(store);
    let log = IntentLog::open(&*disk).unwrap();
    // Partly applied already, then what follows.
    log_creations(&log, ids[0], 1, 4);
    log_creations(&log, ids[0], 5, 1);
    // 3 is missing: nothing from 4 on may be applied, not even what looks like the missing one.
    log_creations(&log, ids[1], 4, 2);
    log_creations(&log, ids[1], 3, 1);
    // Nobody's, and another one's behind it.
    log_creations(&log, DatasetId(999), 1, 1);
    log_creations(&log, ids[2], 3, 1);
    drop(log);
    for _ in 0..2 {
        let store = open(&disk).unwrap();
        assert_eq!(names(&store, ids[0]), ["f1", "f2", "f3", "f4", "f5"]);
        assert_eq!(store.lost(), [ids[1]]);
        assert_eq!(names(&store, ids[2]), ["f1", "f2", "f3"]);
        drop(store);
        disk.crash();
    }
    // Numbers continue where the replay ended, even after the gap.
    let store = open(&disk).unwrap();
    store.accept_loss(ids[1]).unwrap();
    assert_eq!(names(&store, ids[1]), ["f1", "f2"]);
    let dataset = store.dataset(ids[1]).unwrap();
    dataset.create(Ino::ROOT, b"new", &NewInode::file(0o600)).unwrap();
    dataset.sync().unwrap();
    drop(dataset);
    drop(store);
    disk.crash();
    assert_eq!(names(&open(&disk).unwrap(), ids[1]), ["f1", "f2", "new"]);
}

#[test]
fn a_damaged_disk_gives_errors_and_never_wrong_data() {
    for seed in 0..40u64 {
        let disk = create(seed);
        let store = open(&disk).unwrap();
        let id = store.create_dataset().unwrap();
        let content = |file: u64, block: u64| [(file * 31 + block * 7 + 1) as u8; 8192];
        let dataset = store.dataset(id).unwrap();
        let mut files = Vec::new();
        for file in 0..30 {
            let name = format!("file-{file}");
            let new = NewInode::file(0o600);
            let ino = dataset.create(Ino::ROOT, name.as_bytes(), &new).unwrap().ino;
            for block in 0..10 {
                dataset.write(ino, block * 8192, &content(file, block)).unwrap();
            }
            files.push(ino);
        }
        store.commit_all().unwrap();
        drop(dataset);
        drop(store);
        let path = format!("segments/{}", disk.list("segments").unwrap()[0]);
        let len = disk.open(&path).unwrap().len().unwrap().min(30_000);
        for hit in 0..4 {
            let offset = (seed * 7919 + hit * 104_729) % len;
            disk.flip_bit(&path, offset, (seed % 8) as u8);
        }
        let Ok(store) = open(&disk) else { continue };
        let Ok(dataset) = store.dataset(id) else { continue };
        let mut damaged = 0;
        for (file, ino) in files.into_iter().enumerate() {
            for block in 0..10 {
                match dataset.read(ino, block * 8192, 8192) {
                    Ok(bytes) => assert!(bytes == content(file as u64, block)[..], "seed {seed}"),
                    Err(error) => {
                        assert_eq!(error.errno(), 5, "seed {seed}: {error}");
                        damaged += 1;
                    }
                }
            }
        }
        assert!(damaged == 0 || !store.faults().is_empty(), "seed {seed}: no fault is kept");
    }
}

#[test]
fn a_creation_cut_short_is_repeated_or_finished_by_the_first_opening() {
    for at in 1..60 {
        let disk = SimDisk::new(at);
        let dyn_disk: Arc<dyn Disk> = disk.clone();
        disk.crash_after(at);
        let created = Store::create(&dyn_disk, &options());
        disk.crash();
        if created.is_err() && open(&disk).is_err() {
            Store::create(&dyn_disk, &options()).unwrap_or_else(|error| panic!("{at}: {error}"));
        }
        let store = open(&disk).unwrap_or_else(|error| panic!("{at}: {error}"));
        let id = store.create_dataset().unwrap();
        let dataset = store.dataset(id).unwrap();
        dataset.create(Ino::ROOT, b"f1", &NewInode::file(0o600)).unwrap();
        dataset.sync().unwrap();
        drop(dataset);
        drop(store);
        disk.crash();
        assert_eq!(names(&open(&disk).unwrap(), id), ["f1"]);
    }
}

#[test]
fn labels_and_origins_are_kept() {
    let disk = create(1);
    let store = open(&disk).unwrap();
    let id = store.create_dataset().unwrap();
    store.set_dataset_label(id, b"mine").unwrap();
    let snapshot = store.snapshot(id).unwrap();
    store.set_snapshot_label(snapshot, b"its").unwrap();
    let clone = store.clone_snapshot(snapshot).unwrap();
    assert!(store.set_dataset_label(id, &[0; 1025]).is_err());
    assert_eq!(store.set_dataset_label(DatasetId(99), b""), Err(Error::NoDataset(DatasetId(99))));
    drop(store);
    disk.crash();
    let store = open(&disk).unwrap();
    let datasets = store.datasets();
    assert_eq!(
        (datasets[0].id, &datasets[0].label[..], datasets[0].origin),
        (id, &b"mine"[..], None)
    );
    assert_eq!((datasets[1].id, datasets[1].origin), (clone, Some(snapshot)));
    let snapshots = store.snapshots();
    assert_eq!((snapshots[0].id, snapshots[0].dataset), (snapshot, id));
    assert_eq!(snapshots[0].label, b"its");
    let of_clone = Holding { datasets: vec![clone], snapshots: Vec::new() };
    let own = store.freed_by_deleting(&of_clone).unwrap();
    assert_eq!(own, 0, "a clone that was not written to has nothing of its own");
    store.delete_dataset(id).unwrap();
    assert!(matches!(store.dataset(id), Err(Error::NoDataset(_))));
    assert_eq!(store.delete_dataset(id), Err(Error::NoDataset(id)));
    store.delete_snapshot(snapshot).unwrap();
    assert!(store.freed_by_deleting(&of_clone).unwrap() > 0);
    store.close().unwrap();
    assert!(matches!(store.dataset(clone), Err(Error::Closed)));
    assert!(matches!(store.create_dataset(), Err(Error::Closed)));
    store.close().unwrap();
}

#[test]
fn the_ledger_answers_while_commits_take_trees_away() {
    let store = open(&create(1)).unwrap();
    let ids: Vec<DatasetId> = (0..3).map(|_| store.create_dataset().unwrap()).collect();
    let all = Holding { datasets: ids.clone(), snapshots: Vec::new() };
    let committing = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..10_000u32 {
                let dataset = store.dataset(ids[round as usize % 3]).unwrap();
                let value = round.to_le_bytes();
                dataset.set_xattr(Ino::ROOT, b"user.round", &value, XattrMode::Set).unwrap();
                dataset.commit().unwrap();
            }
            committing.store(false, Ordering::Release);
        });
        let mut reach = store.stored_bytes();
        while committing.load(Ordering::Acquire) {
            let freed = store.freed_by_deleting(&all).unwrap();
            assert!(freed > 0 && store.directory_bytes().unwrap() > 0);
            assert!(reach.replace(&all).unwrap() > 0);
        }
    });
}
