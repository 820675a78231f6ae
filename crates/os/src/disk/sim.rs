//! A disk in memory that keeps only what it was told to keep.
//!
//! Every file has the image the medium certainly holds (`kept`), the operations since its last sync
//! (`pending`) and the image a reader sees (`seen`). A crash applies a random part of the pending
//! operations, each write torn at sectors, and forgets the rest. Names work the same way per
//! directory, except that their changes reach the medium in order, as in a journal. All randomness
//! comes from one seed, so a run can be replayed.

mod image;
mod weakness;

pub use weakness::{Flush, Weakness};

use super::{Disk, DiskFile, DiskLock, DiskSpace};
use image::{Image, PAGE};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// A device writes whole sectors, so a crash tears a write only between them.
const SECTOR: usize = 512;
/// What an unlimited disk reports as its size, in bytes.
const UNLIMITED: u64 = 1 << 42;

/// A simulated disk.
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    /// An empty disk; the seed decides what a crash keeps of unsynced writes.
    pub fn new(seed: u64) -> Arc<SimDisk> {
        Arc::new(SimDisk { state: Arc::new(Mutex::new(State::new(seed))) })
    }

    /// Loses power now: every open handle and lock is dead, unsynced writes are kept, lost, reordered
    /// or torn at 512 bytes as the seed says. The disk can be opened again at once.
    pub fn crash(&self) {
        self.state.lock().crash();
    }

    /// Fails every operation from the `n`-th changing operation on (write, sync, punch, create, …),
    /// counted from now, like a device that lost power; [`SimDisk::crash`] ends that. With 1 the
    /// next one fails.
    pub fn crash_after(&self, n: u64) {
        let mut state = self.state.lock();
        state.dies_at = Some(state.operations + n.max(1));
    }

    /// Changing operations done so far.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Limits the disk's size, in bytes; writes beyond get `StorageFull`. `None`: no limit.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.state.lock().capacity = capacity;
    }

    /// Simulates others filling the disk before the `n`-th changing operation, counted from now: its
    /// size is limited to what is used then. With 1 the next one finds it full.
    pub fn fill_after(&self, n: u64) {
        let mut state = self.state.lock();
        state.fills_at = Some(state.operations + n.max(1));
    }

    /// Flips one bit, on the medium.
    ///
    /// # Panics
    /// Panics if there is no such file, or it ends before `offset`.
    pub fn flip_bit(&self, path: &str, offset: u64, bit: u8) {
        let mut state = self.state.lock();
        let id = *state.names.get(path).expect("the file to damage exists");
        let file = state.files.get_mut(&id).expect("a named file exists");
        assert!(offset < file.seen.len, "the file to damage reaches the bit");
        for image in [&mut file.seen, &mut file.kept] {
            if offset < image.len {
                let mut byte = [0];
                image.read(offset, &mut byte);
                image.write(offset, &[byte[0] ^ 1 << (bit % 8)]);
            }
        }
    }

    /// Weakens a kind of flush from now on, as if the code did without it. For checks that crash
    /// tests can fail.
    pub fn weaken(&self, weakness: Weakness) {
        self.state.lock().weaknesses.push(weakness);
    }

    /// Flushes weakened so far.
    pub fn weakened(&self) -> u64 {
        self.state.lock().weakened
    }

    /// Does what late flushes left undone.
    pub fn settle(&self) {
        self.state.lock().settle();
    }

    /// From now on syncs of files whose path starts with `prefix` do nothing but report success.
    pub fn ignore_syncs(&self, prefix: &'static str) {
        self.weaken(Weakness::Ignored(Flush::File { prefix, suffix: "" }));
    }

    /// From now on syncs of directory `dir` do nothing but report success.
    pub fn ignore_dir_syncs(&self, dir: &'static str) {
        self.weaken(Weakness::Ignored(Flush::Names { dir, suffix: "" }));
    }

    /// Whether power was lost: a [`SimDisk::crash_after`] took effect, and no crash has ended it.
    pub fn lost_power(&self) -> bool {
        self.state.lock().alive().is_err()
    }

    /// Answers reads of files whose path starts with `prefix` with `EIO`; `None` ends that.
    pub fn fail_reads(&self, prefix: Option<&str>) {
        self.state.lock().failing_reads = prefix.map(str::to_owned);
    }

    /// Answers syncs of files whose path starts with `prefix` with `EIO`; `None` ends that.
    pub fn fail_syncs(&self, prefix: Option<&str>) {
        self.state.lock().failing_syncs =
            prefix.map(|prefix| (prefix.to_owned(), io::ErrorKind::Other));
    }

    /// Answers syncs of files whose path starts with `prefix`, and of their directory, with `ENOSPC`,
    /// like a device that promised more room than it has. Some of what such a sync should have kept is
    /// lost, and a later sync treats it as kept. `None` ends that.
    pub fn refuse_syncs(&self, prefix: Option<&str>) {
        self.state.lock().failing_syncs =
            prefix.map(|prefix| (prefix.to_owned(), io::ErrorKind::StorageFull));
    }

    /// Bytes that the files take, by pages of 4 KiB.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// A file's content as a reader sees it; `None` when there is no such file.
    pub fn content(&self, path: &str) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let file = state.files.get(state.names.get(path)?)?;
        let mut content = vec![0; file.seen.len as usize];
        file.seen.read(0, &mut content);
        Some(content)
    }
}

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.lock();
        f.debug_struct("SimDisk")
            .field("operations", &state.operations)
            .field("names", &state.names)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Change {
    Write { offset: u64, data: Vec<u8> },
    SetLen(u64),
    Allocate { offset: u64, len: u64 },
    Punch { offset: u64, len: u64 },
}

