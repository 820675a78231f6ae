//! Where a file's blocks are: a radix tree of block hashes with 128 children per node.
//!
//! A map of height `h` covers 128^h blocks; height 0 is at most one block, whose hash is the root
//! itself, so that a file of one block needs no node. Holes are [`BlockHash::ZERO`] at any level.

use crate::blocks::{NodeSink, NodeSource};
use crate::layer::RangeSet;
use crate::{Error, Result};
use offshoot_format::tree::{MAP_FAN_OUT, MapView, encode_map};
use offshoot_pool::BlockData;
use offshoot_types::BlockHash;
use std::ops::Range;

const FAN_OUT: u64 = MAP_FAN_OUT as u64;

/// The map of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockMap {
    pub(crate) height: u8,
    pub(crate) root: BlockHash,
}

/// Nodes that are read together. One more costs the device little, but all 128 would cost much for a
/// database that is far larger than the cache.
const SIBLINGS: usize = 16;

impl BlockMap {
    pub(crate) const EMPTY: BlockMap = BlockMap { height: 0, root: BlockHash::ZERO };
}

/// Blocks below a node of this height.
pub(crate) fn span(height: u8) -> u64 {
    FAN_OUT.saturating_pow(u32::from(height))
}

fn read_map(source: &dyn NodeSource, hash: BlockHash, height: u8) -> Result<[BlockHash; 128]> {
    if hash.is_zero() {
        return Ok([BlockHash::ZERO; MAP_FAN_OUT]);
    }
    let bytes = source.read_node(&hash)?;
    Ok(checked_view(&bytes, height)?.to_array())
}

fn checked_view(bytes: &[u8], height: u8) -> Result<MapView<'_>> {
    let view = MapView::new(bytes)?;
    if view.level() + 1 != height {
        return Err(Error::Corrupt("a block map's levels do not descend".into()));
    }
    Ok(view)
}

/// What is read with the node that a parent has in a slot; nothing with a root.
fn siblings(of: Option<&(BlockData, usize)>) -> Vec<BlockHash> {
    let view = of.and_then(|(parent, slot)| Some((MapView::new(parent).ok()?, *slot)));
    let Some((view, slot)) = view else { return Vec::new() };
    let first = slot - slot % SIBLINGS;
    (first..first + SIBLINGS).map(|slot| view.get(slot)).collect()
}

impl BlockMap {
    /// Fills `found` with the hashes of the blocks from `first` on.
    pub(crate) fn lookup(
        &self,
        source: &dyn NodeSource,
        first: u64,
        found: &mut [BlockHash],
    ) -> Result<()> {
        let mut done = 0;
        while done < found.len() {
            let index = first + done as u64;
            if self.root.is_zero() || index >= span(self.height) {
                found[done..].fill(BlockHash::ZERO);
                return Ok(());
            }
            if self.height == 0 {
                found[done] = self.root;
                done += 1;
                continue;
            }
            done += self.lookup_leaf(source, index, &mut found[done..])?;
        }
        Ok(())
    }

    /// The part of a lookup that one lowest node answers; returns how many blocks that was.
    fn lookup_leaf(
        &self,
        source: &dyn NodeSource,
        index: u64,
        found: &mut [BlockHash],
    ) -> Result<usize> {
        let slot = (index % FAN_OUT) as usize;
        let count = found.len().min(MAP_FAN_OUT - slot);
        let (mut hash, mut parent) = (self.root, None::<(BlockData, usize)>);
        for height in (1..=self.height).rev() {
            if hash.is_zero() {
                break;
            }
            let bytes = source.read_node_among(&hash, &|| siblings(parent.as_ref()))?;
            let view = checked_view(&bytes, height)?;
            if height > 1 {
                let slot = (index / span(height - 1) % FAN_OUT) as usize;
                hash = view.get(slot);
                parent = Some((bytes, slot));
                continue;
            }
            for (offset, found) in found[..count].iter_mut().enumerate() {
                *found = view.get(slot + offset);
            }
            return Ok(count);
        }
        found[..count].fill(BlockHash::ZERO);
        Ok(count)
    }

