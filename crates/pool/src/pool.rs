//! The pool's parts and its reading side.

use crate::compress::decompress;
use crate::journal::{self, Journal};
use crate::recovery::LOST;
use crate::segments::Segments;
use crate::table::{Entry, Place, Table};
use crate::transaction::{BlockPin, Transaction, name_of};
use crate::{BlockData, Error, Fault, PoolOptions, PoolStats, Purpose, Result};
use offshoot_cache::BlockCache;
use offshoot_format::DecodeError;
use offshoot_os::Clock;
use offshoot_os::disk::{Disk, DiskLock};
use offshoot_types::{BlockHash, Txg};
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

/// Blocks closer than this on disk are read together, in bytes.
const RUN_GAP: u32 = 32 << 10;
/// Appended bytes up to which more is appended although there seems to be no room for it.
const UNWRITTEN_MAX: u64 = 4 << 20;
/// What is said of the pool's structures, in bytes.
const DETAIL_LEN_MAX: usize = 1000;

/// Tells the pool which blocks a node refers to.
pub trait NodeChildren: Send + Sync {
    /// The children of a node, as often as it lists them; holes ([`BlockHash::ZERO`]) are ignored.
    fn children(&self, node: &[u8]) -> std::result::Result<Vec<BlockHash>, DecodeError>;
}

/// What the last durable commit said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Counts commits; 0 in a new pool. Background work commits, too.
    pub txg: Txg,
    /// The root node; [`BlockHash::ZERO`] in a new pool.
    pub hash: BlockHash,
    /// Bytes given to [`Pool::commit`]; opaque to the pool.
    pub extra: Vec<u8>,
}

/// An open pool.
///
/// Locks, in the order they are taken: `journal` (one commit at a time), a transaction's blocks, a
/// part of the table, the appender, a segment. A read that hits the cache takes none of them.
pub struct Pool {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: PoolOptions,
    pub(crate) nodes: Arc<dyn NodeChildren>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) table: Table,
    pub(crate) segments: Segments,
    pub(crate) cache: BlockCache,
    /// The commit lock.
    pub(crate) journal: Mutex<Journal>,
    pub(crate) root: RwLock<Root>,
    pub(crate) room: crate::room::Room,
    pub(crate) ballast: crate::ballast::Ballast,
    /// Nodes without references whose children are still to be released.
    pub(crate) dead: Mutex<VecDeque<BlockHash>>,
    /// Held while the children of nodes at the front of `dead` are released.
    pub(crate) burying: Mutex<()>,
    /// Held while a segment is compacted.
    pub(crate) compacting: Mutex<()>,
    pub(crate) faults: Mutex<HashMap<BlockHash, Fault>>,
    /// Reads that wait for the disk; what is less urgent waits for them.
    pub(crate) readers: AtomicU32,
    pub(crate) read_time: crate::read_many::ReadTime,
    pub(crate) zero_saved: AtomicU64,
    pub(crate) dedup_saved: AtomicU64,
    /// Bytes compaction moved, and checkpoints written, since the pool was opened.
    pub(crate) compacted: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    /// Bytes of the table's files.
    pub(crate) table_used: AtomicU64,
    /// Why the pool refuses writes.
    pub(crate) failed: RwLock<Option<String>>,
    pub(crate) lock: Mutex<Option<Box<dyn DiskLock>>>,
    pub(crate) background: crate::reclaim::Background,
}

impl Pool {
    /// The last durable root.
    pub fn root(&self) -> Root {
        self.root.read().clone()
    }

    /// A block's content, verified against its name when it comes from disk. `owner` is whom the hit
    /// or miss is counted for (a dataset's number). [`BlockHash::ZERO`] is not a block: `Missing`.
    ///
    /// # Errors
    /// `Damaged` (also kept in [`Pool::faults`]), `Missing` when nothing refers to it any more, `Io`.
    pub fn read(&self, hash: &BlockHash, owner: u64) -> Result<BlockData> {
        match self.read_cached(hash, owner) {
            Some(block) => Ok(block),
            None => self.cache.get_or_load(hash, owner, || {
                self.readers.fetch_add(1, Ordering::Relaxed);
                let loaded = self.load(hash);
                self.readers.fetch_sub(1, Ordering::Relaxed);
                loaded
            }),
        }
    }

