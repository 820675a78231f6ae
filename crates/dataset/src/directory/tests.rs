use super::*;

fn tree(next_ino: u64) -> TreeState {
    TreeState { root: BlockHash::ZERO, next_ino, inodes: 1, blocks: 0 }
}

fn dataset(applied: u64, next_ino: u64) -> DatasetRecord {
    let (created, label) = (Timestamp { seconds: 0, nanoseconds: 0 }, Vec::new());
    DatasetRecord { tree: tree(next_ino), applied, origin: 0, lost: false, created, label }
}

fn snapshot(next_ino: u64) -> SnapshotRecord {
    let (created, label) = (Timestamp { seconds: 0, nanoseconds: 0 }, Vec::new());
    SnapshotRecord { tree: tree(next_ino), dataset: DatasetId(1), created, label }
}

/// With a dataset that holds 10 operations and a snapshot.
fn check(entry: DirectoryEntry) {
    let extra = StoreExtra { next_dataset: 2, next_snapshot: 2 };
    let state = DirectoryState {
        root: BlockHash::ZERO,
        extra,
        datasets: [(DatasetId(1), dataset(10, 5))].into(),
        snapshots: [(SnapshotId(1), snapshot(5))].into(),
    };
    assert_valid(&state, &extra, &[entry]);
}

#[test]
fn commits_relabels_and_deletions_are_valid() {
    check(DirectoryEntry::Dataset(DatasetId(1), Some(dataset(10, 5))));
    check(DirectoryEntry::Dataset(DatasetId(1), Some(dataset(11, 6))));
    check(DirectoryEntry::Dataset(DatasetId(1), None));
    let label = b"label".to_vec();
    let labelled = SnapshotRecord { label, ..snapshot(5) };
    check(DirectoryEntry::Snapshot(SnapshotId(1), Some(labelled)));
    check(DirectoryEntry::Snapshot(SnapshotId(1), None));
}

#[test]
#[should_panic(expected = "dataset-1 goes back")]
fn a_commit_that_lacks_operations_is_not_written() {
    check(DirectoryEntry::Dataset(DatasetId(1), Some(dataset(9, 5))));
}

#[test]
#[should_panic(expected = "dataset-1 goes back")]
fn nor_is_one_that_would_give_inode_numbers_twice() {
    check(DirectoryEntry::Dataset(DatasetId(1), Some(dataset(10, 4))));
}

#[test]
#[should_panic(expected = "dataset-2 was not given out")]
fn an_id_that_was_not_given_out_is_not_used() {
    check(DirectoryEntry::Dataset(DatasetId(2), Some(dataset(0, 2))));
}

#[test]
#[should_panic(expected = "snapshot-1 changes")]
fn a_snapshot_does_not_change() {
    check(DirectoryEntry::Snapshot(SnapshotId(1), Some(snapshot(6))));
}
