//! Many threads, background commits and reclaim, on a real disk.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // has deadlines of its own

mod support;

use offshoot_dataset::{Dataset, Error, Ino, NewInode, RenameMode, Store, StoreOptions};
use offshoot_os::SystemClock;
use offshoot_os::disk::{Disk, DiskFile, DiskLock, DiskSpace, LinuxDisk};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use support::{Dice, TestStore, make_file, small_options};

fn busy_options() -> StoreOptions {
    let mut options = small_options();
    options.background = true;
    options.commit_workers = 2;
    options.commit_interval = Duration::from_millis(20);
    options.log_file_size = 1 << 20;
    options.dirty_limit = 1 << 20;
    options.dirty_bound = 4 << 20;
    options.pool.background = true;
    options.pool.cache_size = 1 << 20;
    options
}

/// Content that says which file, block and version it belongs to.
fn stamp(file: u64, block: u64, version: u64) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    for (index, chunk) in bytes.chunks_exact_mut(32).enumerate() {
        chunk[..8].copy_from_slice(&file.to_le_bytes());
        chunk[8..16].copy_from_slice(&block.to_le_bytes());
        chunk[16..24].copy_from_slice(&version.to_le_bytes());
        chunk[24..].copy_from_slice(&(index as u64 * version).to_le_bytes());
    }
    bytes
}

/// Blocks of a file.
const BLOCKS: u64 = 40;
/// The first of those that are also written in two parts.
const PARTED: u64 = 30;

/// What a block with this version holds; version 0: never written.
fn content(file: u64, block: u64, version: u64) -> Vec<u8> {
    if version == 0 { vec![0; 8192] } else { stamp(file, block, version) }
}

/// Overwrites blocks of its own file and reads them back; returns the versions synced last.
fn work(dataset: &Dataset, file: u64, until: Instant) -> (Ino, Vec<u64>) {
    let mut dice = Dice::new(file + 1);
    let ino = make_file(dataset, format!("file-{file}").as_bytes());
    let mut versions = vec![0; BLOCKS as usize];
    let mut version = 0;
    while Instant::now() < until {
        for _ in 0..20 {
            let block = dice.roll(BLOCKS);
            version += 1;
            let bytes = stamp(file, block, version);
            if block >= PARTED && dice.chance(2) {
                // In two parts, so that blocks are changed in part while commits freeze them. The first and the
                // last 32 bytes are of one version: they tell which.
                let middle = 32 + dice.roll(8192 - 64 + 1) as usize;
                dataset.write(ino, block * 8192, &bytes[..middle]).unwrap();
                dataset.write(ino, block * 8192 + middle as u64, &bytes[middle..]).unwrap();
            } else {
                dataset.write(ino, block * 8192, &bytes).unwrap();
            }
            versions[block as usize] = version;
            let block = dice.roll(BLOCKS);
            check(dataset, ino, file, block, versions[block as usize]);
        }
        let name = format!("name-{file}-{}", dice.roll(5));
        match dice.roll(4) {
            0 => drop(dataset.create(Ino::ROOT, name.as_bytes(), &NewInode::file(0o600))),
            1 => drop(dataset.unlink(Ino::ROOT, name.as_bytes())),
            2 => {
                let new = format!("name-{file}-new");
                let mode = RenameMode::Replace;
                drop(dataset.rename(Ino::ROOT, name.as_bytes(), Ino::ROOT, new.as_bytes(), mode));
            }
            _ => drop(dataset.readdir(Ino::ROOT, 0, 1000).unwrap()),
        }
        if dice.chance(3) {
            dataset.sync().unwrap();
        }
    }
    dataset.sync().unwrap();
    (ino, versions)
}

fn check(dataset: &Dataset, ino: Ino, file: u64, block: u64, version: u64) {
    let mut bytes = vec![1; 8192];
    let read = dataset.read_into(ino, block * 8192, &mut bytes).unwrap();
    let expected = if version == 0 { vec![0; read] } else { stamp(file, block, version) };
    assert!(bytes[..read] == expected[..], "file {file} block {block} version {version}");
}

