//! Nodes of the pool's trees: leaves and branches of B+trees, and the block maps of files.
//!
//! Every node begins with its kind, so that [`children`] can list what any node refers to.
//!
//! ```text
//! leaf     0 1 kind 1            branch   0 1 kind 2          map   0  1 kind 3
//!          1 1 0                          1 1 level, from 1         1  1 level, from 0
//!          2 2 number of entries          2 2 entries               2 16 bit i: child i is there
//!          4 2n where each begins         4 2n where each begins    18   32 bytes for each
//!          then entries:                  then entries:
//!          2 length of key, key           2 length of key, key
//!          1 children, 32 each            32 child
//!          2 length of value, value
//! ```
//! A branch's entry names the subtree of all keys not below its key and below the next one's; keys
//! below the first key belong to the first entry. A map of level 0 lists data blocks.

use crate::{DecodeError, Reader};
use offshoot_types::BlockHash;

const LEAF: u8 = 1;
const BRANCH: u8 = 2;
const MAP: u8 = 3;
const HEADER_LEN: usize = 4;

/// Children of one node of a file's block map.
pub const MAP_FAN_OUT: usize = 128;

/// A value of a leaf: blocks it refers to, and bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Value {
    /// Blocks that live as long as this value does. No holes.
    pub children: Vec<BlockHash>,
    /// The rest.
    pub bytes: Vec<u8>,
}

/// An entry of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafEntry {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Value,
}

impl LeafEntry {
    /// Bytes it takes in a leaf.
    pub fn stored_len(&self) -> usize {
        2 + 2 + self.key.len() + 1 + 32 * self.value.children.len() + 2 + self.value.bytes.len()
    }
}

/// An entry of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchEntry {
    /// The smallest key the child may hold (the first entry's is ignored).
    pub key: Vec<u8>,
    /// The child.
    pub child: BlockHash,
}

impl BranchEntry {
    /// Bytes it takes in a branch.
    pub fn stored_len(&self) -> usize {
        2 + 2 + self.key.len() + 32
    }
}

/// A leaf or branch as bytes, its entries found by binary search without decoding the others.
#[derive(Debug, Clone, Copy)]
pub struct NodeView<'a> {
    bytes: &'a [u8],
    level: u8,
    count: usize,
}

/// An entry of a leaf, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct LeafEntryView<'a> {
    /// Its key.
    pub key: &'a [u8],
    children: &'a [u8],
    /// Its value's bytes.
    pub value: &'a [u8],
}

impl LeafEntryView<'_> {
    /// The blocks its value refers to.
    pub fn children(&self) -> impl Iterator<Item = BlockHash> + '_ {
        self.children.chunks_exact(32).map(hash_of)
    }

    /// The entry, owned.
    pub fn to_owned(&self) -> LeafEntry {
        let value = Value { children: self.children().collect(), bytes: self.value.to_vec() };
        LeafEntry { key: self.key.to_vec(), value }
    }
}

fn hash_of(bytes: &[u8]) -> BlockHash {
    let mut hash = [0; 32];
    hash.copy_from_slice(bytes);
    BlockHash(hash)
}

fn damaged(problem: &str) -> DecodeError {
    DecodeError::new("tree node", problem)
}

impl<'a> NodeView<'a> {
    /// Looks at a leaf or branch.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("tree node", bytes);
        let kind = reader.u8()?;
        let level = reader.u8()?;
        let count = usize::from(reader.u16()?);
        reader.bytes(2 * count)?;
        match (kind, level) {
            (LEAF, 0) => {}
            (BRANCH, 1..) if count > 0 => {}
            _ => return Err(damaged("neither a leaf nor a branch")),
        }
        Ok(NodeView { bytes, level, count })
    }

    /// 0 for a leaf, higher further up.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Number of entries.
    pub fn count(&self) -> usize {
        self.count
    }

    fn reader(&self, index: usize) -> Result<Reader<'a>, DecodeError> {
        let mut start = Reader::new("tree node", &self.bytes[HEADER_LEN..]);
        start.bytes(2 * index)?;
        let start = usize::from(start.u16()?);
        let rest =
            self.bytes.get(start..).ok_or_else(|| damaged("an entry is outside the node"))?;
        Ok(Reader::new("tree node", rest))
    }

    /// The key of an entry.
    pub fn key(&self, index: usize) -> Result<&'a [u8], DecodeError> {
        let mut reader = self.reader(index)?;
        let len = usize::from(reader.u16()?);
        reader.bytes(len)
    }

    /// An entry of a leaf.
    pub fn leaf_entry(&self, index: usize) -> Result<LeafEntryView<'a>, DecodeError> {
        let mut reader = self.reader(index)?;
        let len = usize::from(reader.u16()?);
        let key = reader.bytes(len)?;
        let children = usize::from(reader.u8()?);
        let children = reader.bytes(32 * children)?;
        let len = usize::from(reader.u16()?);
        Ok(LeafEntryView { key, children, value: reader.bytes(len)? })
    }

    /// The child of an entry of a branch.
    pub fn child(&self, index: usize) -> Result<BlockHash, DecodeError> {
        let mut reader = self.reader(index)?;
        let len = usize::from(reader.u16()?);
        reader.bytes(len)?;
        reader.hash()
    }

    /// Number of entries whose key is below `key`.
    pub fn lower_bound(&self, key: &[u8]) -> Result<usize, DecodeError> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            if self.key(middle)? < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// In a branch: the entry whose subtree holds `key`.
    pub fn child_index(&self, key: &[u8]) -> Result<usize, DecodeError> {
        let index = self.lower_bound(key)?;
        if index < self.count && self.key(index)? == key {
            return Ok(index);
        }
        Ok(index.saturating_sub(1))
    }
}

