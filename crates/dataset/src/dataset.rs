//! One tree of files.
//!
//! Locks, in the order in which they are taken:
//! 1. `commit`: one commit at a time; held during the whole commit.
//! 2. `namespace`: one change of names at a time; lookups and listings do not take it.
//! 3. `gate`: shared by every operation while it changes memory, exclusive for the moment in which
//!    a commit ends the epoch. Nobody touches the disk or waits for another operation while holding
//!    it, so a commit never delays operations longer than that moment.
//! 4. an inode's state (two: by ascending number), then `queue` or `dirty_inodes`.
//!
//! Readers take an inode's state only. The committed tree they find there may be replaced and
//! reclaimed before they have read it. The pool then answers `Missing`, and they look again
//! ([`Dataset::after_missing`]).

mod admission;
mod changes;
mod commit;
mod comparing;
mod copying;
mod direct;
mod durability;
mod files;
mod holes;
mod names;
mod occasion;
mod rename;
mod replay;
mod requests;
mod survival;
mod xattrs;

use crate::blocks::PoolReader;
use crate::ground::Ground;
use crate::inode::{Inode, InodeState, to_timestamp};
use crate::inode_table::InodeTable;
use crate::queue::Queue;
use crate::quota::Quota;
use crate::{Attr, Caching, Error, Result, SpaceUse, tree};
use admission::Importance;
use commit::CommitState;
use offshoot_direct::Table;
use offshoot_format::directory::DatasetRecord;
use offshoot_format::inode::{InodeRecord, Timestamp, inode_key};
use offshoot_intent_log::{Slots, VolatileLog};
use offshoot_types::{BLOCK_SIZE, BlockHash, DatasetId, Ino};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
pub use requests::Requested;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The largest length of a file, in bytes: 16 TiB.
pub const FILE_SIZE_MAX: u64 = 1 << 44;

/// Unused inodes that are kept in memory per dataset.
const IDLE_INODES_MAX: usize = 65_536;

/// The committed tree.
#[derive(Clone, Copy)]
struct Committed {
    root: BlockHash,
    /// Counts commits since the dataset was opened.
    generation: u64,
}

/// One tree of files, addressed by inode number; [`Ino::ROOT`] is its root directory.
///
/// All methods may be called from any thread. Changes are in memory until [`Dataset::sync`] or a
/// commit; after a crash the dataset is a prefix of the sequence of operations that contains at
/// least everything that was synced.
pub struct Dataset {
    id: DatasetId,
    ground: Arc<Ground>,
    reader: PoolReader,
    commit: Mutex<CommitState>,
    namespace: Mutex<()>,
    /// The epoch; see `inode.rs`.
    gate: RwLock<u64>,
    inodes: InodeTable,
    /// Inodes that operations of this epoch changed.
    dirty_inodes: Mutex<Vec<Arc<Inode>>>,
    queue: Mutex<Queue>,
    /// What outlives this process; see `survival.rs`.
    volatile: RwLock<Option<Arc<VolatileLog>>>,
    /// By which its servers read files without asking.
    direct: RwLock<Option<Arc<Table>>>,
    /// Those of the requests under way; see `requests.rs`.
    slots: Slots,
    /// Inodes kept for users that an earlier engine had.
    held: Mutex<Vec<Ino>>,
    /// Sequence of the last log record; held while records are appended, to keep their order.
    log_order: Mutex<u64>,
    committed: RwLock<Committed>,
    next_ino: AtomicU64,
    inode_count: AtomicU64,
    /// Data blocks of all files at the last commit.
    blocks: AtomicU64,
    /// Data blocks that commits have written since it was opened.
    written: AtomicU64,
    /// Memory of all changed layers, in bytes.
    weight: AtomicU64,
    /// When the first change after the start of the last commit happened, in ms of the clock, plus
    /// 1; 0: nothing changed.
    dirty_since_ms: AtomicU64,
    deleted: AtomicBool,
    replaying: AtomicBool,
    importance: Importance,
    caching: Mutex<Caching>,
    /// Bytes by which files grew without content so far; see `admission.rs`.
    promised: AtomicU64,
    quota: RwLock<Option<Arc<Quota>>>,
    /// One that it has together with others.
    common_quota: RwLock<Option<Arc<Quota>>>,
}