    /// After this block there are only holes.
    pub(crate) fn end(&self) -> u64 {
        span(self.height)
    }

    /// The first block from `from` on that is data (`data`) or a hole (`!data`); `None`: there is
    /// none before the map's end (after it everything is a hole).
    pub(crate) fn next(
        &self,
        source: &dyn NodeSource,
        from: u64,
        data: bool,
    ) -> Result<Option<u64>> {
        if from >= span(self.height) {
            return Ok(None);
        }
        next_in(source, self.root, self.height, 0, from, data)
    }

    /// The blocks that differ from `other`'s, in ascending ranges: at most `ranges_max`, to stay within
    /// that, the ranges nearest to each other are joined, with what is equal between them. Equal
    /// subtrees are not read: the cost follows what differs.
    pub(crate) fn differing(
        &self,
        source: &dyn NodeSource,
        other: &BlockMap,
        ranges_max: usize,
    ) -> Result<Vec<Range<u64>>> {
        let mut found = Differing { source, ranges_max, gap: 1, ranges: Vec::new() };
        found.compare(*self, *other, self.height.max(other.height), 0)?;
        Ok(found.ranges)
    }

    /// The maps of the 128 parts of this one, taken as one of `height`.
    fn parts(&self, source: &dyn NodeSource, height: u8) -> Result<[BlockMap; MAP_FAN_OUT]> {
        if self.height < height {
            let mut parts = [BlockMap::EMPTY; MAP_FAN_OUT];
            parts[0] = *self;
            return Ok(parts);
        }
        let children = read_map(source, self.root, height)?;
        Ok(children.map(|root| BlockMap { height: height - 1, root }))
    }

    /// Data blocks, and the number after the last one.
    pub(crate) fn count(&self, source: &dyn NodeSource) -> Result<(u64, u64)> {
        let (blocks, mut end) = (count(source, self.root, self.height)?, 0);
        let (mut hash, mut base) = (self.root, 0);
        for height in (0..=self.height).rev() {
            if hash.is_zero() {
                break;
            }
            if height == 0 {
                end = base + 1;
                break;
            }
            // A node has a child that is not a hole: the last such child leads to the last block.
            let children = read_map(source, hash, height)?;
            let Some(slot) = children.iter().rposition(|child| !child.is_zero()) else { break };
            base += slot as u64 * span(height - 1);
            hash = children[slot];
        }
        Ok((blocks, end))
    }

    /// The map after `cleared` ranges became holes and then `changes` (ascending) were set, for a
    /// file of `size` blocks; and by how many the data blocks grew.
    pub(crate) fn update(
        &self,
        sink: &dyn NodeSink,
        cleared: &RangeSet,
        changes: &[(u64, BlockHash)],
        size: u64,
    ) -> Result<(BlockMap, i64)> {
        let mut map = *self;
        let last = changes.last().map_or(0, |(index, _)| *index);
        while last >= span(map.height) {
            if !map.root.is_zero() {
                let mut children = [BlockHash::ZERO; MAP_FAN_OUT];
                children[0] = map.root;
                map.root = sink.write_node(&encode_map(map.height, &children))?;
            }
            map.height += 1;
        }
        let (root, grown) = Update { sink, cleared }.node(map.root, map.height, 0, changes)?;
        map.root = root;
        while map.height > 0 && size <= span(map.height - 1) {
            map.root = read_map(sink, map.root, map.height)?[0];
            map.height -= 1;
        }
        Ok((map, grown))
    }
}

/// A comparison of two maps.
struct Differing<'a> {
    source: &'a dyn NodeSource,
    ranges_max: usize,
    /// Ranges with fewer blocks between them are joined.
    gap: u64,
    ranges: Vec<Range<u64>>,
}

