//! A whole store of which some bytes were changed, and the volatile log.

use crate::format::{batch, encoded, operations};
use crate::target::{Target, sealed};
use offshoot_dataset::{DatasetId, Ino, NewInode, ScrubState, Store, StoreOptions, check};
use offshoot_format::log::{LOG_HEADER_LEN, SECTOR_LEN, SectorHeader};
use offshoot_format::operation::Operation;
use offshoot_format::segment::{FRAME_LEN, Frame, HEADER_LEN, Layout};
use offshoot_format::{root, table};
use offshoot_intent_log::VolatileLog;
use offshoot_os::SystemClock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, LazyLock};

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "store", run: store, seeds: store_seeds },
    Target { name: "volatile-log", run: volatile_log, seeds: volatile_log_seeds },
];

const DIRS: [&str; 4] = ["", "segments", "table", "log"];
/// Entries that are checked in a damaged store.
const ENTRIES_MAX: usize = 64;

fn options() -> StoreOptions {
    let mut options = StoreOptions {
        log_file_size: 64 << 10,
        log_files: 3,
        commit_workers: 1,
        background: false,
        ..StoreOptions::default()
    };
    options.pool.cache_size = 1 << 20;
    options.pool.segment_size = 1 << 20;
    options.pool.reserve = Some(0);
    options.pool.background = false;
    // They hold for what we wrote, not for what somebody put into the files.
    options.pool.check_invariants = false;
    options
}

fn open(disk: &Arc<SimDisk>) -> Result<Arc<Store>, offshoot_dataset::Error> {
    let disk: Arc<dyn Disk> = disk.clone();
    Store::open(disk, &options(), Arc::new(SystemClock))
}

/// The files of a small store that was killed: committed, logged and snapshotted state.
static IMAGE: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let disk = SimDisk::new(1);
    let as_disk: Arc<dyn Disk> = disk.clone();
    Store::create(&as_disk, &options()).expect("a store can be made");
    let store = open(&disk).expect("it opens");
    fill(&store).expect("it can be filled");
    let files = |dir: &&str| {
        let names = disk.list(dir).expect("it is there").into_iter();
        let path = |name| if dir.is_empty() { name } else { format!("{dir}/{name}") };
        let content = |path: String| disk.content(&path).map(|content| (path, content));
        names.map(path).filter_map(content).collect::<Vec<_>>()
    };
    let files: Vec<_> = DIRS.iter().flat_map(files).filter(|(path, _)| path != "lock").collect();
    // Its blocks, its table, both its roots, its log.
    assert!(files.len() >= 8, "{:?}", files.iter().map(|(path, _)| path).collect::<Vec<_>>());
    files
});

fn fill(store: &Arc<Store>) -> Result<(), offshoot_dataset::Error> {
    let dataset = store.dataset(store.create_dataset()?)?;
    let file = dataset.create(Ino(1), b"base", &NewInode::file(0o600))?.ino;
    dataset.create(Ino(1), b"directory", &NewInode::directory(0o700))?;
    for block in 0..20_u8 {
        dataset.write(file, u64::from(block) * 8192, &[block + 1; 8192])?;
    }
    store.snapshot(dataset.id())?;
    dataset.write(file, 5, b"behind the snapshot")?;
    dataset.commit()?;
    dataset.create(Ino(1), b"logged", &NewInode::file(0o600))?;
    dataset.write(file, 70_000, b"only logged")?;
    dataset.sync()
}

/// The first byte: whether checksums are put right. Then changes: which file, where (3 bytes), how
/// many bytes, and these.
fn store(bytes: &[u8]) {
    let Some((flags, mut rest)) = bytes.split_first() else { return };
    let mut files = IMAGE.clone();
    while let [file, a, b, c, len, tail @ ..] = rest {
        let (data, after) = tail.split_at(usize::from(*len).min(tail.len()));
        let count = files.len();
        let content = &mut files[usize::from(*file) % count].1;
        let at = u32::from_le_bytes([*a, *b, *c, 0]) as usize % content.len().max(1);
        let end = (at + data.len()).min(content.len());
        content[at..end].copy_from_slice(&data[..end - at]);
        rest = after;
    }
    if flags & 1 != 0 {
        files.iter_mut().for_each(|(path, content)| *content = put_right(path, content));
    }
    let disk = SimDisk::new(1);
    write(&disk, &files).expect("nothing fails on this disk");
    let as_disk: Arc<dyn Disk> = disk.clone();
    let _ = check(as_disk, &mut |_, _| ());
    if let Ok(store) = open(&disk) {
        let _ = look_around(&store);
        let _ = store.close();
    }
}