impl Dataset {
    /// A dataset as its last commit left it.
    pub(crate) fn from_record(
        id: DatasetId,
        ground: Arc<Ground>,
        record: &DatasetRecord,
        replaying: bool,
    ) -> Arc<Dataset> {
        let reader = PoolReader { pool: Arc::clone(&ground.pool), owner: id.0 };
        let queue_max = (ground.options.log_file_size as usize / 4 * 3).min(32 << 20);
        Arc::new(Dataset {
            id,
            ground,
            reader,
            commit: Mutex::default(),
            namespace: Mutex::default(),
            gate: RwLock::new(1),
            inodes: InodeTable::default(),
            dirty_inodes: Mutex::default(),
            queue: Mutex::new(Queue::new(record.applied, queue_max)),
            volatile: RwLock::default(),
            direct: RwLock::default(),
            slots: Slots::default(),
            held: Mutex::default(),
            log_order: Mutex::new(0),
            committed: RwLock::new(Committed { root: record.tree.root, generation: 0 }),
            next_ino: AtomicU64::new(record.tree.next_ino),
            inode_count: AtomicU64::new(record.tree.inodes),
            blocks: AtomicU64::new(record.tree.blocks),
            written: AtomicU64::new(0),
            weight: AtomicU64::new(0),
            dirty_since_ms: AtomicU64::new(0),
            deleted: AtomicBool::new(false),
            replaying: AtomicBool::new(replaying),
            importance: Importance::default(),
            caching: Mutex::default(),
            promised: AtomicU64::new(0),
            quota: RwLock::default(),
            common_quota: RwLock::default(),
        })
    }

    /// Which dataset this is.
    pub fn id(&self) -> DatasetId {
        self.id
    }

    /// The attributes of an inode.
    pub fn getattr(&self, ino: Ino) -> Result<Attr> {
        let inode = self.inode(ino)?;
        let state = inode.state.read();
        if state.gone { Err(Error::NotFound) } else { Ok(inode.attr(&state)) }
    }

    /// Room and use.
    pub fn space(&self) -> Result<SpaceUse> {
        let stats = self.ground.pool.stats();
        Ok(SpaceUse {
            capacity: stats.capacity,
            free: self.ground.growth_room(),
            inodes: self.inode_count.load(Ordering::Relaxed),
            logical: self.logical_bytes(),
        })
    }

