//! Creates a pool, and opens it at its last durable commit.
//!
//! Whatever a crash left that is newer than the root is removed: unnamed table files, segments
//! without a block in the table, segments' tails. Nodes without references whose children were not
//! released yet are queued again.

use crate::background::Background;
use crate::block::NodeChildren;
use crate::dead_nodes::DeadNodes;
use crate::durable::Durable;
use crate::faults::Faults;
use crate::journal::{self, Journal};
use crate::pool::{Compaction, Pool, Savings};
use crate::reads::Reads;
use crate::rebuild::rebuild;
use crate::segments::{self, Segments};
use crate::space::Space;
use crate::table::{Entry, LOST, Sums, Table};
use crate::threads::{in_parallel, threads_for};
use crate::{DataKey, Error, PoolOptions, Result, Seals};
use offshoot_cache::BlockCache;
use offshoot_format::label::{self, Label};
use offshoot_format::segment::{BlockKind, Layout};
use offshoot_os::Clock;
use offshoot_os::disk::{Disk, read_exact_at};
use offshoot_types::{BlockHash, Latency};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const LABEL: &str = "label";
const NEW_LABEL: &str = "label.new";
const LOCK: &str = "lock";
/// The directories of a pool.
const DIRS: [&str; 2] = [segments::DIR, journal::DIR];
/// Places processed together to find dead ranges at open: bounds memory to about 50 MB.
const PLACES_MAX: u64 = 4 << 20;
/// Entries that are worth a thread of their own.
const ENTRIES_MIN: u64 = 1 << 16;

/// What the table says of one segment.
#[derive(Debug, Default, Clone, Copy)]
struct SegmentUse {
    live: u64,
    end: u32,
    blocks: u64,
    layout: Layout,
}

impl SegmentUse {
    fn merge(&mut self, other: SegmentUse) {
        self.live += other.live;
        self.end = self.end.max(other.end);
        self.blocks += other.blocks;
        self.layout = self.layout.max(other.layout);
    }
}

impl Pool {
    /// Makes a new, empty pool in an empty (or pool-less) directory.
    ///
    /// # Errors
    /// `Exists` when there is a pool already, `InUse` when another engine is making one.
    pub fn create(disk: &dyn Disk, options: &PoolOptions) -> Result<()> {
        let seals = Seals::new(options.data_key.as_ref())?;
        let lock = take_lock(disk)?;
        if disk.open(LABEL).is_ok() {
            return Err(Error::Exists);
        }
        let pool_id = offshoot_os::random_bytes();
        let label = match seals.are_on() {
            true => Label::new_encrypted(pool_id),
            false => Label::new(pool_id),
        };
        let io = |error: std::io::Error| Error::io("create a pool", &error);
        for dir in DIRS {
            disk.create_dir(dir).map_err(io)?;
            // Left over from a creation that was cut off.
            for name in disk.list(dir).map_err(io)? {
                disk.remove(&format!("{dir}/{name}")).map_err(io)?;
            }
        }
        for name in disk.list("").map_err(io)? {
            if name.starts_with("root.") || name == NEW_LABEL {
                disk.remove(&name).map_err(io)?;
            }
        }
        journal::create(disk, &seals)?;
        // The label is written last, and whole: without it there is no pool.
        write_label(disk, &label).map_err(io)?;
        drop(lock);
        Ok(())
    }

    /// Opens a pool at its last durable commit and locks it.
    ///
    /// # Errors
    /// `NoPool`, `InUse`, `UnknownFormat`, `DamagedStructure`; `NoKey`, `NotEncrypted` where the key is missing or
    /// too much.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: &PoolOptions,
        nodes: Arc<dyn NodeChildren>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Pool>> {
        let label = read_label(&*disk)?;
        let seals = seals_of(&label, options.data_key.as_ref())?;
        let lock = take_lock(&*disk)?;
        make_durable(&*disk)?;
        tracing::debug!("the pool's files are flushed");
        let table = Table::new();
        let (journal, damage) = Journal::open(&disk, &seals, &table, |root| {
            rebuild(&*disk, &label.pool_id, &seals, &*nodes, root.hash, &table)
        })?;
        tracing::debug!(entries = table.len(), "the block table is read");
        let segments = Segments::new(disk.clone(), label.pool_id, &seals, options);
        let Settled { dead, uses, lost, .. } = settle_table(&table);
        let missing = adopt_segments(&*disk, &segments, &uses)?;
        find_dead_ranges(&table, &segments, &uses);
        let root = &journal.root;
        let pool = Arc::new(Pool {
            commits: Latency::default(),
            savings: Savings {
                zero: AtomicU64::new(root.zero_saved),
                dedup: AtomicU64::new(root.dedup_saved),
            },
            compaction: Compaction::default(),
            cache: BlockCache::new(options.cache_size),
            space: Space::new(disk.clone(), options, journal.used()),
            options: options.clone(),
            durable: Durable::new(journal),
            dead: DeadNodes::new(dead),
            faults: Faults::new(clock.clone()),
            reads: Reads::new(clock.clone()),
            lock: Mutex::new(Some(lock)),
            background: Background::default(),
            disk,
            seals,
            nodes,
            clock,
            table,
            segments,
        });
        for number in missing {
            let detail = format!("segment {number} is missing or too short");
            pool.faults.add_structure(BlockHash::ZERO, &detail);
        }
        for detail in damage {
            pool.faults.add_structure(BlockHash::ZERO, &detail);
        }
        for hash in lost {
            pool.faults.add_structure(hash, LOST);
        }
        pool.space.correct(&pool.segments);
        tracing::debug!("the segments are adopted");
        if options.background {
            pool.start_reclaim()?;
        }
        Ok(pool)
    }
}

