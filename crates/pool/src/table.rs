//! The block table in memory: where every block is, who refers to it, who is using it.
//!
//! An entry is in one of these states:
//!
//! ```text
//!            insert (a transaction wrote it)            commit that reaches it
//!  (absent) ───────────────────────────────► uncommitted ───────────────────► committed, refs > 0
//!     ▲                                        │   ▲                             │
//!     │ last pin gone (refs 0)                 │   │ commit made it unreachable, │ commit plans to
//!     ├────────────────────────────────────────┘   │ but it was pinned meanwhile │ drop it
//!     │                                            │                             ▼
//!     └────────────────────────────────────────────┴───────────────────────── dying
//!            the commit is durable and nobody pinned it
//! ```
//!
//! A node that became unreachable but whose children are still to be released stays committed with
//! refs 0. Only committed entries are in the durable table; `refs` counts committed references. A
//! *pin* keeps an entry (and for a node the references of its children) where it is: a plan never
//! marks a pinned entry dying, and a thread that finds a dying entry pins it and treats it as
//! uncommitted.
//!
//! A *lost* entry is committed and in no segment: a table rebuilt from the segments knows from the
//! nodes that refer to it that there was such a block, and how many they are. It keeps that count, so
//! that the count is right when the content comes again: then the entry is uncommitted with
//! references (*found*), and committed with them by the commit that reaches it. What a lost node
//! referred to is unknown.

mod shard;

use crate::threads::in_parallel;
use offshoot_format::segment::{BlockKind, Codec, Layout};
use offshoot_format::table::{Record, TableEntry};
use offshoot_types::BlockHash;
use parking_lot::RwLock;
use shard::Shard;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts of the table.
pub(crate) const PARTS: usize = 256;
const OFFSET_BITS: u32 = 26;
const OFFSET_MASK: u32 = (1 << OFFSET_BITS) - 1;
const CODEC_SHIFT: u32 = OFFSET_BITS;
const NODE: u32 = 1 << 28;
const COMMITTED: u32 = 1 << 29;
const DYING: u32 = 1 << 30;
/// What is wrong with a lost block.
pub(crate) const LOST: &str = "it was not found when the block table was rebuilt";
/// The segment that lost blocks are in: numbers begin at 1.
const NOWHERE: u32 = 0;

/// Where a block's frame or page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    /// Stored bytes without the frame.
    pub(crate) stored_len: u32,
    /// How blocks lie in the segment.
    pub(crate) layout: Layout,
}

impl Place {
    /// Bytes the block takes in its segment.
    pub(crate) fn room(&self) -> u32 {
        self.layout.room(self.stored_len)
    }

    /// Where its stored content begins.
    pub(crate) fn content(&self) -> u32 {
        self.offset + self.layout.frame_len()
    }

    pub(crate) fn end(&self) -> u32 {
        self.offset + self.room()
    }
}

/// One block. 20 bytes: with the 32 of its name, 52 in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    segment: u32,
    /// Offset in the low 26 bits, codec and flags above.
    bits: u32,
    /// Minus one, so that 65,536 fits.
    stored: u16,
    raw: u16,
    pub(crate) refs: u32,
    pub(crate) pins: u32,
}

impl Entry {
    /// A block just written, pinned by its writer.
    pub(crate) fn uncommitted(place: Place, raw_len: u32, kind: BlockKind, codec: Codec) -> Entry {
        let node = if kind == BlockKind::Node { NODE } else { 0 };
        let bits = place.offset & OFFSET_MASK | (codec as u32) << CODEC_SHIFT | node;
        let (stored, raw) = ((place.stored_len - 1) as u16, (raw_len - 1) as u16);
        Entry { segment: place.segment, bits, stored, raw, refs: 0, pins: 1 }
    }

    /// A block of the durable table.
    pub(crate) fn committed(durable: &TableEntry) -> Entry {
        let TableEntry { segment, offset, stored_len, raw_len, kind, codec, refs } = *durable;
        let place = Place { segment, offset, stored_len, layout: codec.layout() };
        let mut entry = Entry::uncommitted(place, raw_len, kind, codec);
        entry.bits |= COMMITTED;
        (entry.refs, entry.pins) = (refs, 0);
        entry
    }

    /// A block that is found nowhere, with the references that nodes hold on it.
    pub(crate) fn lost(refs: u32) -> Entry {
        let place = Place { segment: NOWHERE, offset: 0, stored_len: 1, layout: Layout::Frames };
        let mut entry = Entry::uncommitted(place, 1, BlockKind::Data, Codec::Raw);
        entry.set_committed(true);
        (entry.refs, entry.pins) = (refs, 0);
        entry
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.segment == NOWHERE
    }

