//! The pool's parts and its reading side.

use crate::background::Background;
use crate::block::{NodeChildren, verify};
use crate::dead_nodes::DeadNodes;
use crate::durable::{Durable, Root};
use crate::faults::Faults;
use crate::invariants;
use crate::reads::Reads;
use crate::segments::Segments;
use crate::space::Space;
use crate::table::{Entry, LOST, Table};
use crate::{BlockData, Error, Fault, PoolOptions, PoolStats, Purpose, Result, Seals};
use offshoot_cache::BlockCache;
use offshoot_os::Clock;
use offshoot_os::disk::{Disk, DiskLock};
use offshoot_types::{BlockHash, Latency, LatencyCounts};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that writers did not have to store, since the pool was created.
pub(crate) struct Savings {
    /// Of zeros.
    pub(crate) zero: AtomicU64,
    /// Of what was there already.
    pub(crate) dedup: AtomicU64,
}

/// What compaction keeps.
#[derive(Default)]
pub(crate) struct Compaction {
    /// Held while a segment is compacted.
    pub(crate) alone: Mutex<()>,
    /// Bytes moved since the pool was opened.
    pub(crate) moved: AtomicU64,
}

/// An open pool: its parts, each of which owns its state. What needs several of them is an `impl Pool` in the
/// file about it: `transaction`, `commit`, `reclaim`, `scrub`, `heal`, `ledger`, `read_many`, `recovery`.
///
/// Locks, in the order they are taken: the journal (one commit at a time), a transaction's blocks, a
/// part of the table, the appender, a segment. A read that hits the cache takes none of them.
pub struct Pool {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) seals: Seals,
    pub(crate) options: PoolOptions,
    pub(crate) nodes: Arc<dyn NodeChildren>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) table: Table,
    pub(crate) segments: Segments,
    pub(crate) cache: BlockCache,
    pub(crate) durable: Durable,
    pub(crate) space: Space,
    pub(crate) dead: DeadNodes,
    pub(crate) faults: Faults,
    pub(crate) reads: Reads,
    pub(crate) commits: Latency,
    pub(crate) savings: Savings,
    pub(crate) compaction: Compaction,
    pub(crate) lock: Mutex<Option<Box<dyn DiskLock>>>,
    pub(crate) background: Background,
}

impl Pool {
    /// The last durable root.
    pub fn root(&self) -> Root {
        self.durable.root()
    }

    /// What tells this pool from all others: random, and the same for its whole life.
    pub fn id(&self) -> [u8; 16] {
        self.segments.pool_id()
    }

    /// What seals and opens whatever else belongs to the pool.
    pub fn seals(&self) -> &Seals {
        &self.seals
    }