/// Every block of every file of a snapshot is whole: of one version. One that is written in two parts may be of two,
/// the newer first.
fn check_snapshot(store: &Store, dataset: &Dataset) {
    let snapshot = store.snapshot(dataset.id()).unwrap();
    let clone = store.clone_snapshot(snapshot).unwrap();
    let files = store.dataset(clone).unwrap();
    for entry in files.readdir(Ino::ROOT, 0, 10_000).unwrap() {
        let name = String::from_utf8(entry.name).unwrap();
        let bytes = files.read(entry.ino, 0, 1 << 20).unwrap();
        let Some(file) = name.strip_prefix("file-") else {
            assert!(bytes.is_empty(), "{name} was never written");
            continue;
        };
        let file: u64 = file.parse().unwrap();
        for (number, block) in (0..).zip(bytes.chunks(8192)) {
            check_whole(file, number, block);
        }
    }
    store.delete_snapshot(snapshot).unwrap();
    store.delete_dataset(clone).unwrap();
    assert!(matches!(files.getattr(Ino::ROOT), Err(Error::Stale)));
}

fn check_whole(file: u64, number: u64, block: &[u8]) {
    // The file may end within a block of which only the first part was written yet.
    assert!(block.len() == 8192 || number >= PARTED, "file {file} ends in block {number}");
    let mut bytes = block.to_vec();
    bytes.resize(8192, 0);
    let version_at = |at: usize| u64::from_le_bytes(bytes[at + 16..at + 24].try_into().unwrap());
    let (newer, older) = (version_at(0), version_at(8192 - 32));
    let expected = content(file, number, newer);
    let Some(parted) = bytes.iter().zip(&expected).position(|(is, should)| is != should) else {
        return;
    };
    assert!(number >= PARTED, "file {file} block {number}: versions {newer} and {older} in one");
    assert!(older < newer, "file {file} block {number}: version {older} before {newer}");
    let rest = &content(file, number, older)[parted..];
    assert!(bytes[parted..] == *rest, "file {file} block {number}: more than {newer} and {older}");
}

#[test]
fn threads_see_what_they_wrote_while_everything_is_committed_and_reclaimed() {
    let test = TestStore::new(busy_options());
    let ids = [test.store.create_dataset().unwrap(), test.store.create_dataset().unwrap()];
    let until = Instant::now() + Duration::from_secs(4);
    let results: Vec<_> = std::thread::scope(|scope| {
        let store = &test.store;
        let workers: Vec<_> = (0..4u64)
            .map(|file| {
                let dataset = store.dataset(ids[file as usize % 2]).unwrap();
                scope.spawn(move || work(&dataset, file, until))
            })
            .collect();
        let dataset = store.dataset(ids[0]).unwrap();
        while Instant::now() < until {
            check_snapshot(store, &dataset);
        }
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    // Everything was synced: it is there without a clean end.
    let test = test.reopen(false);
    for (file, (ino, versions)) in results.into_iter().enumerate() {
        let dataset = test.store.dataset(ids[file % 2]).unwrap();
        for (block, version) in versions.into_iter().enumerate() {
            check(&dataset, ino, file as u64, block as u64, version);
        }
    }
    for id in ids {
        test.store.delete_dataset(id).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(120);
    while test.store.stats().blocks > 0 {
        assert!(Instant::now() < deadline, "the pool is not empty: {:?}", test.store.stats());
        std::thread::sleep(Duration::from_millis(20));
    }
    test.store.close().unwrap();
}

/// The longest a flush is held: a test that waits for it must fail, not hang.
const HELD_MAX: Duration = Duration::from_secs(60);
/// The last version written while the commit is held.
const LAST: u64 = 8;

/// Holds the flushes of segments while it is shut.
#[derive(Default)]
struct Gate {
    shut: Mutex<bool>,
    /// Flushes that came to the shut gate.
    held: AtomicU64,
    opened: Condvar,
}

impl Gate {
    fn set_shut(&self, shut: bool) {
        *self.shut.lock().unwrap() = shut;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let shut = self.shut.lock().unwrap();
        self.held.fetch_add(u64::from(*shut), Ordering::Relaxed);
        drop(self.opened.wait_timeout_while(shut, HELD_MAX, |shut| *shut).unwrap());
    }
}

/// A disk on which a flush of segments takes as long as a gate is shut.
struct SlowDisk {
    disk: LinuxDisk,
    gate: Arc<Gate>,
}

struct SlowFile {
    file: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl SlowDisk {
    fn wrap(&self, path: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        if !path.starts_with("segments/") {
            return file;
        }
        Arc::new(SlowFile { file, gate: Arc::clone(&self.gate) })
    }
}

impl Disk for SlowDisk {
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(path, self.disk.open(path)?))
    }
    fn open_uncached(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(path, self.disk.open_uncached(path)?))
    }
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(path, self.disk.create(path)?))
    }
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
    fn space(&self) -> io::Result<DiskSpace> {
        self.disk.space()
    }
    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        self.disk.lock(path)
    }
}

