//! Structures on disk, without I/O.

use crate::target::{Target, sealed};
use offshoot_format::Reader;
use offshoot_format::directory::{
    DatasetRecord, DirectoryKey, SnapshotRecord, StoreExtra, TreeState, dataset_key, snapshot_key,
};
use offshoot_format::encryption::{self, Encryption};
use offshoot_format::inode::{self, InodeRecord, Timestamp};
use offshoot_format::label::Label;
use offshoot_format::log::version1::RecordHeader;
use offshoot_format::log::{FileHeaderState, LogFileHeader, SECTOR_LEN, Sector, SectorHeader};
use offshoot_format::operation::{Batch, Operation, encode_batch_header};
use offshoot_format::root::{self, LogExtent, RootSlot};
use offshoot_format::seal::{DataKey, Purpose, Seals};
use offshoot_format::segment::{
    BlockKind, Codec, Frame, Layout, SealedFrame, decode_segment_header, encode_segment_header,
};
use offshoot_format::table::{self, Record, TableEntry};
use offshoot_format::tree::{
    BranchEntry, LeafEntry, MAP_FAN_OUT, MapView, NodeView, Value, children, encode_branch,
    encode_leaf, encode_map,
};
use offshoot_types::{BlockHash, DatasetId, Ino, SnapshotId, Txg};

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "label", run: label, seeds: label_seeds },
    Target { name: "root", run: root, seeds: root_seeds },
    Target { name: "sealed", run: sealed_structures, seeds: sealed_seeds },
    Target { name: "segment", run: segment, seeds: segment_seeds },
    Target { name: "table", run: table, seeds: table_seeds },
    Target { name: "node", run: node, seeds: node_seeds },
    Target { name: "operation", run: operation, seeds: operation_seeds },
    Target { name: "log-record", run: log_record, seeds: log_record_seeds },
];

fn label(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), sealed(bytes, 0..36, 36)] {
        if let Ok(label) = Label::decode(&bytes) {
            assert!(label.refusal().is_some() || Label::decode(&label.encode()) == Ok(label));
        }
    }
}

fn label_seeds() -> Vec<Vec<u8>> {
    vec![Label::new([7; 16]).encode()]
}

/// The input is a slot, of which zeros at the end may be left out.
fn root(bytes: &[u8]) {
    let _ = RootSlot::decode(bytes);
    let mut bytes = bytes.to_vec();
    bytes.resize(root::LEN, 0);
    if let Ok(slot) = RootSlot::decode(&sealed(&bytes, 12..root::LEN, 8)) {
        let _ = StoreExtra::decode(&slot.extra);
        if let Ok(again) = slot.encode() {
            assert_eq!(RootSlot::decode(&again), Ok(slot));
        }
    }
}

fn root_slot() -> RootSlot {
    let extra = StoreExtra { next_dataset: 3, next_snapshot: 9 }.encode();
    let logs = vec![LogExtent { number: 4, len: 4096 }, LogExtent { number: 5, len: 20 }];
    let (hash, checkpoint) = (BlockHash([5; 32]), 3);
    RootSlot { txg: Txg(8), hash, checkpoint, logs, zero_saved: 1, dedup_saved: 2, extra }
}

fn root_seeds() -> Vec<Vec<u8>> {
    let slot = root_slot().encode().expect("it fits");
    let end = slot.iter().rposition(|byte| *byte != 0).expect("it is not empty");
    vec![slot[..=end].to_vec()]
}

/// What seals and opens for targets: the key is always the same.
fn seals() -> Seals {
    Seals::new(Some(&DataKey::of([7; 32]))).expect("there is a source of randomness")
}

