use crate::store::tests::{create, names, open};
use crate::{Dataset, DatasetId, Error, Fault, Ino, NewInode, Store};
use offshoot_format::log::{LOG_HEADER_LEN, SECTOR_LEN, SectorHeader};
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::sync::Arc;

fn create_file(dataset: &Dataset, name: &str) {
    dataset.create(Ino::ROOT, name.as_bytes(), &NewInode::file(0o600)).unwrap();
    dataset.sync().unwrap();
}

/// Two datasets with a file each in a commit and two in the log, by turns; and one that is only in commits.
fn crashed() -> (Arc<SimDisk>, [DatasetId; 3]) {
    let disk = create(1);
    let store = open(&disk).unwrap();
    let ids = [0; 3].map(|_| store.create_dataset().unwrap());
    for id in ids {
        create_file(&store.dataset(id).unwrap(), "committed");
    }
    store.commit_all().unwrap();
    for name in ["first", "second"] {
        for id in &ids[..2] {
            create_file(&store.dataset(*id).unwrap(), name);
        }
    }
    drop(store);
    disk.crash();
    (disk, ids)
}

/// Flips bits in the `nth` record of the log, from the end: in what it says, or in its header too.
fn damage(disk: &SimDisk, nth: usize, bytes: &[u64]) {
    let mut records = Vec::new();
    for name in disk.list("log").unwrap() {
        let path = format!("log/{name}");
        let content = disk.content(&path).unwrap();
        for at in (LOG_HEADER_LEN..content.len() as u64).step_by(SECTOR_LEN) {
            if let Some(header) = SectorHeader::peek(&content[at as usize..]) {
                records.push((header.sequence, path.clone(), at));
            }
        }
    }
    records.sort();
    let (_, path, at) = &records[records.len() - 1 - nth];
    for byte in bytes {
        (0..3).for_each(|bit| disk.flip_bit(path, at + byte, bit));
    }
}

const BODY: &[u64] = &[70];
const ALL: &[u64] = &[20, 70];

fn seen(store: &Store, id: DatasetId) -> Vec<String> {
    assert!(!store.lost().contains(&id));
    names(store, id)
}

#[test]
fn a_dataset_whose_acknowledged_operations_are_lost_is_refused_until_that_is_accepted() {
    // The last record of the second dataset; then its last but one, with one after it.
    for (nth, left) in [(0, &["committed", "first"][..]), (2, &["committed"])] {
        let (disk, [first, second, third]) = crashed();
        damage(&disk, nth, BODY);
        for opening in 0..2 {
            let store = open(&disk).unwrap();
            assert_eq!(seen(&store, first), ["committed", "first", "second"]);
            assert_eq!(seen(&store, third), ["committed"]);
            assert_eq!(store.lost(), [second]);
            // The damage is found once, the loss stays.
            let told = |fault: &Fault| fault.detail.contains("of the intent log are damaged");
            assert_eq!(store.faults().iter().any(told), opening == 0, "{:?}", store.faults());
            assert_eq!(store.dataset(second).err(), Some(Error::Lost(second)));
            assert_eq!(store.snapshot(second), Err(Error::Lost(second)));
            drop(store);
            disk.crash();
        }
        let as_disk: Arc<dyn Disk> = disk.clone();
        let findings = crate::check(as_disk, &mut |_, _| {}).unwrap().findings;
        assert!(findings.iter().any(|one| one.detail.contains("acknowledged writes are lost")));
        let store = open(&disk).unwrap();
        store.accept_loss(second).unwrap();
        store.accept_loss(second).unwrap();
        assert_eq!(seen(&store, second), left);
        assert_eq!(store.faults(), []);
        create_file(&store.dataset(second).unwrap(), "after");
        drop(store);
        disk.crash();
        assert!(seen(&open(&disk).unwrap(), second).contains(&"after".to_owned()));
    }
}

#[test]
fn damage_is_told_to_those_whose_it_may_be() {
    // Nothing says whose the last record was, so every dataset is affected.
    let (disk, ids) = crashed();
    damage(&disk, 0, ALL);
    let store = open(&disk).unwrap();
    assert_eq!(store.lost(), ids);
    assert!(store.faults()[0].detail.contains("of the intent log are damaged"));
    store.delete_dataset(ids[0]).unwrap();
    assert_eq!(store.lost(), ids[1..]);
    drop(store);
    // With later records, those that continue without a gap have lost nothing.
    let (disk, [first, second, third]) = crashed();
    damage(&disk, 2, ALL);
    let store = open(&disk).unwrap();
    assert_eq!(store.lost(), [second, third]);
    assert_eq!(seen(&store, first), ["committed", "first", "second"]);
}

#[test]
fn damage_of_what_is_in_commits_loses_nothing() {
    let (disk, ids) = crashed();
    // The oldest records are those before the commits.
    for nth in 4..7 {
        damage(&disk, nth, BODY);
    }
    let store = open(&disk).unwrap();
    assert_eq!(store.lost(), []);
    assert_eq!(seen(&store, ids[1]), ["committed", "first", "second"]);
    assert!(store.faults()[0].detail.contains("of the intent log are damaged"));
}

#[test]
fn a_crash_while_a_loss_is_noted_changes_nothing() {
    for at in 1..40 {
        let (disk, [first, second, _]) = crashed();
        damage(&disk, 0, BODY);
        disk.crash_after(at);
        drop(open(&disk));
        disk.crash();
        let store = open(&disk).unwrap();
        assert_eq!(store.lost(), [second], "{at}");
        assert_eq!(seen(&store, first), ["committed", "first", "second"]);
    }
}
