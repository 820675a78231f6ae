//! Writes blocks for a coming commit.

use crate::block::{BLOCK_LEN_MAX, is_zero, name_of};
use crate::compress::compress;
use crate::pool::Pool;
use crate::table::{Entry, Move, Place, Unpinned};
use crate::{BlockData, Error, Purpose, Result};
use offshoot_cache::BlockHashBuilder;
use offshoot_format::segment::{BlockKind, Codec, Frame};
use offshoot_types::BlockHash;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a node refers to that was not committed when it was pinned; zero names are left out.
#[derive(Clone)]
pub(crate) enum Children {
    /// These.
    All(Box<[BlockHash]>),
    /// What another node refers to, with some exceptions.
    Like(Difference),
}

/// How a node differs from a committed one, which the transaction holds.
#[derive(Clone)]
pub(crate) struct Difference {
    pub(crate) like: BlockHash,
    pub(crate) added: Box<[BlockHash]>,
    pub(crate) removed: Box<[BlockHash]>,
}

/// A block's content as it is to be stored.
pub(crate) type Packed<'a> = (Codec, &'a [u8]);

/// What becomes of blocks in the cache when they are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Caching {
    /// They are cached, and are the first to go unless somebody reads them.
    #[default]
    Usual,
    /// Data blocks are not cached: nobody reads them soon.
    Past,
    /// They are cached as if they had been read: somebody will.
    Kept,
}

/// Blocks written for a coming commit. Methods may be called from several threads.
///
/// Dropping it without [`Pool::commit`] undoes everything.
pub struct Transaction {
    pub(crate) pool: Arc<Pool>,
    purpose: Purpose,
    caching: Caching,
    /// Every block this transaction pinned, once; with children: a node no commit has counted yet.
    held: Mutex<HashMap<BlockHash, Option<Children>, BlockHashBuilder>>,
    nodes_written: AtomicUsize,
}

impl Transaction {
    pub(crate) fn new(pool: Arc<Pool>, purpose: Purpose) -> Transaction {
        let nodes_written = AtomicUsize::new(0);
        let caching = Caching::default();
        Transaction { pool, purpose, caching, held: Mutex::default(), nodes_written }
    }

    /// Says what becomes of the blocks it stores.
    #[must_use]
    pub fn cached(mut self, caching: Caching) -> Transaction {
        self.caching = caching;
        self
    }

    /// Stores a data block: [`BlockHash::ZERO`] for zeros only (nothing stored), the same hash as
    /// before for content already stored. At most [`BLOCK_LEN_MAX`] bytes. Nothing is durable
    /// before the commit; the block can be read immediately.
    ///
    /// # Errors
    /// `Full` if the reserve would be touched.
    pub fn write_data(&self, content: &[u8]) -> Result<BlockHash> {
        self.write_shared(&BlockData::new(content))
    }

    /// As [`Transaction::write_data`], of what is read again soon: it is cached also [past the cache](Caching::Past).
    ///
    /// # Errors
    /// As there.
    pub fn write_cached(&self, content: &[u8]) -> Result<BlockHash> {
        let content = BlockData::new(content);
        let hash = self.write_shared(&content)?;
        if !hash.is_zero() {
            self.pool.cache.insert(hash, content);
        }
        Ok(hash)
    }

    /// As [`Transaction::write_data`], of content that the cache can share.
    ///
    /// # Errors
    /// As there.
    pub fn write_shared(&self, content: &BlockData) -> Result<BlockHash> {
        if is_zero(content) {
            self.pool.savings.zero.fetch_add(content.len() as u64, Ordering::Relaxed);
            return Ok(BlockHash::ZERO);
        }
        self.write(BlockKind::Data, content, None)
    }

    /// Stores a node. Its children must be in the pool: written by this transaction, or part of a
    /// tree that is committed (they are then held until this transaction ends). The hash differs from
    /// that of a data block with the same bytes.
    ///
    /// # Errors
    /// `Missing` names a child that is not in the pool; `Full` as for data; `Decode` when the bytes
    /// are not a node.
    pub fn write_node(&self, node: &[u8]) -> Result<BlockHash> {
        let mut children = self.pool.nodes.children(node)?;
        children.retain(|child| !child.is_zero());
        self.hold_children(&children)?;
        self.nodes_written.fetch_add(1, Ordering::Relaxed);
        let children = Children::All(children.into_boxed_slice());
        self.write(BlockKind::Node, &BlockData::new(node), Some(children))
    }

    /// As [`Transaction::write_node`], cheaper where most children are those of `like`, the committed
    /// node that it replaces: only the others are held, and counted by the commit.
    ///
    /// # Errors
    /// As [`Transaction::write_node`].
    pub fn write_node_like(&self, like: &BlockHash, node: &[u8]) -> Result<BlockHash> {
        let Some(difference) = self.difference(like, node)? else { return self.write_node(node) };
        self.hold_children(&difference.added)?;
        self.nodes_written.fetch_add(1, Ordering::Relaxed);
        self.write(BlockKind::Node, &BlockData::new(node), Some(Children::Like(difference)))
    }

