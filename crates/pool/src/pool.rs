//! The pool's interface.

use crate::{BlockData, Fault, PoolOptions, PoolStats, Result, ScrubReport};
use offshoot_format::DecodeError;
use offshoot_os::Clock;
use offshoot_os::disk::Disk;
use offshoot_types::{BlockHash, Txg};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Tells the pool which blocks a node refers to.
pub trait NodeChildren: Send + Sync {
    /// The children of a node, as often as it lists them; holes ([`BlockHash::ZERO`]) are ignored.
    fn children(&self, node: &[u8]) -> std::result::Result<Vec<BlockHash>, DecodeError>;
}

/// What the last durable commit said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Counts commits; 0 in a new pool.
    pub txg: Txg,
    /// The root node; [`BlockHash::ZERO`] in a new pool.
    pub hash: BlockHash,
    /// Bytes given to [`Pool::commit`]; opaque to the pool.
    pub extra: Vec<u8>,
}

/// An open pool.
pub struct Pool {
    _private: (),
}

/// Keeps a block, and for a node everything below it, from being reclaimed while it lives.
///
/// A pin is not durable. Hold one while using hashes of a tree that a commit may replace meanwhile
/// (a reader of an old root, or blocks about to be shared into another tree). Do not hold a pin on
/// the old root across the commit that replaces it without need: the commit then cannot net out
/// what both share, and writes more.
pub struct BlockPin {
    hash: BlockHash,
}

impl BlockPin {
    /// The pinned block.
    pub fn hash(&self) -> BlockHash {
        self.hash
    }
}

/// Blocks written for a commit to come. Methods may be called from several threads.
///
/// Dropping it without [`Pool::commit`] undoes everything.
pub struct Transaction {
    _private: (),
}

impl Transaction {
    /// Stores a data block: [`BlockHash::ZERO`] for zeros only (nothing stored), the same hash as
    /// before for content already stored. At most [`crate::BLOCK_LEN_MAX`] bytes. Nothing is durable
    /// before the commit; the block can be read at once.
    ///
    /// # Errors
    /// `Full` when the reserve would be touched.
    pub fn write_data(&self, content: &[u8]) -> Result<BlockHash> {
        let _ = content;
        todo!()
    }

    /// Stores a node. Its children must be in the pool: written or adopted by this transaction, or
    /// part of a tree that is committed (they are then held until this transaction ends). The hash
    /// differs from that of a data block with the same bytes.
    ///
    /// # Errors
    /// `Missing` names a child that is not in the pool; `Full` as for data; `Decode` when the bytes
    /// are not a node.
    pub fn write_node(&self, node: &[u8]) -> Result<BlockHash> {
        let _ = node;
        todo!()
    }
}

impl Pool {
    /// Makes a new, empty pool in an empty (or pool-less) directory.
    ///
    /// # Errors
    /// `Exists` when there is a pool already.
    pub fn create(disk: &dyn Disk, options: &PoolOptions) -> Result<()> {
        let _ = (disk, options);
        todo!()
    }

    /// Opens a pool at its last durable commit and locks it.
    ///
    /// # Errors
    /// `NoPool`, `InUse`, `UnknownFormat`, `DamagedStructure`.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: &PoolOptions,
        nodes: Arc<dyn NodeChildren>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Pool>> {
        let _ = (disk, options, nodes, clock);
        todo!()
    }

    /// The last durable root.
    pub fn root(&self) -> Root {
        todo!()
    }

    /// A block's content, verified against its name when it comes from disk. `owner` is whom the hit
    /// or miss is counted for (a dataset's number). [`BlockHash::ZERO`] is not a block: `Missing`.
    ///
    /// # Errors
    /// `Damaged` (also kept in [`Pool::faults`]), `Missing` when nothing refers to it any more, `Io`.
    pub fn read(&self, hash: &BlockHash, owner: u64) -> Result<BlockData> {
        let _ = (hash, owner);
        todo!()
    }

    /// Brings blocks into the cache, neighbours on disk with one read. Holes, cached, missing and
    /// damaged blocks are passed over. Runs on the caller's thread; not counted as hits or misses.
    pub fn prefetch(&self, hashes: &[BlockHash], owner: u64) {
        let _ = (hashes, owner);
        todo!()
    }

    /// Starts a transaction. Any number may run at a time.
    pub fn begin(self: &Arc<Self>) -> Transaction {
        todo!()
    }

    /// Starts a transaction that may take from the reserve: for deletions, and for the commit of data
    /// that was acknowledged before the pool filled up (check [`Pool::available`] when accepting it).
    pub fn begin_freeing(self: &Arc<Self>) -> Transaction {
        todo!()
    }

    /// Makes `new_root` (a node written by `transaction`, the present root, or
    /// [`BlockHash::ZERO`]) and `extra` (at most [`crate::EXTRA_LEN_MAX`] bytes) durable, with all that
    /// the new root reaches. Commits are serialised; the caller must have derived `new_root` from the
    /// present root, so it serialises the step from reading the root to here.
    ///
    /// # Errors
    /// `Full` and `Io` before the root was touched leave the pool as it was, the transaction undone.
    /// After a failed flush every later commit is `Failed`.
    pub fn commit(
        &self,
        transaction: Transaction,
        new_root: BlockHash,
        extra: &[u8],
    ) -> Result<Txg> {
        let _ = (transaction, new_root, extra);
        todo!()
    }

    /// Pins a committed block.
    ///
    /// # Errors
    /// `Missing` when it is not in the pool, or not committed.
    pub fn pin(self: &Arc<Self>, hash: &BlockHash) -> Result<BlockPin> {
        let _ = hash;
        todo!()
    }

    /// Stored bytes that only this committed node reaches: what its deletion would give back.
    pub fn exclusive_bytes(&self, hash: &BlockHash) -> Result<u64> {
        let _ = hash;
        todo!()
    }

    /// Bytes that writers may still take before they get `Full`. Cheap.
    pub fn available(&self) -> u64 {
        todo!()
    }

    /// Figures.
    pub fn stats(&self) -> PoolStats {
        todo!()
    }

    /// Damage found since the pool was opened.
    pub fn faults(&self) -> Vec<Fault> {
        todo!()
    }

    /// One bounded piece of background work: releases children of dead nodes, punches holes, deletes
    /// dead segments, compacts one segment, writes a checkpoint when due. Whether more is left.
    pub fn reclaim_step(&self) -> Result<bool> {
        todo!()
    }

    /// Reads and verifies every block at most `bytes_per_s` fast, until done or `stop` is set.
    pub fn scrub(&self, bytes_per_s: u64, stop: &AtomicBool) -> Result<ScrubReport> {
        let _ = (bytes_per_s, stop);
        todo!()
    }

    /// Stops background work and gives the lock back; running transactions are lost. Dropping the
    /// last reference does the same.
    pub fn close(&self) {
        todo!()
    }
}