impl DiskFile for SlowFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, data)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass();
        self.file.sync_data()
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.allocate(offset, len)
    }
    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch_hole(offset, len)
    }
    fn allocated(&self) -> io::Result<u64> {
        self.file.allocated()
    }
    fn forget_cached(&self, offset: u64, len: u64) {
        self.file.forget_cached(offset, len);
    }
}

#[test]
fn nothing_waits_for_a_commit_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let disk = LinuxDisk::new(dir.path().join("pool")).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(SlowDisk { disk, gate: Arc::clone(&gate) });
    let options = small_options();
    Store::create(&disk, &options).unwrap();
    let store = Store::open(Arc::clone(&disk), &options, Arc::new(SystemClock)).unwrap();
    let dataset = store.dataset(store.create_dataset().unwrap()).unwrap();
    let other = store.dataset(store.create_dataset().unwrap()).unwrap();
    let (ino, elsewhere) = (make_file(&dataset, b"file"), make_file(&other, b"file"));
    dataset.write(ino, 0, &stamp(1, 0, 1)).unwrap();
    dataset.commit().unwrap();
    dataset.write(ino, 8192, &stamp(1, 1, 1)).unwrap();
    gate.set_shut(true);
    std::thread::scope(|scope| {
        let commit = scope.spawn(|| dataset.commit().unwrap());
        while gate.held.load(Ordering::Relaxed) == 0 {
            assert!(!commit.is_finished(), "the commit flushes nothing: the test proves nothing");
            std::thread::sleep(Duration::from_millis(1));
        }
        for version in 2..=LAST {
            dataset.write(ino, 8192, &stamp(1, 1, version)).unwrap();
            drop(dataset.create(Ino::ROOT, &[b'a' + version as u8], &NewInode::file(0)));
            check(&dataset, ino, 1, 0, 1);
            check(&dataset, ino, 1, 1, version);
            dataset.sync().unwrap();
            other.write(elsewhere, 0, b"here too").unwrap();
            other.sync().unwrap();
        }
        // Not synced before the commit ends: it must not be taken for a part of it.
        dataset.write(ino, 2 * 8192, &stamp(1, 2, LAST)).unwrap();
        // The commit ends when the gate is opened, or HELD_MAX later.
        assert!(!commit.is_finished(), "an operation waited for the commit");
        gate.set_shut(false);
        commit.join().unwrap();
    });
    dataset.sync().unwrap();
    let id = dataset.id();
    drop((dataset, other));
    drop(store);
    // As after a kill: what was synced during the commit and after it is there.
    let store = Store::open(disk, &options, Arc::new(SystemClock)).unwrap();
    let dataset = store.dataset(id).unwrap();
    for block in [1, 2] {
        check(&dataset, ino, 1, block, LAST);
    }
    store.close().unwrap();
}