fn encode_node<T>(
    kind: u8,
    level: u8,
    entries: &[T],
    len: impl Fn(&T) -> usize,
    mut put: impl FnMut(&T, &mut Vec<u8>),
) -> Vec<u8> {
    let total = HEADER_LEN + entries.iter().map(len).sum::<usize>();
    let mut bytes = Vec::with_capacity(total);
    bytes.extend_from_slice(&[kind, level]);
    bytes.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    bytes.resize(HEADER_LEN + 2 * entries.len(), 0);
    for (index, entry) in entries.iter().enumerate() {
        let start = bytes.len() as u16;
        bytes[HEADER_LEN + 2 * index..][..2].copy_from_slice(&start.to_le_bytes());
        put(entry, &mut bytes);
    }
    debug_assert_eq!(bytes.len(), total);
    bytes
}

fn put_key(key: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
    bytes.extend_from_slice(key);
}

/// A leaf's bytes. The entries ascend by key and take less than 64 KiB.
pub fn encode_leaf(entries: &[LeafEntry]) -> Vec<u8> {
    encode_node(LEAF, 0, entries, LeafEntry::stored_len, |entry, bytes| {
        put_key(&entry.key, bytes);
        bytes.push(entry.value.children.len() as u8);
        for child in &entry.value.children {
            bytes.extend_from_slice(&child.0);
        }
        put_key(&entry.value.bytes, bytes);
    })
}

/// A branch's bytes. The entries ascend by key and take less than 64 KiB.
pub fn encode_branch(level: u8, entries: &[BranchEntry]) -> Vec<u8> {
    encode_node(BRANCH, level, entries, BranchEntry::stored_len, |entry, bytes| {
        put_key(&entry.key, bytes);
        bytes.extend_from_slice(&entry.child.0);
    })
}

/// A node of a file's block map as bytes.
#[derive(Debug, Clone, Copy)]
pub struct MapView<'a> {
    level: u8,
    present: u128,
    hashes: &'a [u8],
}

impl<'a> MapView<'a> {
    /// Looks at a map node.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("block map", bytes);
        if reader.u8()? != MAP {
            return Err(reader.error("is another kind of node"));
        }
        let level = reader.u8()?;
        let present = u128::from_le_bytes(reader.array()?);
        let hashes = reader.bytes(32 * present.count_ones() as usize)?;
        Ok(MapView { level, present, hashes })
    }

    /// 0 if the children are data blocks.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Child `index` (below [`MAP_FAN_OUT`]); a hole where there is none.
    pub fn get(&self, index: usize) -> BlockHash {
        let bit = 1u128 << index;
        if self.present & bit == 0 {
            return BlockHash::ZERO;
        }
        let before = (self.present & (bit - 1)).count_ones() as usize;
        hash_of(&self.hashes[32 * before..32 * before + 32])
    }

    /// All children, holes included.
    pub fn to_array(&self) -> [BlockHash; MAP_FAN_OUT] {
        let mut children = [BlockHash::ZERO; MAP_FAN_OUT];
        let mut hashes = self.hashes.chunks_exact(32);
        for (index, child) in children.iter_mut().enumerate() {
            if self.present & (1 << index) != 0 {
                *child = hashes.next().map_or(BlockHash::ZERO, hash_of);
            }
        }
        children
    }
}

/// A map node's bytes.
pub fn encode_map(level: u8, children: &[BlockHash; MAP_FAN_OUT]) -> Vec<u8> {
    let mut present = 0u128;
    let mut bytes = vec![MAP, level];
    bytes.resize(18, 0);
    for (index, child) in children.iter().enumerate().filter(|(_, child)| !child.is_zero()) {
        present |= 1 << index;
        bytes.extend_from_slice(&child.0);
    }
    bytes[2..18].copy_from_slice(&present.to_le_bytes());
    bytes
}

/// The blocks any node refers to, as often as it lists them.
pub fn children(node: &[u8]) -> Result<Vec<BlockHash>, DecodeError> {
    if node.first() == Some(&MAP) {
        let map = MapView::new(node)?;
        return Ok(map.hashes.chunks_exact(32).map(hash_of).collect());
    }
    let view = NodeView::new(node)?;
    let mut children = Vec::new();
    for index in 0..view.count() {
        if view.level() == 0 {
            children.extend(view.leaf_entry(index)?.children());
        } else {
            children.push(view.child(index)?);
        }
    }
    Ok(children)
}

#[cfg(test)]
mod tests;