    /// Bytes it takes in a segment.
    pub(crate) fn room(&self) -> u64 {
        if self.is_lost() { 0 } else { u64::from(self.place().room()) }
    }

    /// What the durable table says with this many references.
    pub(crate) fn durable(&self, refs: u32) -> TableEntry {
        let Place { segment, offset, stored_len, .. } = self.place();
        let (raw_len, kind, codec) = (self.raw_len(), self.kind(), self.codec());
        TableEntry { segment, offset, stored_len, raw_len, kind, codec, refs }
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            segment: self.segment,
            offset: self.bits & OFFSET_MASK,
            stored_len: u32::from(self.stored) + 1,
            layout: self.codec().layout(),
        }
    }

    /// Says where it is, in which form.
    pub(crate) fn set_place(&mut self, place: Place, codec: Codec) {
        let form = OFFSET_MASK | 3 << CODEC_SHIFT;
        self.segment = place.segment;
        self.bits = self.bits & !form | place.offset & OFFSET_MASK | (codec as u32) << CODEC_SHIFT;
        self.stored = (place.stored_len - 1) as u16;
    }

    pub(crate) fn raw_len(&self) -> u32 {
        u32::from(self.raw) + 1
    }

    pub(crate) fn kind(&self) -> BlockKind {
        if self.bits & NODE != 0 { BlockKind::Node } else { BlockKind::Data }
    }

    pub(crate) fn codec(&self) -> Codec {
        Codec::from_u8((self.bits >> CODEC_SHIFT & 3) as u8).unwrap_or(Codec::Raw)
    }

    /// In the durable table (until the running commit, if it is dying).
    pub(crate) fn is_committed(&self) -> bool {
        self.bits & COMMITTED != 0
    }

    pub(crate) fn is_dying(&self) -> bool {
        self.bits & DYING != 0
    }

    pub(crate) fn set_committed(&mut self, yes: bool) {
        self.bits = if yes { self.bits | COMMITTED } else { self.bits & !COMMITTED };
    }

    pub(crate) fn set_dying(&mut self, yes: bool) {
        self.bits = if yes { self.bits | DYING } else { self.bits & !DYING };
    }
}

/// What is left of an entry when a pin is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unpinned {
    /// Somebody needs it.
    Kept,
    /// It was removed, and its place is free.
    Freed(Place),
    /// A dead node: its children are to be released.
    Dead,
    /// It is lost again: its place is free.
    Lost(Place),
}

/// Sums over committed entries with references, in bytes and blocks.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sums {
    live: u64,
    raw: u64,
    data_raw: u64,
    referenced: u64,
    blocks: u64,
    nodes: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, entry: &Entry) {
        if !entry.is_committed() || entry.refs == 0 || entry.is_lost() {
            return;
        }
        let raw = u64::from(entry.raw_len());
        self.live += entry.room();
        self.raw += raw;
        self.blocks += 1;
        match entry.kind() {
            BlockKind::Node => self.nodes += 1,
            BlockKind::Data => {
                self.data_raw += raw;
                self.referenced += raw * u64::from(entry.refs);
            }
        }
    }
}

/// The same sums, kept while entries change.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) live: AtomicU64,
    pub(crate) raw: AtomicU64,
    pub(crate) data_raw: AtomicU64,
    pub(crate) referenced: AtomicU64,
    pub(crate) blocks: AtomicU64,
    pub(crate) nodes: AtomicU64,
}

impl Totals {
    /// Adds (or with `add` false subtracts) an entry's share.
    fn count(&self, entry: &Entry, add: bool) {
        let mut share = Sums::default();
        share.add(entry);
        self.change(&share, add);
    }

    pub(crate) fn change(&self, by: &Sums, add: bool) {
        // Wrapping: subtracting is adding the complement.
        let change = |total: &AtomicU64, by: u64| {
            let by = if add { by } else { by.wrapping_neg() };
            if by != 0 {
                total.fetch_add(by, Ordering::Relaxed);
            }
        };
        change(&self.live, by.live);
        change(&self.raw, by.raw);
        change(&self.data_raw, by.data_raw);
        change(&self.referenced, by.referenced);
        change(&self.blocks, by.blocks);
        change(&self.nodes, by.nodes);
    }
}

/// A block's way to another place, perhaps in another form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) codec: Codec,
}

/// Blocks by the number of their segment.
pub(crate) type BySegment = BTreeMap<u32, Vec<(BlockHash, Entry)>>;

/// All blocks, in parts with a lock each.
pub(crate) struct Table {
    shards: Box<[RwLock<Shard>]>,
    pub(crate) totals: Totals,
}

