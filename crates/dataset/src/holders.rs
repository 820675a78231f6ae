//! Who holds a block: the datasets and snapshots that reach it, and where in their files.
//!
//! Nothing on disk leads from a block to those who refer to it, so the trees are walked from their roots. What
//! states share is walked once: the search remembers for each node whether a wanted block is below it. So a
//! search costs one read of each node of metadata, about a hundredth of the data, however many snapshots there
//! are. What cannot be read is skipped: nobody knows what is below it.

use crate::Result;
use crate::block_map::span;
use crate::blocks::NodeSource;
use offshoot_format::directory::TreeState;
use offshoot_format::inode::{
    InodeRecord, decode_name, parse_inode_key, parse_name_key, parse_xattr_key,
};
use offshoot_format::tree::{LeafEntry, MapView, NodeView};
use offshoot_types::{BLOCK_SIZE, BlockHash, DatasetId, Ino, SnapshotId};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Places named per block; further ones are only counted.
const HOLDERS_MAX: usize = 16;
/// No path is deeper: the names form a circle.
const DEPTH_MAX: usize = 4096;
/// No tree or block map is higher.
const LEVEL_MAX: u8 = 16;

/// A state of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateId {
    /// A dataset, as of its last commit.
    Dataset(DatasetId),
    /// A snapshot.
    Snapshot(SnapshotId),
    /// The directory of all of these.
    Directory,
}

/// Where a file holds a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFile {
    /// The path in the dataset, without a slash before it.
    pub path: String,
    /// The first byte that is in the block (or, of a damaged block of a file's map, below it).
    pub offset: u64,
    /// So many bytes from there on.
    pub len: u64,
}

/// A place that holds a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Whose.
    pub state: StateId,
    /// The file; none: it is part of the tree of names and inodes.
    pub file: Option<HeldFile>,
}

/// Those who hold a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// Some of them, datasets first; each file once, with its first such place.
    pub named: Vec<Holder>,
    /// How many more there are.
    pub more: u64,
}

/// A wanted block met in a state: the block, the file's inode, first byte and length.
type Met = (BlockHash, Option<(u64, u64, u64)>);

/// A search for some blocks.
pub(crate) struct Search<'a> {
    source: &'a dyn NodeSource,
    found: HashMap<BlockHash, Holders>,
    /// Nodes met, and whether they are wanted or lead to a wanted one.
    leads: HashMap<BlockHash, bool>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(source: &'a dyn NodeSource, wanted: &[BlockHash]) -> Self {
        let found = wanted.iter().map(|hash| (*hash, Holders::default())).collect();
        Search { source, found, leads: HashMap::new() }
    }

    /// The holders of each wanted block.
    pub(crate) fn end(self) -> HashMap<BlockHash, Holders> {
        self.found
    }

    /// Looks through the directory's own tree.
    pub(crate) fn look_at_directory(&mut self, root: BlockHash) {
        let mut stack = vec![(root, LEVEL_MAX)];
        while let Some((hash, levels)) = stack.pop() {
            if hash.is_zero() || levels == 0 {
                continue;
            }
            if let Some(holders) = self.found.get_mut(&hash) {
                holders.named.push(Holder { state: StateId::Directory, file: None });
            }
            if let Ok(TreeNode::Branch(children)) = TreeNode::read(self.source, &hash) {
                stack.extend(children.into_iter().map(|child| (child, levels - 1)));
            }
        }
    }

    /// Looks through a state.
    pub(crate) fn look(&mut self, id: StateId, tree: &TreeState) {
        if !self.tree_leads(tree.root, LEVEL_MAX) {
            return;
        }
        let mut met = Vec::new();
        self.collect_tree(tree.root, LEVEL_MAX, &mut met);
        let mut known: HashSet<(BlockHash, Option<u64>)> = HashSet::new();
        met.retain(|(hash, place)| known.insert((*hash, place.map(|(ino, _, _)| ino))));
        let mut names = None;
        for (hash, place) in met {
            let Some(holders) = self.found.get_mut(&hash) else { continue };
            if holders.named.len() >= HOLDERS_MAX {
                holders.more += 1;
                continue;
            }
            let file = place.map(|(ino, offset, len)| {
                let names = names.get_or_insert_with(|| Names::read(self.source, tree.root));
                HeldFile { path: names.path(ino), offset, len }
            });
            holders.named.push(Holder { state: id, file });
        }
    }

    fn is_wanted(&self, hash: &BlockHash) -> bool {
        self.found.contains_key(hash)
    }

    fn tree_leads(&mut self, hash: BlockHash, levels: u8) -> bool {
        if hash.is_zero() || levels == 0 {
            return false;
        }
        if let Some(leads) = self.leads.get(&hash) {
            return *leads;
        }
        let leads = self.is_wanted(&hash)
            || match TreeNode::read(self.source, &hash) {
                Ok(TreeNode::Branch(children)) => {
                    children.iter().any(|child| self.tree_leads(*child, levels - 1))
                }
                Ok(TreeNode::Leaf(entries)) => entries.iter().any(|entry| self.entry_leads(entry)),
                Err(_) => false,
            };
        self.leads.insert(hash, leads);
        leads
    }

    fn entry_leads(&mut self, entry: &LeafEntry) -> bool {
        match map_of(entry) {
            Some((_, record)) => self.map_leads(record.root, record.height),
            None => entry.value.children.iter().any(|child| self.is_wanted(child)),
        }
    }

    fn map_leads(&mut self, hash: BlockHash, height: u8) -> bool {
        if hash.is_zero() || height > LEVEL_MAX {
            return false;
        }
        if height == 0 || self.is_wanted(&hash) {
            return self.is_wanted(&hash);
        }
        if let Some(leads) = self.leads.get(&hash) {
            return *leads;
        }
        let children = map_children(self.source, &hash).unwrap_or_default();
        let leads = children.iter().any(|child| self.map_leads(*child, height - 1));
        self.leads.insert(hash, leads);
        leads
    }

    fn collect_tree(&mut self, hash: BlockHash, levels: u8, met: &mut Vec<Met>) {
        if !self.tree_leads(hash, levels) {
            return;
        }
        if self.is_wanted(&hash) {
            met.push((hash, None));
        }
        match TreeNode::read(self.source, &hash) {
            Ok(TreeNode::Branch(children)) => {
                children.iter().for_each(|child| self.collect_tree(*child, levels - 1, met));
            }
            Ok(TreeNode::Leaf(entries)) => {
                entries.iter().for_each(|entry| self.collect_entry(entry, met));
            }
            Err(_) => {}
        }
    }

    fn collect_entry(&mut self, entry: &LeafEntry, met: &mut Vec<Met>) {
        if let Some((ino, record)) = map_of(entry) {
            self.collect_map(ino, &record, record.root, record.height, 0, met);
        } else if let Some((ino, _)) = parse_xattr_key(&entry.key) {
            let wanted = entry.value.children.iter().filter(|child| self.is_wanted(child));
            met.extend(wanted.map(|child| (*child, Some((ino.0, 0, 0)))));
        }
    }

    fn collect_map(
        &mut self,
        ino: Ino,
        record: &InodeRecord,
        hash: BlockHash,
        height: u8,
        first: u64,
        met: &mut Vec<Met>,
    ) {
        if !self.map_leads(hash, height) {
            return;
        }
        if self.is_wanted(&hash) {
            let offset = first * BLOCK_SIZE as u64;
            let len = span(height).saturating_mul(BLOCK_SIZE as u64);
            let len = len.min(record.size.saturating_sub(offset));
            return met.push((hash, Some((ino.0, offset, len))));
        }
        let children = map_children(self.source, &hash).unwrap_or_default();
        for (index, child) in (0..).zip(children) {
            let first = first + index * span(height - 1);
            self.collect_map(ino, record, child, height - 1, first, met);
        }
    }
}