impl Change {
    /// The length of a write of a file's first bytes, at most a page.
    fn header_len(&self) -> Option<usize> {
        match self {
            Change::Write { offset: 0, data } if data.len() as u64 <= PAGE => Some(data.len()),
            _ => None,
        }
    }

    fn apply(&self, image: &mut Image) {
        match self {
            Change::Write { offset, data } => image.write(*offset, data),
            Change::SetLen(len) => image.set_len(*len),
            Change::Allocate { offset, len } => image.allocate(*offset, *len),
            Change::Punch { offset, len } => image.punch(*offset, *len),
        }
    }
}

#[derive(Debug)]
enum NameChange {
    Create { path: String, id: u64 },
    Remove { path: String },
    Rename { from: String, to: String },
}

impl NameChange {
    /// The name it makes or takes away.
    fn path(&self) -> &str {
        match self {
            NameChange::Create { path, .. } | NameChange::Remove { path } => path,
            NameChange::Rename { to, .. } => to,
        }
    }

    fn dir(&self) -> &str {
        parent(self.path())
    }

    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            NameChange::Create { path, id } => {
                names.insert(path.clone(), *id);
            }
            NameChange::Remove { path } => {
                names.remove(path);
            }
            NameChange::Rename { from, to } => {
                if let Some(id) = names.remove(from) {
                    names.insert(to.clone(), id);
                }
            }
        }
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

struct FileState {
    path: String,
    kept: Image,
    pending: Vec<Change>,
    seen: Image,
    /// Cloned by every handle, so that its count tells whether the file is open.
    open: Arc<()>,
}

struct State {
    seed: u64,
    files: BTreeMap<u64, FileState>,
    next_id: u64,
    names: BTreeMap<String, u64>,
    kept_names: BTreeMap<String, u64>,
    pending_names: Vec<NameChange>,
    dirs: BTreeSet<String>,
    /// Counts crashes; handles and locks of an earlier one are dead.
    epoch: u64,
    operations: u64,
    dies_at: Option<u64>,
    capacity: Option<u64>,
    fills_at: Option<u64>,
    weaknesses: Vec<Weakness>,
    weakened: u64,
    /// Files and names with a pending flush.
    late_files: BTreeSet<u64>,
    late_names: Vec<Flush>,
    failing_reads: Option<String>,
    failing_syncs: Option<(String, io::ErrorKind)>,
    locks: BTreeSet<String>,
}

fn eio(why: &str) -> io::Error {
    io::Error::other(format!("simulated: {why}"))
}