    /// A block's content, verified against its name when it comes from disk. `owner` is the
    /// dataset's number that the hit or miss is counted for. [`BlockHash::ZERO`] is not a block:
    /// `Missing`.
    ///
    /// # Errors
    /// `Damaged` (also kept in [`Pool::faults`]), `Missing` when nothing refers to it any more, `Io`.
    pub fn read(&self, hash: &BlockHash, owner: u64) -> Result<BlockData> {
        match self.read_cached(hash, owner) {
            Some(block) => Ok(block),
            None => {
                let load = || self.reads.urgently(|| self.load(hash));
                self.cache.get_or_load(hash, owner, load)
            }
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
            let began = self.reads.begin();
            let read = self.segments.read(entry.place());
            self.reads.note(began);
            let error = match read {
                Ok(stored) => match verify(hash, &entry, stored) {
                    Ok(content) => return Ok(BlockData::new(content)),
                    Err(detail) => Error::Damaged { hash: *hash, detail },
                },
                Err(error) => match error.kind() {
                    std::io::ErrorKind::UnexpectedEof
                    | std::io::ErrorKind::NotFound
                    | std::io::ErrorKind::InvalidData => {
                        Error::Damaged { hash: *hash, detail: error.to_string() }
                    }
                    _ => Error::io(format!("read block {hash}"), &error),
                },
            };
            // Compaction may have moved it, or reclaim dropped it, since its place was looked up.
            let now = self.table.get(hash).ok_or(Error::Missing(*hash))?;
            if now.place() == entry.place() {
                self.faults.add(*hash, &entry, &error);
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

    /// As [`Pool::read`], but leaves the cache as it is, for callers that read much once.
    ///
    /// # Errors
    /// As [`Pool::read`].
    pub fn read_aside(&self, hash: &BlockHash) -> Result<BlockData> {
        self.cache.peek(hash).map_or_else(|| self.load(hash), Ok)
    }

    /// Bytes that may still be taken for a purpose. Cheap: an estimate that only shrinks between
    /// commits.
    pub fn available(&self, purpose: Purpose) -> u64 {
        self.space.available(purpose)
    }

    /// Bytes that may still be taken for a purpose, according to the device now.
    pub fn available_now(&self, purpose: Purpose) -> u64 {
        self.space.correct(&self.segments);
        self.space.available(purpose)
    }

    /// Bytes that are free on the device, the ballast not counted.
    pub fn device_free(&self) -> u64 {
        self.space.device_free()
    }

    /// Bytes kept for what must continue when the pool is full.
    pub fn reserve(&self) -> u64 {
        self.space.reserve()
    }

    /// Frees a step of the ballast, before something is written that must be. Returns whether there
    /// was one.
    pub fn release_ballast(&self) -> bool {
        self.space.release_ballast()
    }

    /// Whether the flush that a commit began with has made a block durable.
    pub(crate) fn is_flushed(&self, hash: &BlockHash) -> bool {
        // Another transaction may have stored it again since that flush, if it was not reliable.
        let flushed = |entry| invariants::is_durable(&self.segments, &entry);
        // The usual case: no look-up per block of a commit.
        self.segments.all_reliable() || self.table.get(hash).is_none_or(flushed)
    }

    /// Whether a flush can make a block durable, or already has: what is committed is durable.
    pub(crate) fn is_reliable(&self, entry: &Entry) -> bool {
        entry.is_committed() || self.segments.is_reliable(entry.place())
    }

    pub(crate) fn flush_segments(&self) -> Result<()> {
        self.durable.check_usable()?;
        let flush = || self.segments.flush().map_err(|error| self.durable.fail(error))?;
        self.space.with_ballast(flush)
    }

    /// Records what is wrong with a structure, which has no block name, or with a lost block.
    pub fn add_structure_fault(&self, hash: BlockHash, detail: &str) {
        self.faults.add_structure(hash, detail);
    }

    /// Damage found since the pool was opened, in the order of block names.
    pub fn faults(&self) -> Vec<Fault> {
        self.faults.all()
    }

    /// Figures.
    pub fn stats(&self) -> PoolStats {
        self.space.correct(&self.segments);
        let totals = &self.table.totals;
        let load = |total: &AtomicU64| total.load(Ordering::Relaxed);
        let (live, raw) = (load(&totals.live), load(&totals.raw));
        let (referenced, data_raw) = (load(&totals.referenced), load(&totals.data_raw));
        let ratio = |of: u64, to: u64| if to == 0 { 1.0 } else { of as f64 / to as f64 };
        PoolStats {
            capacity: self.space.total(),
            used: self.space.used(&self.segments),
            free: self.space.available(Purpose::Growth),
            reserve: self.space.reserve(),
            live,
            raw,
            referenced,
            blocks: load(&totals.blocks),
            nodes: load(&totals.nodes),
            zero_saved: load(&self.savings.zero),
            dedup_saved: load(&self.savings.dedup),
            compression_ratio: ratio(raw, live),
            dedup_ratio: ratio(referenced, data_raw),
            reclaim_queue: self.dead.len() as u64,
            segments: self.segments.summaries().len() as u64,
            compacted: load(&self.compaction.moved),
            written_over: self.segments.written_over(),
            checkpoints: self.durable.checkpoints(),
            table_memory: self.table.memory(),
            cache: self.cache.stats(),
            faults: self.faults.len() as u64,
        }
    }

    /// How long reads of the device for blocks that were not in memory took, since the pool was opened.
    pub fn read_latency(&self) -> LatencyCounts {
        self.reads.latency()
    }

    /// How long commits took that succeeded, with their wait for each other, since the pool was opened.
    pub fn commit_latency(&self) -> LatencyCounts {
        self.commits.counts()
    }

    /// Drops an owner's counters in the cache when the owner is gone.
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
        self.durable.refuse(&"the pool is closed");
        self.background.stop();
        // A running commit ends first.
        let _journal = self.durable.journal();
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
        f.debug_struct("Pool").field("root", &self.durable.root()).finish_non_exhaustive()
    }
}