    /// Bytes allocated by files at the last commit.
    pub(crate) fn logical_bytes(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed) * BLOCK_SIZE as u64
    }

    /// What becomes in the cache of what is committed from now on: content that nobody reads soon would evict what others
    /// read.
    pub fn cache_commits(&self, caching: Caching) {
        *self.caching.lock() = caching;
    }

    /// Data blocks that commits have written since it was opened; one that changed again counts again.
    pub fn written_blocks(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Memory of changed layers, in bytes.
    pub fn dirty_bytes(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }

    /// For how long something has been uncommitted, in ms; `None`: nothing is.
    pub(crate) fn dirty_for_ms(&self, now_ms: u64) -> Option<u64> {
        match self.dirty_since_ms.load(Ordering::Relaxed) {
            0 => None,
            since => Some((now_ms + 1).saturating_sub(since)),
        }
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// Ends all use: from here on no operation runs or starts. `false` undoes this.
    pub(crate) fn set_deleted(&self, deleted: bool) {
        let _gate = self.gate.write();
        self.deleted.store(deleted, Ordering::Release);
    }

    /// Waits for a running commit and gives back the memory of a deleted dataset.
    pub(crate) fn forget(&self) {
        let mut commit = self.commit.lock();
        commit.frozen.clear();
        self.dirty_inodes.lock().clear();
        self.inodes.clear();
        self.queue.lock().give_up_log();
        self.dirty_since_ms.store(0, Ordering::Relaxed);
        let weight = self.weight.swap(0, Ordering::Relaxed);
        self.ground.weight.fetch_sub(weight, Ordering::Relaxed);
        self.redeem_promise(u64::MAX);
        self.ground.progress.announce();
    }

    fn now(&self) -> Timestamp {
        to_timestamp(self.ground.clock.now())
    }

    fn is_replaying(&self) -> bool {
        self.replaying.load(Ordering::Relaxed)
    }

    fn check_usable(&self) -> Result<()> {
        if self.is_deleted() {
            return Err(Error::Stale);
        }
        if self.ground.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Starts changing memory: the guard's value is the epoch.
    fn enter(&self) -> Result<RwLockReadGuard<'_, u64>> {
        let gate = self.gate.read();
        self.check_usable()?;
        Ok(gate)
    }

    /// An inode, read from the tree when it is not in memory. It may be gone; users of its state
    /// check that.
    fn inode(&self, ino: Ino) -> Result<Arc<Inode>> {
        if let Some(inode) = self.inodes.get(ino) {
            return Ok(inode);
        }
        loop {
            self.check_usable()?;
            let committed = *self.committed.read();
            let value = match tree::get(&self.reader, committed.root, &inode_key(ino)) {
                Err(Error::Missing(hash)) => {
                    self.after_missing(committed, hash)?;
                    continue;
                }
                other => other?,
            };
            let is_current = || self.committed.read().generation == committed.generation;
            let Some(value) = value else {
                match self.inodes.get(ino) {
                    Some(inode) => return Ok(inode),
                    None if is_current() => return Err(Error::NotFound),
                    None => continue,
                }
            };
            let inode = Inode::from_record(ino, InodeRecord::decode(&value)?)?;
            if let Some(inode) = self.inodes.insert_loaded(inode, is_current) {
                return Ok(inode);
            }
        }
    }

    /// Called when a block of a committed tree was not in the pool. That is fine (look again) if a
    /// commit has since replaced that tree, and an error otherwise.
    fn after_missing(&self, seen: Committed, hash: BlockHash) -> Result<()> {
        self.wait_for_commit()?;
        if self.committed.read().generation == seen.generation {
            return Err(Error::Missing(hash));
        }
        Ok(())
    }

    /// Waits until a running commit has updated all inodes.
    fn wait_for_commit(&self) -> Result<()> {
        drop(self.commit.lock());
        self.check_usable()
    }

    /// Changes an inode's state in an epoch: freezes what an older epoch left, records the inode
    /// for the next commit and accounts for the memory.
    fn change<R>(
        &self,
        epoch: u64,
        inode: &Arc<Inode>,
        state: &mut InodeState,
        apply: impl FnOnce(&mut InodeState) -> R,
    ) -> R {
        let before = state.weight();
        if state.dirty_epoch != epoch {
            if state.dirty_epoch != 0 {
                state.freeze(inode.kind);
            }
            state.dirty_epoch = epoch;
            self.dirty_inodes.lock().push(Arc::clone(inode));
            self.note_dirty();
        }
        let answer = apply(state);
        self.account(before, state.weight());
        answer
    }

    fn note_dirty(&self) {
        if self.dirty_since_ms.load(Ordering::Relaxed) == 0 {
            self.dirty_since_ms.store(self.ground.now_ms() + 1, Ordering::Relaxed);
        }
    }

    fn account(&self, before: u64, after: u64) {
        // Wrapping addition of the difference: the sums never go below zero.
        let difference = after.wrapping_sub(before);
        self.weight.fetch_add(difference, Ordering::Relaxed);
        self.ground.weight.fetch_add(difference, Ordering::Relaxed);
    }
}