fn write(disk: &SimDisk, files: &[(String, Vec<u8>)]) -> std::io::Result<()> {
    DIRS[1..].iter().try_for_each(|dir| disk.create_dir(dir))?;
    for (path, content) in files {
        disk.create(path)?.write_at(0, content)?;
    }
    disk.settle();
    Ok(())
}

fn look_around(store: &Arc<Store>) -> Result<(), offshoot_dataset::Error> {
    let tell = &mut |_: &ScrubState| ControlFlow::Continue(());
    store.pool().scrub(ScrubState::default(), u64::MAX, tell)?;
    let _ = store.pool().check();
    store.create_dataset()?;
    store.lost().into_iter().try_for_each(|id| store.accept_loss(id))?;
    let ids: Vec<DatasetId> = store.datasets().iter().map(|info| info.id).collect();
    for id in ids.into_iter().take(ENTRIES_MAX) {
        let dataset = store.dataset(id)?;
        for entry in dataset.readdir(Ino(1), 0, ENTRIES_MAX)? {
            let _ = dataset.read(entry.ino, 0, 200 << 10);
            let _ = dataset.list_xattrs(entry.ino);
            let _ = dataset.write(entry.ino, 100, b"anew");
        }
        store.snapshot(id)?;
        store.delete_dataset(id)?;
    }
    let snapshots = store.snapshots();
    snapshots.iter().try_for_each(|info| store.delete_snapshot(info.id))?;
    store.pool().reclaim_step()?;
    Ok(())
}

/// The checksums of a file of the pool.
fn put_right(path: &str, content: &[u8]) -> Vec<u8> {
    let mut content = content.to_vec();
    match path.split_once('/').map_or(path, |(dir, _)| dir) {
        "label" => return sealed(&content, 0..36, 36),
        "root.0" | "root.1" => return sealed(&content, 12..root::LEN, 8),
        "table" => chunks_put_right(&mut content),
        "segments" => {
            content = sealed(&content, 0..28, 28);
            let mut at = HEADER_LEN as usize;
            while let Some(head) = content.get(at..at + FRAME_LEN as usize) {
                let head = sealed(head, 4..FRAME_LEN as usize, 0);
                let Ok(frame) = Frame::decode(&head) else { break };
                content[at..at + head.len()].copy_from_slice(&head);
                at += Layout::Frames.room(frame.stored_len) as usize;
            }
        }
        _ => log_put_right(&mut content),
    }
    content
}

fn chunks_put_right(content: &mut [u8]) {
    let mut at = 0;
    while let Some(rest) = content.get_mut(at..)
        && let Ok((_, len, _)) = table::decode_chunk_header(rest)
        && let Some(chunk) = rest.get_mut(..table::CHUNK_HEADER_LEN + len)
    {
        let (header, payload) = chunk.split_at_mut(table::CHUNK_HEADER_LEN);
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&header[..16]), payload);
        header[16..].copy_from_slice(&checksum.to_le_bytes());
        at += chunk.len();
    }
}

fn log_put_right(content: &mut [u8]) {
    if content.len() < LOG_HEADER_LEN as usize {
        return;
    }
    let header = &mut content[..SECTOR_LEN];
    if header[0] != 0 {
        header[12..16].fill(0);
        header.copy_from_slice(&sealed(header, 0..SECTOR_LEN, 12));
        content.copy_within(..SECTOR_LEN, SECTOR_LEN);
    }
    let Some(records) = content.get_mut(LOG_HEADER_LEN as usize..) else { return };
    let written = |sector: &&mut [u8]| sector.iter().any(|byte| *byte != 0);
    for sector in records.chunks_exact_mut(SECTOR_LEN).filter(written) {
        let body = crc32c::crc32c(&sector[48..]);
        sector[4..8].copy_from_slice(&body.to_le_bytes());
        let header = crc32c::crc32c_append(crc32c::crc32c(b"OSL2"), &sector[8..48]);
        sector[..4].copy_from_slice(&header.to_le_bytes());
    }
}

