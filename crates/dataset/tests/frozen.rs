//! Stores as earlier versions left them: each must open with everything in it.
//!
//! Each directory of `fixtures` is a store of one format, its files compressed one by one, as it was left by a
//! process that was killed: a part of it is in the intent log alone. A version that writes another format adds
//! one, with
//!
//! ```text
//! OFFSHOOT_FREEZE=crates/dataset/tests/fixtures/flags-N cargo test -p offshoot-dataset --test frozen -- --ignored
//! ```
//! and no version changes one that is there.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use offshoot_dataset::{
    CheckReport, Dataset, DatasetId, Ino, NewInode, SnapshotId, Store, StoreOptions, XattrMode,
};
use offshoot_format::label::{BASE_FEATURES, Label};
use offshoot_os::SystemClock;
use offshoot_os::disk::{Disk, LinuxDisk};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BLOCK: usize = 8192;

fn options() -> StoreOptions {
    let mut options =
        StoreOptions { log_file_size: 64 << 10, background: false, ..StoreOptions::default() };
    options.commit_workers = 1;
    options.pool.background = false;
    options.pool.segment_size = 256 << 10;
    options.pool.reserve = Some(1 << 20);
    options.pool.checkpoint_log_min = 1 << 10;
    options
}

fn open(directory: &Path) -> offshoot_dataset::Result<Arc<Store>> {
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(directory).unwrap());
    Store::open(disk, &options(), Arc::new(SystemClock))
}

/// Bytes that do not compress, or half of which do.
fn content(salt: u64, blocks: usize, compressible: bool) -> Vec<u8> {
    let mut state = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(blocks * BLOCK);
    while bytes.len() < blocks * BLOCK {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
        if compressible {
            bytes.extend_from_slice(&[salt as u8; 56]);
        }
    }
    bytes.truncate(blocks * BLOCK);
    bytes
}

fn file(dataset: &Dataset, parent: Ino, name: &[u8], content: &[u8]) -> Ino {
    let ino = dataset.create(parent, name, &NewInode::file(0o640)).unwrap().ino;
    dataset.write(ino, 0, content).unwrap();
    ino
}

/// Makes what the fixtures hold; ends as if killed.
fn make(directory: &Path) {
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(directory).unwrap());
    Store::create(&disk, &options()).unwrap();
    let store = open(directory).unwrap();
    let first = store.create_dataset().unwrap();
    store.set_dataset_label(first, b"the first").unwrap();
    let dataset = store.dataset(first).unwrap();
    let base = dataset.create(Ino::ROOT, b"base", &NewInode::directory(0o700)).unwrap().ino;
    file(&dataset, base, b"table", &content(1, 24, true));
    let noise = file(&dataset, base, b"noise", &content(2, 12, false));
    file(&dataset, Ino::ROOT, b"same", &content(1, 24, true));
    let sparse = file(&dataset, Ino::ROOT, b"sparse", b"begin");
    dataset.write(sparse, 100 << 20, b"end").unwrap();
    dataset.create(Ino::ROOT, b"link", &NewInode::symlink(b"base/table")).unwrap();
    dataset.link(noise, Ino::ROOT, b"hard").unwrap();
    dataset.set_xattr(noise, b"user.kind", b"random", XattrMode::Set).unwrap();
    file(&dataset, base, b"gone", &content(3, 6, true));
    let snapshot = store.snapshot(first).unwrap();
    store.set_snapshot_label(snapshot, b"before").unwrap();

    let table = dataset.lookup(base, b"table").unwrap().ino;
    dataset.write(table, 5 * BLOCK as u64, &content(4, 2, false)).unwrap();
    dataset.unlink(base, b"gone").unwrap();
    store.commit_all().unwrap();
    while store.pool().reclaim_step().unwrap() {}
    assert!(store.stats().checkpoints > 0, "the table is in both of its forms");
    let clone = store.dataset(store.clone_snapshot(snapshot).unwrap()).unwrap();
    file(&clone, Ino::ROOT, b"of the clone", &content(5, 3, true));
    store.commit_all().unwrap();
    let late = file(&dataset, Ino::ROOT, b"late", b"written");
    dataset.write(late, 7, b" and synced, never committed").unwrap();
    dataset.sync().unwrap();
    drop(dataset);
    drop(clone);
    drop(store);
}