impl Pool {
    /// Durably makes older engines refuse the pool: from here on it may hold things they do not
    /// know.
    ///
    /// # Errors
    /// `Io`, `DamagedStructure`.
    pub fn declare_features(&self) -> Result<()> {
        let label = read_label(&*self.disk)?;
        let features = label.features | label::BASE_FEATURES;
        if label.features == features {
            return Ok(());
        }
        let label = Label { features, ..label };
        write_label(&*self.disk, &label).map_err(|error| Error::io("write the label", &error))
    }
}

/// Whether the bytes of a label say that its pool is encrypted.
pub fn is_encrypted(label: &[u8]) -> bool {
    Label::decode(label).is_ok_and(|label| label.is_encrypted())
}

/// What opens a pool with this label.
pub(crate) fn seals_of(label: &Label, key: Option<&DataKey>) -> Result<Seals> {
    match (label.is_encrypted(), key) {
        (true, None) => Err(Error::NoKey),
        (false, Some(_)) => Err(Error::NotEncrypted),
        (_, key) => Ok(Seals::new(key)?),
    }
}

/// Writes the label, whole or not at all.
fn write_label(disk: &dyn Disk, label: &Label) -> std::io::Result<()> {
    if disk.list("")?.iter().any(|name| name == NEW_LABEL) {
        disk.remove(NEW_LABEL)?;
    }
    let file = disk.create(NEW_LABEL)?;
    file.write_at(0, &label.encode()).and_then(|()| file.sync_data())?;
    disk.sync_dir("")?;
    disk.rename(NEW_LABEL, LABEL).and_then(|()| disk.sync_dir(""))
}

pub(crate) fn take_lock(disk: &dyn Disk) -> Result<Box<dyn offshoot_os::disk::DiskLock>> {
    disk.lock(LOCK).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::InUse,
        _ => Error::io("lock the pool", &error),
    })
}

pub(crate) fn read_label(disk: &dyn Disk) -> Result<Label> {
    let file = disk.open(LABEL).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NoPool,
        _ => Error::io("open 'label'", &error),
    })?;
    let mut bytes = vec![0; label::LEN];
    let read = read_exact_at(&*file, 0, &mut bytes);
    read.map_err(|error| Error::io("read 'label'", &error))?;
    let damaged = |error: offshoot_format::DecodeError| Error::DamagedStructure {
        what: "label",
        detail: error.to_string(),
    };
    let label = Label::decode(&bytes).map_err(damaged)?;
    match label.refusal() {
        Some(why) => Err(Error::UnknownFormat(why)),
        None => Ok(label),
    }
}

/// Flushes what an engine that ended without flushing left to the system. Otherwise what is read from
/// here on, including the newest root (`Journal::open` flushes that), would be relied upon and what it
/// replaces removed, while a power loss could still take it back.
fn make_durable(disk: &dyn Disk) -> Result<()> {
    for dir in DIRS {
        let io = |error: std::io::Error| Error::io(format!("flush '{dir}'"), &error);
        for name in disk.list(dir).map_err(io)? {
            disk.open(&format!("{dir}/{name}")).and_then(|file| file.sync_data()).map_err(io)?;
        }
        disk.sync_dir(dir).map_err(io)?;
    }
    Ok(())
}

/// What the table says at open; first what one thread finds in its parts of it.
#[derive(Default)]
struct Settled {
    dead: VecDeque<BlockHash>,
    uses: BTreeMap<u32, SegmentUse>,
    lost: Vec<BlockHash>,
    sums: Sums,
    /// The use of the segment looked at last: entries of one part are often in the order they were
    /// written.
    last: (u32, SegmentUse),
}

impl Settled {
    /// Whether the entry is needed.
    fn add(&mut self, hash: &BlockHash, entry: &Entry) -> bool {
        if entry.refs == 0 {
            if entry.kind() == BlockKind::Data {
                return false;
            }
            self.dead.push_back(*hash);
        }
        if entry.is_lost() {
            self.lost.push(*hash);
            return true;
        }
        self.sums.add(entry);
        let place = entry.place();
        if self.last.0 != place.segment {
            self.merge_last();
            self.last.0 = place.segment;
        }
        let of = &mut self.last.1;
        of.live += u64::from(place.room());
        of.end = of.end.max(place.end());
        of.blocks += 1;
        of.layout = place.layout;
        true
    }