impl Differing<'_> {
    /// Compares what two maps, taken as of `height`, say of the blocks from `base` on.
    fn compare(&mut self, one: BlockMap, other: BlockMap, height: u8, base: u64) -> Result<()> {
        // A hash of the same height names the same content; a hole is one at any height.
        if one.root == other.root && (one.height == other.height || one.root.is_zero()) {
            return Ok(());
        }
        if height == 0 {
            self.add(base);
            return Ok(());
        }
        let ones = one.parts(self.source, height)?;
        let others = other.parts(self.source, height)?;
        let width = span(height - 1);
        for (slot, (one, other)) in ones.into_iter().zip(others).enumerate() {
            self.compare(one, other, height - 1, base + slot as u64 * width)?;
        }
        Ok(())
    }

    fn add(&mut self, block: u64) {
        self.push(block..block + 1);
        while self.ranges.len() > self.ranges_max.max(1) {
            self.gap = self.gap.saturating_mul(2);
            let ranges = std::mem::take(&mut self.ranges);
            ranges.into_iter().for_each(|range| self.push(range));
        }
    }

    fn push(&mut self, range: Range<u64>) {
        match self.ranges.last_mut() {
            Some(last) if range.start - last.end < self.gap => last.end = range.end,
            _ => self.ranges.push(range),
        }
    }
}

struct Update<'a> {
    sink: &'a dyn NodeSink,
    cleared: &'a RangeSet,
}

impl Update<'_> {
    /// The new hash of a subtree of `height` that begins at block `base`.
    fn node(
        &self,
        hash: BlockHash,
        height: u8,
        base: u64,
        changes: &[(u64, BlockHash)],
    ) -> Result<(BlockHash, i64)> {
        let end = base + span(height);
        let clears = !hash.is_zero() && self.cleared.intersects(base, end);
        if changes.is_empty() && !clears {
            return Ok((hash, 0));
        }
        if height == 0 {
            let before = i64::from(!hash.is_zero());
            let now = changes.last().map_or(BlockHash::ZERO, |(_, hash)| *hash);
            return Ok((now, i64::from(!now.is_zero()) - before));
        }
        if changes.is_empty() && self.cleared.covers(base, end) {
            return Ok((BlockHash::ZERO, -(count(self.sink, hash, height)? as i64)));
        }
        let mut children = read_map(self.sink, hash, height)?;
        let width = span(height - 1);
        let (mut rest, mut grown) = (changes, 0);
        for (slot, child) in children.iter_mut().enumerate() {
            let start = base + slot as u64 * width;
            let here = rest.partition_point(|(index, _)| *index < start + width);
            let (mine, others) = rest.split_at(here);
            rest = others;
            let (now, more) = self.node(*child, height - 1, start, mine)?;
            *child = now;
            grown += more;
        }
        if children.iter().all(BlockHash::is_zero) {
            return Ok((BlockHash::ZERO, grown));
        }
        Ok((self.sink.write_node_like(&hash, &encode_map(height - 1, &children))?, grown))
    }
}

/// Data blocks of a subtree.
fn count(source: &dyn NodeSource, hash: BlockHash, height: u8) -> Result<u64> {
    if hash.is_zero() || height == 0 {
        return Ok(u64::from(!hash.is_zero()));
    }
    let mut blocks = 0;
    for child in read_map(source, hash, height)? {
        blocks += count(source, child, height - 1)?;
    }
    Ok(blocks)
}

fn next_in(
    source: &dyn NodeSource,
    hash: BlockHash,
    height: u8,
    base: u64,
    from: u64,
    data: bool,
) -> Result<Option<u64>> {
    if hash.is_zero() || height == 0 {
        let found = hash.is_zero() != data;
        return Ok(found.then(|| base.max(from)));
    }
    let width = span(height - 1);
    for (slot, child) in read_map(source, hash, height)?.into_iter().enumerate() {
        let start = base + slot as u64 * width;
        if start + width <= from {
            continue;
        }
        if let Some(found) = next_in(source, child, height - 1, start, from, data)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