fn store_seeds() -> Vec<Vec<u8>> {
    let of = |wanted: &str| {
        let found = IMAGE.iter().position(|(path, _)| path.starts_with(wanted));
        found.expect("the store has such a file") as u8
    };
    let change = |file: u8, at: usize, bytes: &[u8]| {
        let place = (at as u32).to_le_bytes();
        [&[1, file][..], &place[..3], &[bytes.len() as u8], bytes].concat()
    };
    // A log that holds other operations: it is the one whose first record is there.
    let logged = IMAGE.iter().position(|(path, content)| {
        let record = content.get(LOG_HEADER_LEN as usize..).unwrap_or_default();
        path.starts_with("log/") && SectorHeader::peek(record).is_some()
    });
    let logged = logged.expect("something is logged");
    let next = u64::from_le_bytes(IMAGE[logged].1[4152..4160].try_into().expect("8 bytes"));
    let in_log = |operations: &[Operation<'_>]| {
        let payload = batch(next, operations);
        let len = (payload.len() as u32).to_le_bytes();
        let head = change(logged as u8, 4104, &len);
        [head, change(logged as u8, 4144, &payload)[1..].to_vec()].concat()
    };
    let operations = operations();
    vec![
        vec![0],
        change(of("label"), 8, &[1]),
        change(of("root.0"), 12, &[200]),
        change(of("root.1"), 70, &[1]),
        change(of("table/"), 20, &[1]),
        change(of("segments/"), 4096 + 8, &[9]),
        change(logged as u8, 24, &[2]),
        in_log(&operations[..2]),
        in_log(&operations[2..4]),
        in_log(&operations[4..6]),
    ]
}

/// Where the ring of a volatile log's memory begins.
const RING_AT: u64 = 1 << 20;
const INPUT_MAX: usize = 4096;

/// The input: the counters of the head (56 bytes), a slot and an open file (48 bytes), then records.
fn volatile_log(bytes: &[u8]) {
    static LOG: LazyLock<(VolatileLog, std::fs::File)> = LazyLock::new(|| {
        let log = VolatileLog::create().expect("memory can be had");
        let file = log.as_fd().try_clone_to_owned().expect("a descriptor can be had").into();
        (log, file)
    });
    let mut input = bytes[..bytes.len().min(INPUT_MAX)].to_vec();
    input.resize(INPUT_MAX, 0);
    records_put_right(&mut input[104..]);
    let file = &LOG.1;
    // The head names where the records begin: they are put where it says, as far as it is there.
    let tail = u64::from_le_bytes(input[24..32].try_into().expect("8 bytes"));
    let ring_at = RING_AT + tail % (128 << 20);
    let parts = [(16, &input[16..56]), (4096, &input[56..88]), (64 << 10, &input[88..104])];
    for (at, part) in parts.into_iter().chain([(ring_at, &input[104..])]) {
        file.write_all_at(part, at).expect("memory can be written");
    }
    let fd = LOG.0.as_fd().try_clone_to_owned().expect("a descriptor can be had");
    if let Ok(log) = VolatileLog::open(fd) {
        let mut last = 0;
        let kept = log.replay::<offshoot_intent_log::Error>(|number, operation| {
            let _ = Operation::decode(operation);
            last = number;
            Ok(())
        });
        let _ = (log.used(), log.last_number(), log.finished(), log.open_files());
        if kept.is_ok() {
            log.settle(last);
            log.opened(7, true);
            log.append(last.wrapping_add(1), [&b"more"[..]].into_iter(), None);
            log.trim(last);
            log.closed(7);
        }
    }
    file.write_all_at(&[0; INPUT_MAX], ring_at).expect("memory can be written");
}

fn records_put_right(ring: &mut [u8]) {
    let mut at = 0;
    while let Some(record) = ring.get_mut(at..)
        && let Some(len) = record.first_chunk().map(|len| u32::from_le_bytes(*len) as usize)
        && let Some(covered) = record.get(8..16_usize.saturating_add(len))
        && len > 0
    {
        let checksum = crc32c::crc32c(covered);
        record[4..8].copy_from_slice(&checksum.to_le_bytes());
        at += (16 + len).next_multiple_of(16);
    }
}

fn volatile_log_seeds() -> Vec<Vec<u8>> {
    let mut ring = Vec::new();
    for (number, operation) in (1_u64..).zip(operations()) {
        let encoded = encoded(&operation);
        ring.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
        ring.extend_from_slice(&[0; 4]);
        ring.extend_from_slice(&number.to_le_bytes());
        ring.extend_from_slice(&encoded);
        ring.resize(ring.len().next_multiple_of(16), 0);
    }
    let head = [ring.len() as u64, 0, 8, 0, 1];
    let (slot, open) = ([5, 2, 9, 0], [2_u64, 1]);
    let words = [&[0, 0][..], &head, &slot, &open].concat();
    vec![[words.iter().flat_map(|word| word.to_le_bytes()).collect(), ring].concat()]
}