/// What an encrypted pool has on its device: damaged, it does not open; it never panics.
fn sealed_structures(bytes: &[u8]) {
    let seals = seals();
    for bytes in [bytes.to_vec(), sealed(bytes, 0..encryption::LEN - 4, encryption::LEN - 4)] {
        if let Ok(file) = Encryption::decode(&bytes) {
            assert_eq!(Encryption::decode(&file.encode()), Ok(file));
        }
    }
    let mut slot = bytes.to_vec();
    slot.resize(root::LEN, 0);
    for slot in [slot.clone(), sealed(&slot, 12..root::LEN, 8)] {
        if let Ok(plain) = root::open(&seals, &slot) {
            let _ = RootSlot::decode(&plain);
        }
    }
    for bytes in [bytes.to_vec(), sealed(bytes, 4..48, 0)] {
        if let Ok(frame) = SealedFrame::decode(&bytes) {
            let stored = bytes.get(48..).unwrap_or_default();
            let _ = frame.open(&seals, stored);
        }
    }
    let _ = seals.open(Purpose::Table, b"", bytes);
}

fn sealed_seeds() -> Vec<Vec<u8>> {
    let seals = seals();
    let mut content = vec![9; 60];
    let (hash, kind, codec) = (BlockHash([3; 32]), BlockKind::Data, Codec::Raw);
    let frame = Frame { hash, kind, codec, stored_len: 60, raw_len: 60 };
    let header = frame.seal(&seals, &mut content).expect("it can be sealed");
    let slot =
        root::seal(&seals, root_slot().encode().expect("it fits")).expect("it can be sealed");
    let file = Encryption { key_id: *b"0123456789abcdef", wrapped: [1; encryption::WRAPPED_LEN] };
    let message = seals.seal(Purpose::Table, b"", b"records").expect("it can be sealed");
    vec![
        [&header[..], &content].concat(),
        slot[..512].to_vec(),
        file.encode().to_vec(),
        message.into_owned(),
    ]
}

fn segment(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), sealed(bytes, 0..28, 28)] {
        if let Ok((pool_id, number, layout)) = decode_segment_header(&bytes) {
            let again = encode_segment_header(&pool_id, number, layout);
            assert_eq!(decode_segment_header(&again), Ok((pool_id, number, layout)));
        }
    }
    for bytes in [bytes.to_vec(), sealed(bytes, 4..48, 0)] {
        if let Ok(frame) = Frame::decode(&bytes) {
            assert!(frame.codec.layout().room(frame.stored_len) > frame.stored_len);
            assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
        }
    }
}

fn segment_seeds() -> Vec<Vec<u8>> {
    let (hash, kind, codec) = (BlockHash([3; 32]), BlockKind::Node, Codec::Zstd);
    let frame = Frame { hash, kind, codec, stored_len: 900, raw_len: 8192 };
    let header = |layout| encode_segment_header(&[7; 16], 2, layout)[..32].to_vec();
    vec![header(Layout::Frames), header(Layout::Pages), frame.encode().to_vec()]
}

fn table(bytes: &[u8]) {
    if let Ok((_, _, checksum)) = table::decode_chunk_header(bytes) {
        let (header, payload) = bytes.split_at(table::CHUNK_HEADER_LEN);
        let _ = table::check_chunk(header, payload, checksum);
    }
    let mut reader = Reader::new("table", bytes.get(table::CHUNK_HEADER_LEN..).unwrap_or_default());
    while !reader.is_empty() {
        let Ok(record) = Record::decode(&mut reader) else { return };
        let mut again = Vec::new();
        record.encode(&mut again);
        assert_eq!(Record::decode(&mut Reader::new("again", &again)), Ok(record));
    }
}

fn table_seeds() -> Vec<Vec<u8>> {
    let (kind, codec) = (BlockKind::Node, Codec::Lz4);
    let entry =
        TableEntry { segment: 1, offset: 4096, stored_len: 90, raw_len: 99, kind, codec, refs: 2 };
    let mut payload = Vec::new();
    Record::Put(BlockHash([1; 32]), entry).encode(&mut payload);
    Record::Gone(BlockHash([2; 32])).encode(&mut payload);
    let mut chunk = table::encode_chunk_header(7, &payload).to_vec();
    chunk.extend_from_slice(&payload);
    vec![chunk]
}