impl State {
    fn new(seed: u64) -> State {
        State {
            seed,
            files: BTreeMap::new(),
            next_id: 1,
            names: BTreeMap::new(),
            kept_names: BTreeMap::new(),
            pending_names: Vec::new(),
            dirs: BTreeSet::from([String::new()]),
            epoch: 0,
            operations: 0,
            dies_at: None,
            capacity: None,
            fills_at: None,
            weaknesses: Vec::new(),
            weakened: 0,
            late_files: BTreeSet::new(),
            late_names: Vec::new(),
            failing_reads: None,
            failing_syncs: None,
            locks: BTreeSet::new(),
        }
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn alive(&self) -> io::Result<()> {
        match self.dies_at {
            Some(at) if self.operations >= at => Err(eio("the device lost power")),
            _ => Ok(()),
        }
    }

    /// Counts a changing operation. `Ok(true)`: power fails during it, so it may be partly done and
    /// must return an error.
    fn step(&mut self) -> io::Result<bool> {
        self.alive()?;
        self.operations += 1;
        if self.fills_at.is_some_and(|at| self.operations >= at) {
            (self.fills_at, self.capacity) = (None, Some(self.used()));
        }
        Ok(self.alive().is_err())
    }

    fn id_of(&self, path: &str) -> io::Result<u64> {
        self.names.get(path).copied().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("simulated: no file '{path}'"))
        })
    }

    fn file(&mut self, id: u64, epoch: u64) -> io::Result<&mut FileState> {
        if epoch != self.epoch {
            return Err(eio("the handle is older than the crash"));
        }
        self.files.get_mut(&id).ok_or_else(|| eio("the file is gone"))
    }

    fn used(&self) -> u64 {
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        let counted = self
            .files
            .iter()
            .filter(|(id, file)| named.contains(id) || Arc::strong_count(&file.open) > 1);
        counted.map(|(_, file)| file.seen.pages() * PAGE).sum()
    }

    fn change(&mut self, id: u64, epoch: u64, change: Change) -> io::Result<()> {
        let dying = self.step()?;
        if let Some(capacity) = self.capacity {
            let used = self.used();
            let needed = match &change {
                Change::Write { offset, data } => {
                    self.file(id, epoch)?.seen.missing_pages(*offset, data.len() as u64)
                }
                Change::Allocate { offset, len } => {
                    self.file(id, epoch)?.seen.missing_pages(*offset, *len)
                }
                Change::SetLen(_) | Change::Punch { .. } => 0,
            };
            if needed > 0 && used + needed * PAGE > capacity {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "simulated: no room"));
            }
        }
        let file = self.file(id, epoch)?;
        change.apply(&mut file.seen);
        file.pending.push(change);
        if dying { Err(eio("power lost during the operation")) } else { Ok(()) }
    }

    fn change_name(&mut self, change: NameChange) -> io::Result<()> {
        let dying = self.step()?;
        change.apply(&mut self.names);
        self.pending_names.push(change);
        if dying { Err(eio("power lost during the operation")) } else { Ok(()) }
    }

    fn sync_file(&mut self, id: u64, epoch: u64) -> io::Result<()> {
        if self.step()? {
            return Err(eio("power lost during the sync"));
        }
        let path = self.file(id, epoch)?.path.clone();
        match &self.failing_syncs {
            Some((prefix, kind)) if path.starts_with(prefix.as_str()) => {
                let kind = *kind;
                if kind == io::ErrorKind::StorageFull {
                    self.lose_some(id);
                }
                return Err(io::Error::new(kind, "simulated: the sync failed"));
            }
            _ => {}
        }
        let header = match &self.file(id, epoch)?.pending[..] {
            [only] => only.header_len(),
            _ => None,
        };
        let covers = |one: &&Weakness| one.flush().covers_file(&path, header);
        match self.weaknesses.iter().find(covers) {
            None => self.keep_file(id),
            Some(weakness) => {
                self.weakened += 1;
                if matches!(weakness, Weakness::Late(_)) {
                    self.late_files.insert(id);
                }
            }
        }
        Ok(())
    }

    fn keep_file(&mut self, id: u64) {
        let Some(file) = self.files.get_mut(&id) else { return };
        for change in std::mem::take(&mut file.pending) {
            change.apply(&mut file.kept);
        }
    }

    /// Keeps some of the pending changes of a file; none is pending any more.
    fn lose_some(&mut self, id: u64) {
        let temper = self.random() % 4;
        self.keep_some(id, temper);
    }

    fn settle(&mut self) {
        for id in std::mem::take(&mut self.late_files) {
            self.keep_file(id);
        }
        let late = std::mem::take(&mut self.late_names);
        self.keep_names(|change| {
            late.iter().any(|flush| flush.covers_name(change.dir(), change.path()))
        });
    }

    /// Makes pending changes of names durable, if `meant`.
    fn keep_names(&mut self, meant: impl Fn(&NameChange) -> bool) {
        for change in std::mem::take(&mut self.pending_names) {
            if meant(&change) {
                change.apply(&mut self.kept_names);
            } else {
                self.pending_names.push(change);
            }
        }
    }

    fn sync_dir(&mut self, dir: &str) -> io::Result<()> {
        if self.step()? {
            return Err(eio("power lost during the sync"));
        }
        if let Some((prefix, kind @ io::ErrorKind::StorageFull)) = &self.failing_syncs
            && prefix.strip_suffix('/') == Some(dir)
        {
            return Err(io::Error::new(*kind, "simulated: the sync failed"));
        }
        let mut weak = Vec::new();
        for change in self.pending_names.iter().filter(|change| change.dir() == dir) {
            let covers = |one: &&Weakness| one.flush().covers_name(dir, change.path());
            weak.extend(self.weaknesses.iter().find(covers).copied());
        }
        self.weakened += weak.len() as u64;
        let late = weak.iter().filter(|one| matches!(one, Weakness::Late(_)));
        self.late_names.extend(late.map(Weakness::flush));
        self.keep_names(|change| {
            let weak = || weak.iter().any(|one| one.flush().covers_name(dir, change.path()));
            change.dir() == dir && !weak()
        });
        Ok(())
    }

    fn crash(&mut self) {
        self.epoch += 1;
        self.dies_at = None;
        self.locks.clear();
        self.late_files.clear();
        self.late_names.clear();
        self.crash_names();
        let named: BTreeSet<u64> = self.kept_names.values().copied().collect();
        self.files.retain(|id, _| named.contains(id));
        self.names = self.kept_names.clone();
        let ids: Vec<u64> = self.files.keys().copied().collect();
        // One temper per crash, so that all-lost and all-kept are common, not only mixtures.
        let temper = self.random() % 4;
        for id in ids {
            self.crash_file(id, temper);
        }
    }

    /// Each directory keeps a random prefix of its unsynced changes.
    fn crash_names(&mut self) {
        let mut left: BTreeMap<String, u64> = BTreeMap::new();
        for change in &self.pending_names {
            *left.entry(change.dir().to_owned()).or_default() += 1;
        }
        let dirs: Vec<String> = left.keys().cloned().collect();
        for dir in dirs {
            let chance = self.random();
            let count = left.entry(dir).or_default();
            *count = chance % (*count + 1);
        }
        for change in std::mem::take(&mut self.pending_names) {
            let count = left.entry(change.dir().to_owned()).or_default();
            if *count > 0 {
                *count -= 1;
                change.apply(&mut self.kept_names);
            }
        }
    }

    fn crash_file(&mut self, id: u64, temper: u64) {
        self.keep_some(id, temper);
        if let Some(file) = self.files.get_mut(&id) {
            file.seen = file.kept.clone();
            file.open = Arc::new(());
        }
    }

    /// Applies to the medium what a temper keeps of the pending changes.
    fn keep_some(&mut self, id: u64, temper: u64) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let pending = std::mem::take(&mut file.pending);
        let mut kept = std::mem::take(&mut file.kept);
        for change in &pending {
            let whole = match temper {
                0 => Some(false),
                1 => Some(true),
                2 => Some(self.random().is_multiple_of(2)),
                _ => None,
            };
            match (whole, change) {
                (Some(false), _) => {}
                (Some(true), change) => change.apply(&mut kept),
                (None, Change::Write { offset, data }) => {
                    self.tear(&mut kept, *offset, data);
                }
                (None, change) => {
                    if self.random().is_multiple_of(2) {
                        change.apply(&mut kept);
                    }
                }
            }
        }
        if let Some(file) = self.files.get_mut(&id) {
            file.kept = kept;
        }
    }

    /// Writes some of the sectors.
    fn tear(&mut self, image: &mut Image, offset: u64, data: &[u8]) {
        let mut at = 0;
        while at < data.len() {
            let sector_end = SECTOR - ((offset as usize + at) % SECTOR);
            let end = data.len().min(at + sector_end);
            if self.random().is_multiple_of(2) {
                image.write(offset + at as u64, &data[at..end]);
            }
            at = end;
        }
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.handle(path, false)
    }

    fn open_uncached(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.handle(path, true)
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        {
            let mut state = self.state.lock();
            if !state.dirs.contains(parent(path)) {
                return Err(io::Error::new(io::ErrorKind::NotFound, "simulated: no directory"));
            }
            if state.names.contains_key(path) {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "simulated: it exists"));
            }
            let id = state.next_id;
            state.next_id += 1;
            let file = FileState {
                path: path.to_owned(),
                kept: Image::default(),
                pending: Vec::new(),
                seen: Image::default(),
                open: Arc::new(()),
            };
            state.files.insert(id, file);
            state.change_name(NameChange::Create { path: path.to_owned(), id })?;
        }
        self.handle(path, false)
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.step()? {
            return Err(eio("power lost during the operation"));
        }
        // Directories are made once, when a pool is created; their loss is not simulated.
        state.dirs.insert(path.to_owned());
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.id_of(path)?;
        state.change_name(NameChange::Remove { path: path.to_owned() })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let id = state.id_of(from)?;
        if let Some(file) = state.files.get_mut(&id) {
            file.path = to.to_owned();
        }
        state.change_name(NameChange::Rename { from: from.to_owned(), to: to.to_owned() })
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        state.alive()?;
        let inside = state.names.keys().filter(|path| parent(path) == dir);
        Ok(inside.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()).collect())
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.state.lock().sync_dir(dir)
    }

    fn space(&self) -> io::Result<DiskSpace> {
        let state = self.state.lock();
        state.alive()?;
        let total = state.capacity.unwrap_or(UNLIMITED);
        Ok(DiskSpace { total, free: total.saturating_sub(state.used()) })
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        let mut state = self.state.lock();
        state.alive()?;
        if !state.locks.insert(path.to_owned()) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "simulated: locked"));
        }
        let epoch = state.epoch;
        Ok(Box::new(SimLock { state: self.state.clone(), path: path.to_owned(), epoch }))
    }
}