    /// A block that is in memory.
    pub fn read_cached(&self, hash: &BlockHash, owner: u64) -> Option<BlockData> {
        self.cache.get(hash, owner)
    }

    /// Reads a block from disk and verifies it.
    pub(crate) fn load(&self, hash: &BlockHash) -> Result<BlockData> {
        let mut entry = self.table.get(hash).ok_or(Error::Missing(*hash))?;
        if entry.is_lost() {
            return Err(Error::Damaged { hash: *hash, detail: LOST.into() });
        }
        loop {
            let began = self.clock.elapsed();
            let read = self.segments.read(entry.place());
            self.read_time.note(self.clock.elapsed().saturating_sub(began));
            let error = match read {
                Ok(stored) => match verify(hash, &entry, stored) {
                    Ok(content) => return Ok(BlockData::new(content)),
                    Err(detail) => Error::Damaged { hash: *hash, detail },
                },
                Err(error) => match error.kind() {
                    std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::NotFound => {
                        Error::Damaged { hash: *hash, detail: error.to_string() }
                    }
                    _ => Error::io(format!("read block {hash}"), &error),
                },
            };
            // Compaction may have moved it, or reclaim dropped it, since its place was looked up.
            let now = self.table.get(hash).ok_or(Error::Missing(*hash))?;
            if now.place() == entry.place() {
                self.add_fault(*hash, &entry, &error);
                return Err(error);
            }
            entry = now;
        }
    }

    /// The blocks a node in the pool refers to.
    pub(crate) fn children_of(&self, hash: &BlockHash) -> Result<Vec<BlockHash>> {
        let mut children = self.nodes.children(&self.read_aside(hash)?)?;
        children.retain(|child| !child.is_zero());
        Ok(children)
    }

    /// As [`Pool::read`], but leaves the cache as it is, for those who go through much once.
    ///
    /// # Errors
    /// As [`Pool::read`].
    pub fn read_aside(&self, hash: &BlockHash) -> Result<BlockData> {
        self.cache.peek(hash).map_or_else(|| self.load(hash), Ok)
    }

    /// Starts a transaction. Any number may run at a time.
    pub fn begin(self: &Arc<Self>) -> Transaction {
        Transaction::new(self.clone(), Purpose::Growth)
    }

    /// Starts a transaction that may take all of the reserve: for deletions, and for the commit of
    /// data that was let in before (check [`Pool::available`] when accepting it).
    pub fn begin_freeing(self: &Arc<Self>) -> Transaction {
        Transaction::new(self.clone(), Purpose::Freeing)
    }

    /// Pins a committed block.
    ///
    /// # Errors
    /// `Missing` when it is not in the pool, or not committed.
    pub fn pin(self: &Arc<Self>, hash: &BlockHash) -> Result<BlockPin> {
        let entry = self.table.pin(hash).ok_or(Error::Missing(*hash))?;
        let pin = BlockPin { pool: self.clone(), hash: *hash };
        if entry.is_committed() && !entry.is_dying() {
            Ok(pin)
        } else {
            Err(Error::Missing(*hash)) // dropping the pin takes it away
        }
    }

    /// Bytes that may still be taken for a purpose. Cheap: an estimate that only shrinks between
    /// commits.
    pub fn available(&self, purpose: Purpose) -> u64 {
        self.room.available(purpose)
    }

    /// Bytes that may still be taken for a purpose, as the device says now.
    pub fn available_now(&self, purpose: Purpose) -> u64 {
        self.correct_room();
        self.room.available(purpose)
    }

    /// Bytes that are free on the device, the ballast not counted.
    pub fn device_free(&self) -> u64 {
        self.disk.space().map_or(0, |space| space.free)
    }

