use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn record() -> InodeRecord {
    InodeRecord {
        kind: 1,
        mode: 0o644,
        nlink: 2,
        uid: 3,
        gid: 4,
        rdev: 5,
        size: 6,
        blocks: 7,
        atime: Timestamp { seconds: -1, nanoseconds: 8 },
        mtime: Timestamp { seconds: 9, nanoseconds: 10 },
        ctime: Timestamp { seconds: 11, nanoseconds: 12 },
        parent: 13,
        height: 2,
        root: BlockHash([0xab; 32]),
        target: b"target".to_vec(),
    }
}

#[test]
fn the_places_of_the_fields_stay() {
    let value = record().encode();
    assert_eq!(value.children, [BlockHash([0xab; 32])]);
    assert_eq!(
        hex(&value.bytes),
        "0102a40100000200000003000000040000000500000006000000000000000700000000000000\
         0d00000000000000ffffffffffffffff0800000009000000000000000a0000000b000000000000000c000000\
         746172676574"
    );
    assert_eq!(hex(&name_key(Ino(2), 3, b"a")), "020000000000000002000000000000000361");
    assert_eq!(hex(&xattr_key(Ino(2), b"a")), "03000000000000000261");
    assert_eq!(name_hash(b""), NAME_HASHES[0]);
    assert_eq!(name_hash(b"pg_wal"), NAME_HASHES[1]);
    assert_eq!(name_hash(b"a name of more than 16 bytes"), NAME_HASHES[2]);
}

/// Frozen: directories on disk are sorted by these.
const NAME_HASHES: [u64; 3] = [0x52c9_b651_4e0f_64a9, 0x0519_8608_6975_6e24, 0x4265_4977_e6a1_a55d];

#[test]
fn records_come_back_and_refuse_damage() {
    let value = record().encode();
    assert_eq!(InodeRecord::decode(&value).unwrap(), record());
    for len in 0..82 {
        let cut = Value { bytes: value.bytes[..len].to_vec(), ..value.clone() };
        assert!(InodeRecord::decode(&cut).is_err());
    }
    let mut bytes = value.bytes.clone();
    bytes[0] = 8;
    assert!(InodeRecord::decode(&Value { bytes, ..value }).is_err());
}

#[test]
fn keys_come_back() {
    assert_eq!(parse_inode_key(&inode_key(Ino(7))), Some(Ino(7)));
    assert_eq!(parse_name_key(&name_key(Ino(7), 9, b"x")), Some((Ino(7), 9, &b"x"[..])));
    assert_eq!(parse_xattr_key(&xattr_key(Ino(7), b"x")), Some((Ino(7), &b"x"[..])));
    assert_eq!(parse_orphan_key(&orphan_key(Ino(7))), Some(Ino(7)));
    assert_eq!(parse_orphan_key(&inode_key(Ino(7))), None);
    assert_eq!(decode_name(&encode_name(Ino(7), 2).bytes).unwrap(), (Ino(7), 2));
    assert!(names_from(Ino(7), 9) < name_key(Ino(7), 9, b"x"));
}
