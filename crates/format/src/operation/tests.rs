use super::*;

fn all() -> Vec<Operation<'static>> {
    let time = Timestamp { seconds: -5, nanoseconds: 999_999_999 };
    let ino = Ino(7);
    let none = Operation::SetAttr {
        ino,
        size: None,
        mode: None,
        uid: None,
        gid: None,
        atime: None,
        mtime: None,
        time,
    };
    let some = Operation::SetAttr {
        ino,
        size: Some(1 << 40),
        mode: Some(0o644),
        uid: Some(1),
        gid: Some(2),
        atime: Some(time),
        mtime: Some(time),
        time,
    };
    vec![
        Operation::Write { ino, offset: 3, time, data: b"" },
        Operation::Clear { ino, offset: 1, len: 2, size: 3, time },
        none,
        some,
        Operation::Create {
            parent: Ino::ROOT,
            name: b"a",
            ino,
            kind: 3,
            mode: 0o7777,
            uid: 1,
            gid: 2,
            rdev: 3,
            target: b"there",
            time,
        },
        Operation::Link { ino, parent: Ino::ROOT, name: b"b", time },
        Operation::Unlink { parent: Ino::ROOT, name: b"b", time },
        Operation::Rename {
            parent: Ino::ROOT,
            name: b"b",
            new_parent: ino,
            new_name: b"c",
            exchange: true,
            time,
        },
        Operation::Xattr { ino, name: b"user.x", value: Some(b"1"), time },
        Operation::Xattr { ino, name: b"user.x", value: None, time },
    ]
}

#[test]
fn every_operation_comes_back() {
    for operation in all() {
        let mut bytes = Vec::new();
        operation.encode(&mut bytes);
        assert_eq!(Operation::decode(&bytes).unwrap(), operation);
        for len in 0..bytes.len() {
            assert!(Operation::decode(&bytes[..len]).is_err(), "{operation:?} cut at {len}");
        }
    }
}

#[test]
fn data_follows_a_write() {
    let time = Timestamp::default();
    let mut bytes = Vec::new();
    Operation::Write { ino: Ino(9), offset: 8, time, data: b"" }.encode(&mut bytes);
    bytes.extend_from_slice(b"payload");
    let expected = Operation::Write { ino: Ino(9), offset: 8, time, data: b"payload" };
    assert_eq!(Operation::decode(&bytes).unwrap(), expected);
}

#[test]
fn batches_come_back_and_refuse_damage() {
    let mut bytes = encode_batch_header(DatasetId(3), 11, 2).to_vec();
    for operation in [&b"one"[..], b"three"] {
        bytes.extend_from_slice(&(operation.len() as u32).to_le_bytes());
        bytes.extend_from_slice(operation);
    }
    let batch = Batch::decode(&bytes).unwrap();
    assert_eq!((batch.dataset, batch.first), (DatasetId(3), 11));
    assert_eq!(batch.operations, [&b"one"[..], b"three"]);
    assert!(Batch::decode(&bytes[..bytes.len() - 1]).is_err());
    bytes.push(0);
    assert!(Batch::decode(&bytes).is_err());
}