/// An inode's key with its record.
fn map_of(entry: &LeafEntry) -> Option<(Ino, InodeRecord)> {
    let ino = parse_inode_key(&entry.key)?;
    Some((ino, InodeRecord::decode(&entry.value).ok()?))
}

fn map_children(source: &dyn NodeSource, hash: &BlockHash) -> Result<Vec<BlockHash>> {
    Ok(MapView::new(&source.read_node(hash)?)?.to_array().to_vec())
}

/// A node of a tree of names and inodes.
enum TreeNode {
    Branch(Vec<BlockHash>),
    Leaf(Vec<LeafEntry>),
}

impl TreeNode {
    fn read(source: &dyn NodeSource, hash: &BlockHash) -> Result<TreeNode> {
        let bytes = source.read_node(hash)?;
        let node = NodeView::new(&bytes)?;
        let indexes = 0..node.count();
        if node.level() > 0 {
            let children: std::result::Result<_, _> = indexes.map(|at| node.child(at)).collect();
            return Ok(TreeNode::Branch(children?));
        }
        let entries: std::result::Result<_, _> =
            indexes.map(|at| node.leaf_entry(at).map(|entry| entry.to_owned())).collect();
        Ok(TreeNode::Leaf(entries?))
    }
}

/// The names in a state, by inode: the directory and the name in it.
#[derive(Default)]
struct Names(BTreeMap<u64, (u64, Vec<u8>)>);

impl Names {
    /// Those that can be read.
    fn read(source: &dyn NodeSource, root: BlockHash) -> Names {
        let mut names = Names::default();
        let mut stack = vec![(root, LEVEL_MAX)];
        while let Some((hash, levels)) = stack.pop() {
            if hash.is_zero() || levels == 0 {
                continue;
            }
            match TreeNode::read(source, &hash) {
                Ok(TreeNode::Branch(children)) => {
                    stack.extend(children.into_iter().map(|child| (child, levels - 1)));
                }
                Ok(TreeNode::Leaf(entries)) => entries.iter().for_each(|entry| names.take(entry)),
                Err(_) => {}
            }
        }
        names
    }

    fn take(&mut self, entry: &LeafEntry) {
        if let Some((directory, _, name)) = parse_name_key(&entry.key)
            && let Ok((ino, _)) = decode_name(&entry.value.bytes)
        {
            self.0.insert(ino.0, (directory.0, name.to_vec()));
        }
    }

    fn path(&self, ino: u64) -> String {
        let (mut at, mut parts) = (ino, Vec::new());
        while at != Ino::ROOT.0 && parts.len() < DEPTH_MAX {
            match self.0.get(&at) {
                Some((directory, name)) => {
                    parts.push(String::from_utf8_lossy(name).into_owned());
                    at = *directory;
                }
                None => {
                    parts.push(format!("(inode {at})"));
                    break;
                }
            }
        }
        parts.reverse();
        parts.join("/")
    }
}

#[cfg(test)]
mod tests;