impl SimDisk {
    fn handle(&self, path: &str, uncached: bool) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.state.lock();
        state.alive()?;
        let id = state.id_of(path)?;
        let open = state.files.get(&id).ok_or_else(|| eio("the file is gone"))?.open.clone();
        let epoch = state.epoch;
        Ok(Arc::new(SimFile { state: self.state.clone(), id, epoch, uncached, _open: open }))
    }
}

struct SimLock {
    state: Arc<Mutex<State>>,
    path: String,
    epoch: u64,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if state.epoch == self.epoch {
            state.locks.remove(&self.path);
        }
    }
}

struct SimFile {
    state: Arc<Mutex<State>>,
    id: u64,
    epoch: u64,
    uncached: bool,
    _open: Arc<()>,
}

impl SimFile {
    fn change(&self, change: Change) -> io::Result<()> {
        if self.uncached && !matches!(change, Change::Punch { .. } | Change::SetLen(_)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "open for uncached reading"));
        }
        self.state.lock().change(self.id, self.epoch, change)
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state.lock();
        state.alive()?;
        let failing = state.failing_reads.clone();
        let file = state.file(self.id, self.epoch)?;
        if failing.is_some_and(|prefix| file.path.starts_with(prefix.as_str())) {
            return Err(eio("the read failed"));
        }
        Ok(file.seen.read(offset, buffer))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Change::Write { offset, data: data.to_vec() })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.state.lock().sync_file(self.id, self.epoch)
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.state.lock();
        state.alive()?;
        Ok(state.file(self.id, self.epoch)?.seen.len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::SetLen(len))
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.change(Change::Allocate { offset, len })
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        self.change(Change::Punch { offset, len })
    }

    fn allocated(&self) -> io::Result<u64> {
        let mut state = self.state.lock();
        state.alive()?;
        Ok(state.file(self.id, self.epoch)?.seen.pages() * PAGE)
    }

    fn forget_cached(&self, _offset: u64, _len: u64) {}
}

#[cfg(test)]
mod tests;