/// Compares a store with what [`make`] made.
fn assert_holds_all(store: &Arc<Store>) {
    let datasets = store.datasets();
    let [first, clone] = &datasets[..] else { panic!("two datasets: {datasets:?}") };
    assert_eq!((first.id, first.label.as_slice()), (DatasetId(1), b"the first".as_slice()));
    assert_eq!((clone.id, clone.origin), (DatasetId(2), Some(SnapshotId(1))));
    let snapshots = store.snapshots();
    assert_eq!(snapshots[0].label, b"before");
    assert_eq!((snapshots.len(), snapshots[0].dataset), (1, DatasetId(1)));

    let dataset = store.dataset(first.id).unwrap();
    let mut table = content(1, 24, true);
    table[5 * BLOCK..7 * BLOCK].copy_from_slice(&content(4, 2, false));
    assert_files(&dataset, &table, None);
    let late = dataset.lookup(Ino::ROOT, b"late").unwrap().ino;
    let text = b"written and synced, never committed";
    assert_eq!(&dataset.read(late, 0, 100).unwrap()[..], text);
    assert!(dataset.lookup(Ino::ROOT, b"of the clone").is_err());

    let clone = store.dataset(clone.id).unwrap();
    assert_files(&clone, &content(1, 24, true), Some(&content(3, 6, true)));
    let own = clone.lookup(Ino::ROOT, b"of the clone").unwrap().ino;
    assert!(clone.read(own, 0, 4 * BLOCK).unwrap()[..] == content(5, 3, true)[..]);
}

fn assert_files(dataset: &Dataset, table: &[u8], gone: Option<&[u8]>) {
    let base = dataset.lookup(Ino::ROOT, b"base").unwrap();
    assert_eq!(base.mode & 0o7777, 0o700);
    let read = |parent: Ino, name: &[u8]| {
        let attr = dataset.lookup(parent, name).unwrap();
        dataset.read(attr.ino, 0, attr.size as usize + 1).unwrap()
    };
    assert!(read(base.ino, b"table")[..] == *table, "the table's content");
    assert!(read(base.ino, b"noise")[..] == content(2, 12, false)[..], "what does not compress");
    assert!(read(Ino::ROOT, b"same")[..] == content(1, 24, true)[..], "what is stored once");
    match gone {
        Some(gone) => assert!(read(base.ino, b"gone")[..] == *gone),
        None => assert!(dataset.lookup(base.ino, b"gone").is_err()),
    }
    let sparse = dataset.lookup(Ino::ROOT, b"sparse").unwrap();
    assert_eq!(sparse.size, (100 << 20) + 3);
    assert_eq!(&dataset.read(sparse.ino, 0, 8).unwrap()[..], b"begin\0\0\0");
    assert_eq!(&dataset.read(sparse.ino, (100 << 20) - 2, 9).unwrap()[..], b"\0\0end");
    let link = dataset.lookup(Ino::ROOT, b"link").unwrap().ino;
    assert_eq!(dataset.readlink(link).unwrap(), b"base/table");
    let hard = dataset.lookup(Ino::ROOT, b"hard").unwrap();
    assert_eq!((hard.ino, hard.nlink), (dataset.lookup(base.ino, b"noise").unwrap().ino, 2));
    assert_eq!(dataset.get_xattr(hard.ino, b"user.kind").unwrap(), b"random");
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Hands each file below `directory` with its path from there.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut open = vec![directory.to_owned()];
    let mut found = Vec::new();
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { &mut open } else { &mut found }.push(path);
        }
    }
    found
}