impl Table {
    pub(crate) fn new() -> Table {
        let shards = (0..PARTS).map(|_| RwLock::new(Shard::default()));
        Table { shards: shards.collect(), totals: Totals::default() }
    }

    /// The part that a name belongs to.
    pub(crate) fn part_of(hash: &BlockHash) -> usize {
        // The parts use the first bytes of the name.
        usize::from(hash.0[31])
    }

    fn shard(&self, hash: &BlockHash) -> &RwLock<Shard> {
        &self.shards[Table::part_of(hash)]
    }

    pub(crate) fn get(&self, hash: &BlockHash) -> Option<Entry> {
        self.shard(hash).read().get(hash).copied()
    }

    /// Makes room for so many entries, at open.
    pub(crate) fn reserve(&self, entries: u64) {
        // Names are spread evenly: a part rarely gets more than a thirty-second above its share.
        let each = entries as usize / PARTS;
        self.shards.iter().for_each(|shard| shard.write().reserve(each + each / 32));
    }

    /// Puts an entry of the durable table in, at open.
    pub(crate) fn load(&self, hash: BlockHash, entry: Entry) {
        self.shard(&hash).write().insert(hash, entry);
    }

    /// Applies records of one part, at open.
    pub(crate) fn load_part(&self, part: usize, records: impl Iterator<Item = Record>) {
        let mut shard = self.shards[part].write();
        for record in records {
            match record {
                Record::Put(hash, entry) => shard.insert(hash, Entry::committed(&entry)),
                Record::Gone(hash) => shard.remove(&hash),
            }
        }
    }

    /// Pins a block that is there.
    pub(crate) fn pin(&self, hash: &BlockHash) -> Option<Entry> {
        let mut shard = self.shard(hash).write();
        let entry = shard.get_mut(hash)?;
        entry.pins += 1;
        Some(*entry)
    }

    /// Pins a block that is there and not lost.
    pub(crate) fn pin_stored(&self, hash: &BlockHash) -> Option<Entry> {
        let mut shard = self.shard(hash).write();
        let entry = shard.get_mut(hash).filter(|entry| !entry.is_lost())?;
        entry.pins += 1;
        Some(*entry)
    }

    /// Inserts a new block, also for a lost one, or pins the one that another thread inserted first
    /// (second value true; then the new place was not used).
    pub(crate) fn insert_or_pin(&self, hash: BlockHash, entry: Entry) -> (Entry, bool) {
        let mut shard = self.shard(&hash).write();
        match shard.get_mut(&hash) {
            Some(there) if there.is_lost() => {
                *there = Entry { refs: there.refs, pins: there.pins + entry.pins, ..entry };
                (*there, false)
            }
            Some(there) => {
                there.pins += 1;
                (*there, true)
            }
            None => {
                shard.insert(hash, entry);
                (entry, false)
            }
        }
    }

    /// Removes a pin, and the entry too if nothing else needs it.
    pub(crate) fn unpin(&self, hash: &BlockHash) -> Unpinned {
        let mut shard = self.shard(hash).write();
        let Some(entry) = shard.get_mut(hash) else { return Unpinned::Kept };
        // Invariant 3: otherwise what others use would be freed.
        assert!(entry.pins > 0, "a pin is taken away once");
        entry.pins -= 1;
        Self::settle(&mut shard, hash)
    }

    /// What happens to an entry that perhaps nobody needs.
    fn settle(shard: &mut Shard, hash: &BlockHash) -> Unpinned {
        match shard.get(hash) {
            Some(entry) if entry.pins == 0 && entry.refs == 0 && !entry.is_dying() => {
                if entry.is_committed() && entry.kind() == BlockKind::Node {
                    return Unpinned::Dead;
                }
                // A committed data block without references needs no record: recovery drops it.
                let place = entry.place();
                shard.remove(hash);
                Unpinned::Freed(place)
            }
            // Found, but no commit took it.
            Some(entry) if entry.pins == 0 && entry.refs > 0 && !entry.is_committed() => {
                let (place, lost) = (entry.place(), Entry::lost(entry.refs));
                shard.insert(*hash, lost);
                Unpinned::Lost(place)
            }
            _ => Unpinned::Kept,
        }
    }

    /// Marks an entry that a commit is about to drop, unless others than the committing transaction
    /// (which holds `own` pins) use it.
    pub(crate) fn mark_dying(&self, hash: &BlockHash, own: u32) -> bool {
        let mut shard = self.shard(hash).write();
        match shard.get_mut(hash) {
            Some(entry) if entry.pins <= own && entry.is_committed() => {
                entry.set_dying(true);
                true
            }
            _ => false,
        }
    }