    /// How a node differs from a committed one, child by child; that one is held from then on, and
    /// with it what both refer to. `None` where they cannot be compared.
    fn difference(&self, like: &BlockHash, node: &[u8]) -> Result<Option<Difference>> {
        if like.is_zero() || !self.hold_committed_node(like) {
            return Ok(None);
        }
        let now = self.pool.nodes.children(node)?;
        let before = self.pool.nodes.children(&self.pool.read_aside(like)?)?;
        if now.len() != before.len() {
            return Ok(None);
        }
        // A block of the same name may still be new: it was lost, and this transaction restored it.
        let held = self.held.lock();
        let differs = |before: &BlockHash, now: &BlockHash| before != now || held.contains_key(now);
        let changed = || before.iter().zip(&now).filter(|(before, now)| differs(before, now));
        let present = |hash: &BlockHash| (!hash.is_zero()).then_some(*hash);
        let added = changed().filter_map(|(_, now)| present(now)).collect();
        let removed = changed().filter_map(|(before, _)| present(before)).collect();
        Ok(Some(Difference { like: *like, added, removed }))
    }

    fn hold_committed_node(&self, hash: &BlockHash) -> bool {
        let mut held = self.held.lock();
        if let Some(children) = held.get(hash) {
            return children.is_none();
        }
        let Some(entry) = self.pool.table.pin_stored(hash) else { return false };
        let settled = entry.is_committed() && !entry.is_dying() && entry.kind() == BlockKind::Node;
        if settled {
            held.insert(*hash, None);
        } else {
            drop(held);
            self.pool.unpin(hash);
        }
        settled
    }

    fn write(
        &self,
        kind: BlockKind,
        content: &BlockData,
        children: Option<Children>,
    ) -> Result<BlockHash> {
        let len = content.len();
        if len == 0 || len > BLOCK_LEN_MAX {
            return Err(Error::TooLarge { what: "a block", len, max: BLOCK_LEN_MAX });
        }
        self.write_named(name_of(kind, content), (kind, content), None, children)
    }

    /// Stores a block whose name is known; `packed` is its content as it is to be stored, if that is.
    pub(crate) fn write_named(
        &self,
        hash: BlockHash,
        (kind, content): (BlockKind, &BlockData),
        packed: Option<Packed<'_>>,
        children: Option<Children>,
    ) -> Result<BlockHash> {
        let len = content.len();
        let saved = || self.pool.savings.dedup.fetch_add(len as u64, Ordering::Relaxed);
        if self.held.lock().contains_key(&hash) {
            saved();
            return Ok(hash);
        }
        if let Some(entry) = self.pool.table.pin_stored(&hash) {
            saved();
            self.hold(hash, entry, children);
            if !self.pool.is_reliable(&entry) {
                self.store_again(hash, &entry, content)?;
            }
            if self.pool.faults.contains(&hash) && !self.pool.heal(&hash, content)? {
                tracing::warn!(%hash, "a damaged block was written again but could not be replaced");
            }
            return Ok(hash);
        }
        let (entry, found) = self.store(hash, kind, content, packed)?;
        if found {
            saved();
        }
        self.hold(hash, entry, children);
        Ok(hash)
    }

    /// Compresses and appends a block; returns its entry, pinned, and whether another thread was first.
    fn store(
        &self,
        hash: BlockHash,
        kind: BlockKind,
        content: &BlockData,
        packed: Option<Packed<'_>>,
    ) -> Result<(Entry, bool)> {
        let (place, codec) = match packed {
            Some(packed) => {
                self.pool.append_packed(hash, kind, content.len(), packed, self.purpose)?
            }
            None => self.pool.append_block(hash, kind, content, self.purpose)?,
        };
        let new = Entry::uncommitted(place, content.len() as u32, kind, codec);
        let (entry, found) = self.pool.table.insert_or_pin(hash, new);
        if found {
            self.pool.segments.release(place);
        } else {
            self.cache(hash, kind, content);
        }
        Ok((entry, found))
    }

    fn cache(&self, hash: BlockHash, kind: BlockKind, content: &BlockData) {
        let cache = &self.pool.cache;
        match self.caching {
            Caching::Past if kind != BlockKind::Node => {}
            Caching::Kept => cache.insert_as_read(hash, content.clone()),
            _ => cache.insert(hash, content.clone()),
        }
    }

    /// Appends again a block that this transaction holds, because a flush failed where it is.
    fn store_again(&self, hash: BlockHash, entry: &Entry, content: &[u8]) -> Result<()> {
        let (to, codec) = self.pool.append_block(hash, entry.kind(), content, self.purpose)?;
        let from = entry.place();
        let relocated = self.pool.table.relocate(&hash, &Move { from, to, codec });
        self.pool.segments.release(if relocated { from } else { to });
        Ok(())
    }