    /// Bytes kept for what must go on when the pool is full.
    pub fn reserve(&self) -> u64 {
        self.room.reserve()
    }

    pub(crate) fn take_room(&self, bytes: u64, purpose: Purpose) -> Result<()> {
        let again = |_| {
            // The estimate only shrinks between corrections.
            self.correct_room();
            self.room.take(bytes, purpose)
        };
        self.room.take(bytes, purpose).or_else(again).or_else(|full| {
            if purpose < Purpose::Freeing {
                return Err(full);
            }
            // What there is the device will say, and the ballast helps then. What it refuses stays in memory until it is
            // written or given up: that must not be much.
            if self.segments.buffered() <= UNWRITTEN_MAX { Ok(()) } else { Err(full) }
        })
    }

    pub(crate) fn correct_room(&self) {
        if let Ok(space) = self.disk.space() {
            let table = self.table_used.load(Ordering::Relaxed);
            let free = space.free + self.ballast();
            self.room.correct(free, self.segments.buffered(), self.used(), table);
        }
    }

    fn used(&self) -> u64 {
        self.segments.used() + self.table_used.load(Ordering::Relaxed)
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        match &*self.failed.read() {
            Some(why) => Err(Error::Failed(why.clone())),
            None => Ok(()),
        }
    }

    /// Refuses all writes from now on; passes the reason on.
    pub(crate) fn fail(&self, error: Error) -> Error {
        tracing::error!(%error, "the pool refuses writes from now on");
        self.failed.write().get_or_insert_with(|| error.to_string());
        error
    }

    /// Whether a block is where a flush can make it durable, or has.
    pub(crate) fn is_kept(&self, hash: &BlockHash) -> bool {
        let is_kept = || self.table.get(hash).is_none_or(|entry| self.keeps(&entry));
        // As a rule: no look-up for each block of a commit.
        self.segments.all_kept() || is_kept()
    }

    /// The same of what the table says of it: what is committed is durable.
    pub(crate) fn keeps(&self, entry: &Entry) -> bool {
        entry.is_committed() || self.segments.is_kept(entry.place())
    }

    pub(crate) fn flush_segments(&self) -> Result<()> {
        self.check_usable()?;
        self.with_ballast(|| self.segments.flush().map_err(|error| self.fail(error))?)
    }

    pub(crate) fn add_fault(&self, hash: BlockHash, entry: &Entry, error: &Error) {
        let place = entry.place();
        self.note_fault(hash, place.segment, place.offset, error.to_string());
    }

    /// Notes what is wrong with a structure, which has no block's name, or with a lost block.
    pub fn add_structure_fault(&self, hash: BlockHash, detail: &str) {
        self.note_fault(hash, 0, 0, detail.to_owned());
    }

    fn note_fault(&self, hash: BlockHash, segment: u32, offset: u32, detail: String) {
        let now = self.clock.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut faults = self.faults.lock();
        let fault = faults.entry(hash).or_insert_with(|| {
            tracing::error!(%hash, segment, offset, detail, "damage found");
            let detail = detail.clone();
            Fault { hash, segment, offset, detail, found_at_unix_s: now, count: 0 }
        });
        fault.count += 1;
        // All that is wrong with structures is one fault: they have no names.
        let new = !fault.detail.contains(&detail) && fault.detail.len() < DETAIL_LEN_MAX;
        if hash.is_zero() && new {
            tracing::error!(detail, "damage found");
            fault.detail = format!("{}; {detail}", fault.detail);
        }
    }

