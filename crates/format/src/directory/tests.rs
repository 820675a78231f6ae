use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_places_of_the_fields_stay() {
    let tree = TreeState { root: BlockHash([1; 32]), next_ino: 2, inodes: 3, blocks: 4 };
    let created = Timestamp { seconds: 5, nanoseconds: 6 };
    let label = b"label".to_vec();
    let dataset =
        DatasetRecord { tree: tree.clone(), applied: 7, origin: 8, lost: false, created, label };
    let value = dataset.encode();
    assert_eq!(
        hex(&value.bytes),
        "0200000000000000030000000000000004000000000000000700000000000000080000000000000\
         00500000000000000060000006c6162656c"
    );
    assert_eq!(DatasetRecord::decode(&value).unwrap(), dataset);
    let lost = DatasetRecord { lost: true, ..dataset };
    assert_eq!(hex(&lost.encode().bytes[32..40]), "0800000000000080");
    assert_eq!(DatasetRecord::decode(&lost.encode()).unwrap(), lost);
    let snapshot = SnapshotRecord { tree, dataset: DatasetId(7), created, label: Vec::new() };
    let value = snapshot.encode();
    assert_eq!(
        hex(&value.bytes),
        "02000000000000000300000000000000040000000000000007000000000000000500000000000000\
         06000000"
    );
    assert_eq!(SnapshotRecord::decode(&value).unwrap(), snapshot);
    assert!(SnapshotRecord::decode(&Value { children: vec![], ..value }).is_err());
    let extra = StoreExtra { next_dataset: 2, next_snapshot: 3 };
    assert_eq!(hex(&extra.encode()), "010002000000000000000300000000000000");
    assert_eq!(StoreExtra::decode(&extra.encode()).unwrap(), extra);
}

#[test]
fn another_version_and_cut_bytes_are_refused() {
    let bytes = StoreExtra { next_dataset: 2, next_snapshot: 3 }.encode();
    assert!(StoreExtra::decode(&[2, 0]).is_err());
    assert!((1..bytes.len()).all(|len| StoreExtra::decode(&bytes[..len]).is_err()));
    let key = snapshot_key(SnapshotId(9));
    assert_eq!(DirectoryKey::decode(&key).unwrap(), DirectoryKey::Snapshot(SnapshotId(9)));
    assert!(DirectoryKey::decode(&[3; 9]).is_err());
    assert!(DirectoryKey::decode(&key[..5]).is_err());
}