    /// Takes over a pin on a block.
    fn hold(&self, hash: BlockHash, entry: Entry, children: Option<Children>) {
        // Pinned and committed, it stays so until this transaction ends.
        let settled = entry.is_committed() && !entry.is_dying();
        let children = if settled { None } else { children };
        let twice = {
            let mut held = self.held.lock();
            match held.entry(hash) {
                // Another thread of this transaction, or a node that lists it, holds it already.
                std::collections::hash_map::Entry::Occupied(mut occupied) => {
                    if occupied.get().is_none() {
                        occupied.insert(children);
                    }
                    true
                }
                std::collections::hash_map::Entry::Vacant(vacant) => {
                    vacant.insert(children);
                    false
                }
            }
        };
        if twice {
            self.pool.unpin(&hash);
        }
    }

    /// Pins a node's children, so that no other commit or abort removes them.
    pub(crate) fn hold_children(&self, children: &[BlockHash]) -> Result<()> {
        let mut held = self.held.lock();
        for child in children {
            if held.contains_key(child) {
                continue;
            }
            let entry = self.pool.table.pin(child).ok_or(Error::Missing(*child))?;
            let settled = entry.is_committed() && !entry.is_dying();
            if !settled && entry.kind() == BlockKind::Node {
                // Another transaction's node: what it refers to is not known here.
                drop(held);
                self.pool.unpin(child);
                return Err(Error::Missing(*child));
            }
            held.insert(*child, None);
        }
        Ok(())
    }

    /// The children of a node this transaction wrote.
    pub(crate) fn children(&self, hash: &BlockHash) -> Option<Children> {
        self.held.lock().get(hash)?.clone()
    }

    /// Whether it wrote this block, or refers to it.
    pub fn has(&self, hash: &BlockHash) -> bool {
        self.holds(hash)
    }

    pub(crate) fn holds(&self, hash: &BlockHash) -> bool {
        self.held.lock().contains_key(hash)
    }

    pub(crate) fn count_node(&self) {
        self.nodes_written.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn nodes_written(&self) -> usize {
        self.nodes_written.load(Ordering::Relaxed)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        for hash in std::mem::take(&mut *self.held.lock()).into_keys() {
            self.pool.unpin(&hash);
        }
    }
}

/// Keeps a block, and for a node everything below it, from being reclaimed while it lives.
///
/// A pin is not durable. Hold one while using hashes of a tree that a commit may replace meanwhile
/// (a reader of an old root, or blocks about to be shared into another tree). Do not hold a pin on
/// the old root across the commit that replaces it unless you must: the commit then cannot net out
/// what both share, and writes more.
pub struct BlockPin {
    pub(crate) pool: Arc<Pool>,
    pub(crate) hash: BlockHash,
}

impl BlockPin {
    /// The pinned block.
    pub fn hash(&self) -> BlockHash {
        self.hash
    }
}

impl Drop for BlockPin {
    fn drop(&mut self) {
        self.pool.unpin(&self.hash);
    }
}

impl Pool {
    /// Starts a transaction. Any number may run at a time.
    pub fn begin(self: &Arc<Self>) -> Transaction {
        Transaction::new(self.clone(), Purpose::Growth)
    }

    /// Starts a transaction that may take all of the reserve: for deletions, and for the commit of
    /// data that was admitted before (check [`Pool::available`] when accepting it).
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

    /// Compresses a block and appends it to a segment: where it is, and how it is stored.
    pub(crate) fn append_block(
        &self,
        hash: BlockHash,
        kind: BlockKind,
        content: &[u8],
        purpose: Purpose,
    ) -> Result<(Place, Codec)> {
        // A page fills its room: there is none for a seal.
        let (codec, compressed) = compress(kind, content, !self.seals.are_on());
        let stored = compressed.as_deref().unwrap_or(content);
        self.append_packed(hash, kind, content.len(), (codec, stored), purpose)
    }

    /// Appends a block as it is to be stored.
    pub(crate) fn append_packed(
        &self,
        hash: BlockHash,
        kind: BlockKind,
        raw_len: usize,
        (codec, stored): Packed<'_>,
        purpose: Purpose,
    ) -> Result<(Place, Codec)> {
        self.durable.check_usable()?;
        let (stored_len, raw_len) = (stored.len() as u32, raw_len as u32);
        let frame = Frame { hash, kind, codec, stored_len, raw_len };
        let room = u64::from(codec.layout().room(stored_len));
        self.space.take(room, purpose, &self.segments)?;
        Ok((self.segments.append(&frame, stored)?, codec))
    }

    /// Removes a pin and frees what nothing needs any more.
    pub(crate) fn unpin(&self, hash: &BlockHash) {
        let unpinned = self.table.unpin(hash);
        self.settle(hash, unpinned);
    }

    /// Does what the table says about an entry that lost its last use.
    pub(crate) fn settle(&self, hash: &BlockHash, unpinned: Unpinned) {
        match unpinned {
            Unpinned::Kept => {}
            Unpinned::Freed(place) => {
                self.faults.forget(hash);
                self.cache.remove(hash);
                self.segments.release(place);
            }
            Unpinned::Dead => self.dead.push(*hash),
            Unpinned::Lost(place) => {
                self.cache.remove(hash);
                self.segments.release(place);
            }
        }
    }
}