    fn merge_last(&mut self) {
        let (segment, of) = std::mem::take(&mut self.last);
        if of.blocks > 0 {
            self.uses.entry(segment).or_default().merge(of);
        }
    }
}

/// Drops entries that nothing needs, queues dead nodes, and sums up what is left by segment.
fn settle_table(table: &Table) -> Settled {
    let mut all = Settled::default();
    for mut one in table.retain_on(table_threads(table), Settled::add) {
        one.merge_last();
        all.dead.extend(one.dead);
        all.lost.extend(one.lost);
        table.totals.change(&one.sums, true);
        for (segment, of) in one.uses {
            all.uses.entry(segment).or_default().merge(of);
        }
    }
    all
}

/// Threads for work on all entries.
fn table_threads(table: &Table) -> usize {
    threads_for(table.len() as u64 / ENTRIES_MIN)
}

/// Takes over the segment files the table refers to and removes the others. Returns those that are
/// missing or too short.
fn adopt_segments(
    disk: &dyn Disk,
    segments: &Segments,
    uses: &BTreeMap<u32, SegmentUse>,
) -> Result<Vec<u32>> {
    let names = disk.list(segments::DIR);
    let names = names.map_err(|error| Error::io(format!("list '{}'", segments::DIR), &error))?;
    let mut found = Vec::new();
    for number in names.iter().filter_map(|name| segments::number_of(name)) {
        segments.skip_numbers(number.saturating_add(1));
        let path = segments::path_of(number);
        let io = |error: std::io::Error| Error::io(format!("open '{path}'"), &error);
        let Some(of) = uses.get(&number) else {
            disk.remove(&path).map_err(io)?;
            continue;
        };
        let file = disk.open(&path).map_err(io)?;
        let len = file.len().map_err(io)?;
        segments.adopt(number, of.layout, of.end, of.live);
        if len >= u64::from(of.end) {
            found.push(number);
            if len > u64::from(of.end) {
                file.set_len(u64::from(of.end)).map_err(io)?;
            }
        }
    }
    // Appending continues only where nothing is missing.
    if let Some(last) = found.last().filter(|last| uses.keys().next_back() == Some(last)) {
        segments.reopen(*last)?;
    }
    Ok(uses.keys().filter(|number| !found.contains(number)).copied().collect())
}

/// Finds the gaps between the blocks of each segment.
fn find_dead_ranges(table: &Table, segments: &Segments, uses: &BTreeMap<u32, SegmentUse>) {
    let gappy = |of: &SegmentUse| u64::from(of.end - of.layout.begin()) > of.live;
    let mut rest: VecDeque<(u32, SegmentUse)> =
        uses.iter().filter(|(_, of)| gappy(of)).map(|(number, of)| (*number, *of)).collect();
    let threads = table_threads(table);
    while !rest.is_empty() {
        let mut numbers = Vec::new();
        let mut count = 0;
        while let Some((number, of)) = rest.front()
            && (count == 0 || count + of.blocks <= PLACES_MAX)
        {
            count += of.blocks;
            numbers.push(*number);
            rest.pop_front();
        }
        let found = table.visit_on(threads, || Places::of(&numbers), Places::add);
        in_parallel(threads, |share| {
            for index in (share..numbers.len()).step_by(threads) {
                let mut blocks: Vec<_> =
                    found.iter().flat_map(|places| &places.blocks[index]).copied().collect();
                let number = numbers[index];
                add_gaps(segments, number, uses[&number].layout.begin(), &mut blocks);
            }
        });
    }
}

/// Where the blocks of some segments begin and end, as one thread finds them.
struct Places<'a> {
    /// The segments, ascending, and where the one met last is among them.
    numbers: &'a [u32],
    last: usize,
    blocks: Vec<Vec<(u32, u32)>>,
}

impl Places<'_> {
    fn of(numbers: &[u32]) -> Places<'_> {
        Places { numbers, last: 0, blocks: vec![Vec::new(); numbers.len()] }
    }

    fn add(&mut self, entry: &Entry) {
        let place = entry.place();
        // The next entry is often of the same segment.
        if self.numbers[self.last] != place.segment {
            let Ok(index) = self.numbers.binary_search(&place.segment) else { return };
            self.last = index;
        }
        self.blocks[self.last].push((place.offset, place.end()));
    }
}

/// Adds the gaps between the blocks of a segment, the first of which would be at `at`, to its dead
/// space.
fn add_gaps(segments: &Segments, number: u32, mut at: u32, blocks: &mut [(u32, u32)]) {
    blocks.sort_unstable();
    for &(begin, end) in &*blocks {
        if begin > at {
            segments.add_dead(number, at, begin);
        }
        at = at.max(end);
    }
}