/// A fixture's files in a directory of their own.
fn thaw(name: &str) -> tempfile::TempDir {
    let (from, to) = (fixture(name), tempfile::tempdir().unwrap());
    for path in files(&from) {
        let inside = path.strip_prefix(&from).unwrap().with_extension("");
        let target = to.path().join(inside);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        let bytes = zstd::decode_all(&std::fs::read(&path).unwrap()[..]).unwrap();
        std::fs::write(target, bytes).unwrap();
    }
    to
}

fn checked(directory: &Path) -> CheckReport {
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(directory).unwrap());
    offshoot_dataset::check(disk, &mut |_, _| {}).unwrap()
}

fn label_of(directory: &Path) -> Label {
    Label::decode(&std::fs::read(directory.join("label")).unwrap()).unwrap()
}

fn assert_opens(name: &str, flags_then: u64) {
    let directory = thaw(name);
    let path = directory.path();
    assert_eq!(label_of(path).features, flags_then);
    assert_eq!(checked(path).findings, [], "{name}: before anything of it is changed");
    {
        let store = open(path).unwrap();
        assert_holds_all(&store);
        let state = store
            .pool()
            .scrub(Default::default(), u64::MAX, &mut |_| std::ops::ControlFlow::Continue(()));
        assert_eq!((state.unwrap().damaged, store.faults()), (0, Vec::new()));
        // And it continues: what is written now is there after another opening.
        let dataset = store.dataset(DatasetId(1)).unwrap();
        file(&dataset, Ino::ROOT, b"new", &content(6, 4, false));
        drop(dataset);
        store.close().unwrap();
    }
    assert_eq!(
        label_of(path).features,
        BASE_FEATURES,
        "older engines must not open what this one has written"
    );
    assert_eq!(checked(path).findings, [], "{name}: after this version wrote to it");
    let store = open(path).unwrap();
    assert_holds_all(&store);
    let dataset = store.dataset(DatasetId(1)).unwrap();
    let new = dataset.lookup(Ino::ROOT, b"new").unwrap().ino;
    assert!(dataset.read(new, 0, 5 * BLOCK).unwrap()[..] == content(6, 4, false)[..]);
}

#[test]
fn a_store_of_before_there_were_flags_opens() {
    assert_opens("flags-0", 0);
}

#[test]
fn a_store_of_before_there_were_segments_of_pages_opens() {
    assert_opens("flags-1", 1);
}

#[test]
fn a_store_with_segments_of_pages_opens() {
    assert_opens("flags-3", 3);
}

#[test]
fn a_store_with_an_unknown_flag_is_refused_and_left_as_it_is() {
    let directory = thaw("flags-3");
    let path = directory.path().join("label");
    let label = label_of(directory.path());
    std::fs::write(&path, Label { features: label.features | 0x40, ..label }.encode()).unwrap();
    let before: Vec<_> = files(directory.path())
        .into_iter()
        .map(|path| (std::fs::read(&path).unwrap(), path))
        .collect();
    let error = open(directory.path()).map(drop).expect_err("an unknown flag is refused");
    assert!(error.to_string().contains("unknown feature flags 0x40"), "{error}");
    for (content, path) in before {
        assert!(std::fs::read(&path).unwrap() == content, "{} was changed", path.display());
    }
}

#[test]
fn what_is_frozen_is_what_this_version_makes() {
    let directory = tempfile::tempdir().unwrap();
    make(directory.path());
    assert_holds_all(&open(directory.path()).unwrap());
}

#[test]
#[ignore = "writes the fixture of a new format"]
fn freeze() {
    let Some(target) = std::env::var_os("OFFSHOOT_FREEZE") else { return };
    let directory = tempfile::tempdir().unwrap();
    make(directory.path());
    for path in files(directory.path()) {
        let inside = path.strip_prefix(directory.path()).unwrap();
        let target = Path::new(&target).join(format!("{}.zst", inside.display()));
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(target, zstd::encode_all(&bytes[..], 19).unwrap()).unwrap();
    }
}
