use super::*;
use crate::blocks::{PoolReader, PoolWriter};
use crate::directory::DirectoryEntry;
use crate::tests::{create, open};
use crate::{Ino, NewInode};
use offshoot_format::inode::{InodeRecord, encode_name, inode_key, name_hash, name_key};

/// A store in a directory, with files, links, attributes, a snapshot and a clone.
fn new_store() -> (tempfile::TempDir, Arc<dyn Disk>) {
    let (dir, disk) = create();
    let store = open(&disk);
    let id = store.create_dataset().unwrap();
    let dataset = store.dataset(id).unwrap();
    let below = dataset.create(Ino::ROOT, b"below", &NewInode::directory(0o755)).unwrap().ino;
    let file = dataset.create(below, b"file", &NewInode::file(0o644)).unwrap().ino;
    for block in 0..300u64 {
        let content: Vec<u8> = (0..8192u64).map(|at| (at * block + at / 7) as u8 | 1).collect();
        dataset.write(file, block * 8192, &content).unwrap();
    }
    dataset.link(file, Ino::ROOT, b"again").unwrap();
    let snapshot = store.snapshot(id).unwrap();
    store.clone_snapshot(snapshot).unwrap();
    dataset.unlink(Ino::ROOT, b"again").unwrap();
    dataset.write(file, 10, b"changed").unwrap();
    store.close().unwrap();
    (dir, disk)
}

fn findings(disk: &Arc<dyn Disk>) -> Vec<Finding> {
    check(disk.clone(), &mut |_, _| {}).unwrap().findings
}

fn flip(disk: &Arc<dyn Disk>, path: &str, offset: u64) {
    let file = disk.open(path).unwrap();
    let mut byte = [0];
    file.read_at(offset, &mut byte).unwrap();
    file.write_at(offset, &[byte[0] ^ 8]).unwrap();
}

#[test]
fn a_sound_store_is_sound_and_one_in_use_is_refused() {
    let (_dir, disk) = new_store();
    let report = check(disk.clone(), &mut |_, _| {}).unwrap();
    assert_eq!((report.datasets, report.snapshots), (2, 1));
    assert!(report.findings.is_empty() && report.blocks > 200, "{report:?}");
    let store = open(&disk);
    assert!(matches!(check(disk.clone(), &mut |_, _| {}), Err(crate::Error::InUse(_))));
    drop(store);
    assert_eq!(findings(&disk), []);
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let (_dir, disk) = new_store();
    let segment = format!("segments/{}", disk.list("segments").unwrap()[0]);
    let len = disk.open(&segment).unwrap().len().unwrap();
    // After the header, enough bytes to hit more than the room between two blocks.
    for (offset, count) in [(3, 1), (len / 2, 64), (len / 4 * 3, 64)] {
        let flip_all = || (offset..offset + count).for_each(|at| flip(&disk, &segment, at));
        flip_all();
        let report = check(disk.clone(), &mut |_, _| {}).unwrap();
        let found = &report.findings;
        assert!(found.iter().any(|one| one.object == "segment 1"), "byte {offset}: {found:?}");
        // The segment's header is not a block; any other damage belongs to some file.
        let files = report.damage.iter().flat_map(|(_, holders)| &holders.named);
        assert_eq!(files.filter(|one| one.file.is_some()).count() > 0, offset > 3, "{report:?}");
        flip_all();
    }
    assert_eq!(findings(&disk), []);
}

#[test]
fn the_block_table_is_made_anew_from_the_segments_alone() {
    let (_dir, disk) = new_store();
    for name in disk.list("table").unwrap() {
        disk.remove(&format!("table/{name}")).unwrap();
    }
    let found = findings(&disk);
    assert!(found.len() == 1 && found[0].object == "block table", "{found:?}");
    // The opening fixes it; nothing is missing, and all counts are those of a walk.
    open(&disk).close().unwrap();
    assert_eq!(findings(&disk), []);
}

#[test]
fn a_lost_segment_is_found_with_what_it_takes_along() {
    let (_dir, disk) = new_store();
    disk.remove(&format!("segments/{}", disk.list("segments").unwrap()[0])).unwrap();
    let found = findings(&disk);
    assert!(found.iter().any(|one| one.object == "segment 1"), "{found:?}");
    assert!(found.iter().any(|one| one.object == "directory"), "{found:?}");
}

/// Trees that are whole as blocks but do not agree as files.
#[test]
fn names_links_and_counts_that_disagree_are_found() {
    let (_dir, disk) = new_store();
    let store = open(&disk);
    let (id, pool) = (store.datasets()[0].id, store.pool().clone());
    let transaction = pool.begin();
    let writer = PoolWriter {
        reader: PoolReader { pool: pool.clone(), owner: 0 },
        transaction: &transaction,
    };
    let mut record = store.directory_record(id);
    let (file, hash) = (Ino(3), name_hash(b"ghost"));
    let value = tree::get(&writer, record.tree.root, &inode_key(file)).unwrap().unwrap();
    let mut inode = InodeRecord::decode(&value).unwrap();
    (inode.nlink, inode.blocks, inode.size) = (7, 1, 5);
    let changes = vec![
        (inode_key(file), Some(inode.encode())),
        (name_key(Ino::ROOT, hash, b"ghost"), Some(encode_name(Ino(99), 1))),
        (name_key(Ino::ROOT, hash ^ 64, b"lost"), Some(encode_name(file, 1))),
    ];
    let mut changes = changes;
    changes.sort_by(|left, right| left.0.cmp(&right.0));
    record.tree.root = tree::merge(&writer, record.tree.root, changes).unwrap();
    store.commit_record(transaction, DirectoryEntry::Dataset(id, Some(record)));
    drop(store);
    let found = findings(&disk);
    let text = format!("{found:#?}");
    assert!(found.iter().all(|one| one.object.contains(&id.to_string())), "{text}");
    for expected in [
        "7 links, 2 names",
        "inode 99 is named but missing",
        "'lost' is not found where it lies",
        "300 blocks, 1 counted",
        "inode 1: 3 names in it, 1 counted",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
