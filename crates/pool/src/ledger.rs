//! What references hold: the answer to "what would be given back", without giving it back.
//!
//! [`Pool::freed_by`] releases references on paper, as `commit` and `reclaim` would: an overlay keeps how
//! many references of a block are left, and a node's children are released when it has none. So the cost
//! follows what would be freed, never what stays. [`Reach`] counts the blocks of a changing set of trees;
//! going from a tree to one like it costs their difference.

use crate::pool::Pool;
use crate::{BlockPin, Error, Result};
use offshoot_cache::BlockHashBuilder;
use offshoot_format::segment::BlockKind;
use offshoot_types::BlockHash;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

/// How often an answer is computed again because a commit came in between.
const ATTEMPTS_MAX: u32 = 8;
/// An answer that takes longer than this is good enough: in a busy pool there is always a commit in
/// between.
pub const PAPER_LONG: Duration = Duration::from_millis(250);

impl Pool {
    /// Stored bytes (frames included) that would be freed if these references to committed blocks were
    /// removed, each as often as it is listed. Exact for one root of the pool; if commits never pause,
    /// roughly as of now.
    ///
    /// # Errors
    /// `Missing` if a block is no longer in the pool; whatever reading a node returns.
    pub fn freed_by(&self, references: &[BlockHash]) -> Result<u64> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            // Under the lock no commit is half applied to the table.
            let before = self.durable.journal().root.txg;
            let begun = self.clock.elapsed();
            let freed = self.freed_at_once(references);
            let moved = self.durable.txg() != before;
            let enough = attempts > 2 || self.clock.elapsed() - begun > PAPER_LONG;
            // A commit in between may have removed what was about to be read.
            if !moved || attempts == ATTEMPTS_MAX || (freed.is_ok() && enough) {
                return freed;
            }
        }
    }

    fn freed_at_once(&self, references: &[BlockHash]) -> Result<u64> {
        let mut release = Release { pool: self, left: HashMap::default(), bytes: 0 };
        // What was deleted before still counts as a parent until `reclaim` comes to it.
        for hash in self.dead.all() {
            if self.table.get(&hash).is_some_and(|entry| entry.refs == 0 && !entry.is_dying()) {
                release.run(self.children_of(&hash)?)?;
            }
        }
        release.bytes = 0;
        release.run(references.to_vec())?;
        Ok(release.bytes)
    }

    /// Bytes a block takes in its segment; `None` when it is not in the pool.
    pub fn stored_len(&self, hash: &BlockHash) -> Option<u64> {
        self.table.get(hash).map(|entry| entry.room())
    }

    /// A counter of the blocks that trees reach together.
    pub fn reach(self: &Arc<Self>) -> Reach {
        Reach { pool: self.clone(), trees: HashMap::default(), seen: HashMap::default(), bytes: 0 }
    }
}

/// References being released on paper.
struct Release<'a> {
    pool: &'a Pool,
    /// What is left of the references of blocks that have more than one.
    left: HashMap<BlockHash, u32, BlockHashBuilder>,
    bytes: u64,
}

impl Release<'_> {
    fn run(&mut self, mut stack: Vec<BlockHash>) -> Result<()> {
        while let Some(hash) = stack.pop() {
            if hash.is_zero() {
                continue;
            }
            let entry = self.pool.table.get(&hash).ok_or(Error::Missing(hash))?;
            if entry.refs > 1 {
                let left = self.left.entry(hash).or_insert(entry.refs);
                *left = left.saturating_sub(1);
                if *left > 0 {
                    continue;
                }
            }
            self.bytes += entry.room();
            if entry.kind() == BlockKind::Node {
                stack.extend(self.pool.children_of(&hash)?);
            }
        }
        Ok(())
    }
}

/// The blocks that some trees reach together, each counted once however often it is listed.
///
/// The trees stay in the pool while this lives. Takes about 24 bytes of memory per block. Useless after
/// an error.
pub struct Reach {
    pool: Arc<Pool>,
    trees: HashMap<BlockHash, BlockPin, BlockHashBuilder>,
    /// References among the added trees, by eight bytes of a block's name. In one of 3,700 pools
    /// with 10⁸ blocks two blocks share these bytes, and one of them is not counted.
    seen: HashMap<u64, u32, BlockHashBuilder>,
    bytes: u64,
}

impl Reach {
    /// Adds a committed tree, unless it is already in.
    ///
    /// # Errors
    /// `Missing` if it is not in the pool (any more); whatever reading a node returns.
    pub fn add(&mut self, root: &BlockHash) -> Result<()> {
        if self.trees.contains_key(root) {
            return Ok(());
        }
        self.trees.insert(*root, self.pool.pin(root)?);
        self.walk(root, true)
    }

    /// Removes a tree that was added before.
    ///
    /// # Errors
    /// `Missing` if it was not; whatever reading a node returns.
    pub fn remove(&mut self, root: &BlockHash) -> Result<()> {
        if !self.trees.contains_key(root) {
            return Err(Error::Missing(*root));
        }
        self.walk(root, false)?;
        self.trees.remove(root);
        Ok(())
    }

    /// Stored bytes of the blocks reached, frames included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn walk(&mut self, root: &BlockHash, add: bool) -> Result<()> {
        let mut stack = vec![*root];
        while let Some(hash) = stack.pop() {
            if !self.count(&hash, add) {
                continue;
            }
            let entry = self.pool.table.get(&hash).ok_or(Error::Missing(hash))?;
            let room = entry.room();
            self.bytes = if add { self.bytes + room } else { self.bytes.saturating_sub(room) };
            if entry.kind() == BlockKind::Node {
                stack.extend(self.pool.children_of(&hash)?);
            }
        }
        Ok(())
    }

    /// Counts a reference; whether it was the first (or, taken out, the last).
    fn count(&mut self, hash: &BlockHash, add: bool) -> bool {
        let name = BlockHashBuilder.hash_one(hash);
        let count = self.seen.entry(name).or_default();
        if add {
            *count += 1;
            return *count == 1;
        }
        *count = count.saturating_sub(1);
        let last = *count == 0;
        if last {
            self.seen.remove(&name);
        }
        last
    }
}