    /// Removes the mark: the commit did not happen.
    pub(crate) fn unmark_dying(&self, hash: &BlockHash) {
        if let Some(entry) = self.shard(hash).write().get_mut(hash) {
            entry.set_dying(false);
        }
    }

    /// Applies a durable commit's change: `refs` references, or dropped.
    pub(crate) fn apply(&self, hash: &BlockHash, refs: u32, gone: bool) -> Unpinned {
        let mut shard = self.shard(hash).write();
        let Some(entry) = shard.get_mut(hash) else { return Unpinned::Kept };
        self.totals.count(entry, false);
        entry.refs = if gone { 0 } else { refs };
        entry.set_dying(false);
        entry.set_committed(!gone);
        self.totals.count(entry, true);
        Self::settle(&mut shard, hash)
    }

    /// Applies a durable commit's change of the references of a block that stays uncommitted.
    pub(crate) fn set_references(&self, hash: &BlockHash, refs: u32) {
        if let Some(entry) = self.shard(hash).write().get_mut(hash) {
            entry.refs = refs;
        }
    }

    /// Moves a block, if it is still where it was.
    pub(crate) fn relocate(&self, hash: &BlockHash, moved: &Move) -> bool {
        let mut shard = self.shard(hash).write();
        match shard.get_mut(hash) {
            Some(entry) if entry.place() == moved.from => {
                self.totals.count(entry, false);
                entry.set_place(moved.to, moved.codec);
                self.totals.count(entry, true);
                true
            }
            _ => false,
        }
    }

    /// The blocks of the first segments from `from` on, by segment and in the order of their places:
    /// from as many segments as give about `blocks_max` blocks, which bounds memory. Empty when there
    /// are none left.
    pub(crate) fn by_segment(&self, from: u32, blocks_max: u64) -> BySegment {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        self.visit(|_, entry| {
            if entry.segment >= from && !entry.is_lost() {
                *counts.entry(entry.segment).or_default() += 1;
            }
        });
        let (mut blocks, mut found) = (0, BySegment::new());
        for (segment, count) in counts {
            if blocks > 0 && blocks + count > blocks_max {
                break;
            }
            blocks += count;
            found.insert(segment, Vec::with_capacity(count as usize));
        }
        self.visit(|hash, entry| {
            if let Some(of) = found.get_mut(&entry.segment) {
                of.push((*hash, *entry));
            }
        });
        found.values_mut().for_each(|of| of.sort_unstable_by_key(|(_, entry)| entry.place()));
        found
    }

    /// Visits all entries, part by part; the part being visited is read-locked.
    pub(crate) fn visit(&self, mut visitor: impl FnMut(&BlockHash, &Entry)) {
        for shard in &self.shards {
            shard.read().iter().for_each(|(hash, entry)| visitor(hash, entry));
        }
    }

    /// A copy of one part's entries; `None` beyond the last part.
    pub(crate) fn part(&self, index: usize) -> Option<Vec<(BlockHash, Entry)>> {
        let shard = self.shards.get(index)?.read();
        Some(shard.iter().copied().collect())
    }

    /// Removes entries, at open.
    pub(crate) fn retain(&self, mut keep: impl FnMut(&BlockHash, &Entry) -> bool) {
        for shard in &self.shards {
            shard.write().retain(&mut keep);
        }
    }

    /// The same on several threads, at open. Each works on its own parts and has its own value; the final values are
    /// returned.
    pub(crate) fn retain_on<T: Default + Send>(
        &self,
        threads: usize,
        keep: impl Fn(&mut T, &BlockHash, &Entry) -> bool + Sync,
    ) -> Vec<T> {
        in_parallel(threads, |share| {
            let mut value = T::default();
            for shard in self.shards.iter().skip(share).step_by(threads) {
                shard.write().retain(|hash, entry| keep(&mut value, hash, entry));
            }
            value
        })
    }

    /// Visits all entries on several threads, at open. Each has its own value; the final values are returned.
    pub(crate) fn visit_on<T: Send>(
        &self,
        threads: usize,
        make: impl Fn() -> T + Sync,
        visitor: impl Fn(&mut T, &Entry) + Sync,
    ) -> Vec<T> {
        in_parallel(threads, |share| {
            let mut value = make();
            for shard in self.shards.iter().skip(share).step_by(threads) {
                shard.read().iter().for_each(|(_, entry)| visitor(&mut value, entry));
            }
            value
        })
    }

    /// Entries there are.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().len()).sum()
    }

    /// Memory of the maps, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let slots: usize = self.shards.iter().map(|shard| shard.read().allocation_size()).sum();
        slots as u64
    }
}

#[cfg(test)]
mod tests;