/// Nodes, and the keys and values of both kinds of tree.
fn node(bytes: &[u8]) {
    let _ = children(bytes);
    if let Ok(map) = MapView::new(bytes) {
        let all = map.to_array();
        all.iter().enumerate().for_each(|(index, child)| assert_eq!(map.get(index), *child));
        let again = encode_map(map.level(), &all);
        assert_eq!(MapView::new(&again).expect("it was a map").to_array(), all);
    }
    let Ok(view) = NodeView::new(bytes) else { return };
    for key in [&b""[..], b"\x01\x00\x00\x00\x00\x00\x00\x00\x01", &[0xff; 40]] {
        let _ = view.lower_bound(key);
        if let Ok(index) = view.child_index(key) {
            assert!(index < view.count().max(1));
        }
    }
    for index in 0..view.count() {
        let _ = view.key(index);
        let _ = view.child(index);
        if let Ok(entry) = view.leaf_entry(index) {
            leaf_entry(&entry.to_owned());
        }
    }
}

fn leaf_entry(entry: &LeafEntry) {
    let key = &entry.key;
    let _ = inode::parse_inode_key(key);
    let _ = inode::parse_orphan_key(key);
    let _ = inode::parse_xattr_key(key);
    let _ = DirectoryKey::decode(key);
    if let Some((directory, hash, name)) = inode::parse_name_key(key) {
        assert_eq!(inode::name_key(directory, hash, name), *key);
        inode::name_hash(name);
    }
    let value = &entry.value;
    let _ = inode::decode_name(&value.bytes);
    if let Ok(record) = InodeRecord::decode(value) {
        assert_eq!(InodeRecord::decode(&record.encode()), Ok(record));
    }
    if let Ok(record) = DatasetRecord::decode(value) {
        assert_eq!(DatasetRecord::decode(&record.encode()), Ok(record));
    }
    if let Ok(record) = SnapshotRecord::decode(value) {
        assert_eq!(SnapshotRecord::decode(&record.encode()), Ok(record));
    }
}

const TIME: Timestamp = Timestamp { seconds: 1_700_000_000, nanoseconds: 5 };

fn node_seeds() -> Vec<Vec<u8>> {
    let tree = TreeState { root: BlockHash([2; 32]), next_ino: 9, inodes: 4, blocks: 5 };
    let dataset = DatasetRecord {
        tree: tree.clone(),
        applied: 7,
        origin: 0,
        lost: false,
        created: TIME,
        label: b"x".to_vec(),
    };
    let snapshot = SnapshotRecord { tree, dataset: DatasetId(1), created: TIME, label: Vec::new() };
    let record = InodeRecord {
        kind: 1,
        mode: 0o600,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 8192,
        blocks: 1,
        atime: TIME,
        mtime: TIME,
        ctime: TIME,
        parent: 0,
        height: 1,
        root: BlockHash([4; 32]),
        target: Vec::new(),
    };
    let name = |name: &[u8]| inode::name_key(Ino(1), inode::name_hash(name), name);
    let attribute = Value { children: Vec::new(), bytes: b"\0value".to_vec() };
    let files = [
        (inode::inode_key(Ino(2)), record.encode()),
        (name(b"base"), inode::encode_name(Ino(2), 1)),
        (inode::xattr_key(Ino(2), b"user.a"), attribute),
        (inode::orphan_key(Ino(2)), Value::default()),
    ];
    let directory = [
        (dataset_key(DatasetId(1)), dataset.encode()),
        (snapshot_key(SnapshotId(1)), snapshot.encode()),
    ];
    let leaf = |entries: &[(Vec<u8>, Value)]| {
        let entry =
            |(key, value): &(Vec<u8>, Value)| LeafEntry { key: key.clone(), value: value.clone() };
        encode_leaf(&entries.iter().map(entry).collect::<Vec<_>>())
    };
    let child = BlockHash([6; 32]);
    let branch = [BranchEntry { key: vec![1], child }, BranchEntry { key: vec![3, 0], child }];
    let mut map = [BlockHash::ZERO; MAP_FAN_OUT];
    (map[0], map[127]) = (child, child);
    vec![leaf(&files), leaf(&directory), encode_branch(1, &branch), encode_map(0, &map)]
}

fn operation(bytes: &[u8]) {
    if let Ok(operation) = Operation::decode(bytes) {
        assert_eq!(Operation::decode(&encoded(&operation)), Ok(operation));
    }
}

