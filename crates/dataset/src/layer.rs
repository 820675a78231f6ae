//! Changes of one inode that are not in the committed tree.
//!
//! A block is looked for in the dirty layer, then in the frozen layer (the one a commit is
//! writing), then in the committed block map. Within a layer a block's own slot takes precedence
//! over the cleared ranges, which hide what is below.

use offshoot_pool::{BlockData, BlockPin};
use offshoot_types::{BLOCK_SIZE, Ino};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a changed block is.
#[derive(Clone)]
pub(crate) enum Slot {
    /// These bytes, always a whole block.
    Data(BlockData),
    /// A block that is in the pool already, kept from being reclaimed.
    Shared(Arc<BlockPin>),
}

impl Slot {
    /// Memory it is counted with, in bytes.
    fn weight(&self) -> u64 {
        match self {
            Slot::Data(_) => BLOCK_SIZE as u64,
            Slot::Shared(_) => 128,
        }
    }
}

/// What one layer says about a block.
pub(crate) enum Found<'a> {
    /// It is this.
    Slot(&'a Slot),
    /// It is a hole.
    Hole,
    /// Ask the layer below.
    Below,
}

/// A name as directories sort it: by hash, then bytes.
pub(crate) type NameKey = (u64, Box<[u8]>);

/// The changes of one inode.
#[derive(Default, Clone)]
pub(crate) struct Layer {
    pub(crate) blocks: BTreeMap<u64, Slot>,
    pub(crate) cleared: RangeSet,
    /// Names of a directory: inode and kind, or removed.
    pub(crate) names: BTreeMap<NameKey, Option<(Ino, u8)>>,
    /// Extended attributes, or removed.
    pub(crate) xattrs: BTreeMap<Box<[u8]>, Option<Arc<[u8]>>>,
    /// Memory it is counted with, in bytes.
    weight: u64,
}

impl Layer {
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    pub(crate) fn find(&self, block: u64) -> Found<'_> {
        match self.blocks.get(&block) {
            Some(slot) => Found::Slot(slot),
            None if self.cleared.contains(block) => Found::Hole,
            None => Found::Below,
        }
    }

    /// Whether it says nothing about any block.
    pub(crate) fn has_no_blocks(&self) -> bool {
        self.blocks.is_empty() && self.cleared.is_empty()
    }

    pub(crate) fn put_block(&mut self, block: u64, slot: Slot) {
        self.weight += slot.weight();
        if let Some(old) = self.blocks.insert(block, slot) {
            self.weight -= old.weight();
        }
    }

    /// Turns blocks into holes.
    pub(crate) fn clear_blocks(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let gone: Vec<u64> = self.blocks.range(start..end).map(|(block, _)| *block).collect();
        for block in gone {
            if let Some(old) = self.blocks.remove(&block) {
                self.weight -= old.weight();
            }
        }
        self.cleared.insert(start, end);
    }

    /// Forgets all blocks without hiding those below, for an inode that is gone.
    pub(crate) fn drop_blocks(&mut self) {
        let weights = self.blocks.values().map(Slot::weight);
        self.weight -= weights.sum::<u64>();
        self.blocks.clear();
        self.cleared = RangeSet::default();
    }

    pub(crate) fn put_name(&mut self, key: NameKey, entry: Option<(Ino, u8)>) {
        let weight = 64 + key.1.len() as u64;
        if self.names.insert(key, entry).is_none() {
            self.weight += weight;
        }
    }

    pub(crate) fn put_xattr(&mut self, name: &[u8], value: Option<Arc<[u8]>>) {
        let weight = |value: &Option<Arc<[u8]>>| 64 + value.as_ref().map_or(0, |v| v.len()) as u64;
        self.weight += weight(&value);
        if let Some(old) = self.xattrs.insert(name.into(), value) {
            self.weight -= weight(&old);
        }
    }

    /// Puts a newer layer on top of this one.
    pub(crate) fn overlay(&mut self, newer: Layer) {
        for (start, end) in newer.cleared.iter() {
            self.clear_blocks(start, end);
        }
        for (block, slot) in newer.blocks {
            self.put_block(block, slot);
        }
        for (key, entry) in newer.names {
            self.put_name(key, entry);
        }
        for (name, value) in newer.xattrs {
            self.put_xattr(&name, value);
        }
    }
}

/// Disjoint, non-adjacent ranges of block numbers.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct RangeSet {
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds `start..end`.
    pub(crate) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        // Absorb every range that touches the new one, from the end.
        while let Some((&other, &other_end)) = self.ranges.range(..=end).next_back() {
            if other_end < start {
                break;
            }
            self.ranges.remove(&other);
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.ranges.insert(start, end);
    }

    pub(crate) fn contains(&self, value: u64) -> bool {
        self.covers(value, value + 1)
    }

    /// Whether all of `start..end` is in.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        self.ranges.range(..=start).next_back().is_some_and(|(_, &other)| other >= end)
    }

    /// Whether any of `start..end` is in.
    pub(crate) fn intersects(&self, start: u64, end: u64) -> bool {
        self.ranges.range(..end).next_back().is_some_and(|(_, &other)| other > start)
    }

    /// The end of the range that holds `value`, if one does.
    pub(crate) fn end_of(&self, value: u64) -> Option<u64> {
        self.ranges.range(..=value).next_back().map(|(_, &end)| end).filter(|&end| end > value)
    }

    /// The start of the first range after `value`.
    pub(crate) fn next_start(&self, value: u64) -> Option<u64> {
        self.ranges.range(value..).next().map(|(&start, _)| start)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(&start, &end)| (start, end))
    }
}

#[cfg(test)]
mod tests;