    /// Damage found since the pool was opened, in the order of block names.
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.faults.lock().values().cloned().collect();
        faults.sort_by_key(|fault| fault.hash);
        faults
    }

    /// Figures.
    pub fn stats(&self) -> PoolStats {
        self.correct_room();
        let totals = &self.table.totals;
        let load = |total: &AtomicU64| total.load(Ordering::Relaxed);
        let (live, raw) = (load(&totals.live), load(&totals.raw));
        let (referenced, data_raw) = (load(&totals.referenced), load(&totals.data_raw));
        let ratio = |of: u64, to: u64| if to == 0 { 1.0 } else { of as f64 / to as f64 };
        PoolStats {
            capacity: self.room.total(),
            used: self.used(),
            free: self.room.available(Purpose::Growth),
            reserve: self.room.reserve(),
            live,
            raw,
            referenced,
            blocks: load(&totals.blocks),
            nodes: load(&totals.nodes),
            zero_saved: load(&self.zero_saved),
            dedup_saved: load(&self.dedup_saved),
            compression_ratio: ratio(raw, live),
            dedup_ratio: ratio(referenced, data_raw),
            reclaim_queue: self.dead.lock().len() as u64,
            segments: self.segments.summaries().len() as u64,
            compacted: load(&self.compacted),
            written_over: self.segments.written_over(),
            checkpoints: load(&self.checkpoints),
            table_memory: self.table.memory(),
            cache: self.cache.stats(),
            faults: self.faults.lock().len() as u64,
        }
    }

    /// Drops what the cache holds of an owner's counters, when the owner is gone.
    pub fn forget_owner(&self, owner: u64) {
        self.cache.forget_owner(owner);
    }

    /// Empties the cache, as for a cold start.
    pub fn clear_cache(&self) {
        self.cache.clear();
    }

    /// Stops background work and gives the lock back; running transactions are lost. Dropping the
    /// last reference does the same.
    pub fn close(&self) {
        self.failed.write().get_or_insert_with(|| "the pool is closed".to_owned());
        self.background.stop();
        // A commit that is on its way ends first.
        let _journal = self.journal.lock();
        *self.lock.lock() = None;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("root", &*self.root.read()).finish_non_exhaustive()
    }
}

/// Blocks that are near each other in one segment.
pub(crate) struct Run<'a> {
    pub(crate) segment: u32,
    pub(crate) begin: u32,
    pub(crate) end: u32,
    pub(crate) blocks: &'a [(BlockHash, Entry)],
}

impl Run<'_> {
    /// A block's frame, if it has one, and stored bytes of those of the run.
    pub(crate) fn cut<'b>(&self, bytes: &'b [u8], place: Place) -> Option<(&'b [u8], &'b [u8])> {
        let from = place.offset.checked_sub(self.begin)? as usize;
        let frame_len = place.layout.frame_len();
        let block = bytes.get(from..from + (frame_len + place.stored_len) as usize)?;
        Some(block.split_at(frame_len as usize))
    }
}

/// Cuts blocks in the order of their places into runs of at most `len_max` bytes that are worth one
/// read each.
pub(crate) fn runs(mut rest: &[(BlockHash, Entry)], len_max: u32) -> impl Iterator<Item = Run<'_>> {
    std::iter::from_fn(move || {
        let first = rest.first()?.1.place();
        let (segment, begin) = (first.segment, first.offset);
        let (mut end, mut count) = (first.end(), 0);
        for (_, entry) in rest {
            let place = entry.place();
            // Sorted by place: within a segment nothing comes before the run's begin.
            if place.segment != segment
                || place.offset > end.saturating_add(RUN_GAP)
                || place.end() - begin > len_max
            {
                break;
            }
            end = end.max(place.end());
            count += 1;
        }
        let (blocks, after) = rest.split_at(count.max(1));
        rest = after;
        Some(Run { segment, begin, end, blocks })
    })
}

/// Decodes stored bytes and compares them with the block's name.
pub(crate) fn verify(
    hash: &BlockHash,
    entry: &Entry,
    stored: impl AsRef<[u8]> + Into<Vec<u8>>,
) -> std::result::Result<Vec<u8>, String> {
    let content = decompress(entry.codec(), stored, entry.raw_len())?;
    if name_of(entry.kind(), &content) != *hash {
        return Err("its content has another hash".to_owned());
    }
    Ok(content)
}

/// Makes the directories of a pool.
pub(crate) const DIRS: [&str; 2] = [crate::segments::DIR, journal::DIR];