/// An operation's bytes, a write's data included.
pub(crate) fn encoded(operation: &Operation<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    operation.encode(&mut bytes);
    if let Operation::Write { data, .. } = operation {
        bytes.extend_from_slice(data);
    }
    bytes
}

pub(crate) fn operations() -> Vec<Operation<'static>> {
    let (ino, parent, time) = (Ino(2), Ino(1), TIME);
    vec![
        Operation::Create {
            parent,
            name: b"a",
            ino,
            kind: 1,
            mode: 0o600,
            uid: 0,
            gid: 0,
            rdev: 0,
            target: b"",
            time,
        },
        Operation::Write { ino, offset: 8000, time, data: b"some data" },
        Operation::Clear { ino, offset: 0, len: 4096, size: 8009, time },
        Operation::SetAttr {
            ino,
            size: Some(5),
            mode: Some(0o644),
            uid: None,
            gid: None,
            atime: Some(time),
            mtime: None,
            time,
        },
        Operation::Xattr { ino, name: b"user.a", value: Some(b"1"), time },
        Operation::Link { ino, parent, name: b"b", time },
        Operation::Rename {
            parent,
            name: b"b",
            new_parent: parent,
            new_name: b"c",
            exchange: false,
            time,
        },
        Operation::Unlink { parent, name: b"c", time },
    ]
}

fn operation_seeds() -> Vec<Vec<u8>> {
    operations().iter().map(encoded).collect()
}

/// A log record's payload: the operations as one batch.
pub(crate) fn batch(first: u64, operations: &[Operation<'_>]) -> Vec<u8> {
    let mut bytes = encode_batch_header(DatasetId(1), first, operations.len() as u32).to_vec();
    for operation in operations {
        let encoded = encoded(operation);
        bytes.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&encoded);
    }
    bytes
}

/// A file's header, a record, or what is in one.
fn log_record(bytes: &[u8]) {
    if let Ok(batch) = Batch::decode(bytes) {
        batch.operations.iter().for_each(|bytes| operation(bytes));
    }
    let _ = LogFileHeader::decode(bytes);
    let _ = RecordHeader::decode(bytes);
    let mut sector = bytes.to_vec();
    sector.resize(SECTOR_LEN, 0);
    let mut header = sector.clone();
    header[12..16].fill(0);
    if let FileHeaderState::Begun(header) =
        LogFileHeader::decode(&sealed(&header, 0..SECTOR_LEN, 12))
    {
        assert_eq!(LogFileHeader::decode(&header.encode()), FileHeaderState::Begun(header));
    }
    // In the first version the checksum covers header and payload in one.
    if let Ok((_, payload)) = RecordHeader::decode(&sealed(bytes, 8..bytes.len().max(8), 4)) {
        assert!(RecordHeader::stored_len(payload.len()) > payload.len());
    }
    let was = sector.clone();
    if let Sector::Whole { header, mended } = Sector::read(&mut sector) {
        assert_eq!(SectorHeader::peek(&sector), Some(header));
        let flipped: u32 = sector.iter().zip(&was).map(|(now, was)| (now ^ was).count_ones()).sum();
        assert_eq!(mended, flipped > 0, "{flipped} bits were turned");
        assert!(flipped <= 2);
    }
}

fn log_record_seeds() -> Vec<Vec<u8>> {
    let payload = batch(1, &operations());
    let header = SectorHeader {
        length: payload.len() as u32,
        index: 0,
        sequence: 1,
        generation: 1,
        unsynced: 0,
        stream: 1,
        position: 6,
    };
    let mut record = Vec::new();
    header.encode_record([&payload[..]].into_iter(), &mut record);
    record.truncate(SECTOR_LEN);
    let mut flipped = record.clone();
    flipped[99] ^= 4;
    let mut old = b"OSLR".to_vec();
    for field in [0, payload.len() as u32, 0, 1, 0, 1, 0] {
        old.extend_from_slice(&field.to_le_bytes());
    }
    old.extend_from_slice(&payload);
    let file = LogFileHeader { generation: 1, first_sequence: 1, trimmed: 1 };
    vec![payload, record, flipped, old, file.encode()[..40].to_vec()]
}
