//! The copy-on-write B+tree that holds a dataset's metadata, and the directory of datasets.
//!
//! A tree is named by its root's hash; an empty tree is [`BlockHash::ZERO`]. [`merge`] returns a new
//! root for a sorted batch of changes and writes every node it changes exactly once: children are
//! joined with their neighbours and split in memory by their parent before they are written.

use crate::blocks::{NodeSink, NodeSource};
use crate::{Error, Result};
use offshoot_format::tree::{BranchEntry, LeafEntry, NodeView, Value, encode_branch, encode_leaf};
use offshoot_types::BlockHash;
use std::ops::ControlFlow;

/// A node larger than this is split, in bytes. Small nodes make small commits.
const NODE_LEN_MAX: usize = 4096;
/// A changed node smaller than this is joined with a neighbour.
const NODE_LEN_MIN: usize = 1024;
/// No tree is higher; deeper recursion means a damaged tree.
const LEVEL_MAX: u8 = 16;

/// A change of one key: a new value, or `None` to remove it.
pub(crate) type Change = (Vec<u8>, Option<Value>);

/// The value of a key.
pub(crate) fn get(source: &dyn NodeSource, root: BlockHash, key: &[u8]) -> Result<Option<Value>> {
    let mut hash = root;
    for _ in 0..LEVEL_MAX {
        if hash.is_zero() {
            return Ok(None);
        }
        let bytes = source.read_node(&hash)?;
        let node = NodeView::new(&bytes)?;
        if node.level() > 0 {
            hash = node.child(node.child_index(key)?)?;
            continue;
        }
        let index = node.lower_bound(key)?;
        if index == node.count() || node.key(index)? != key {
            return Ok(None);
        }
        return Ok(Some(node.leaf_entry(index)?.to_owned().value));
    }
    Err(Error::Corrupt("a tree is too high".into()))
}

/// Visits entries from `from` on in ascending order until `visit` breaks.
pub(crate) fn scan(
    source: &dyn NodeSource,
    root: BlockHash,
    from: &[u8],
    visit: &mut dyn FnMut(LeafEntry) -> ControlFlow<()>,
) -> Result<()> {
    if root.is_zero() {
        return Ok(());
    }
    scan_node(source, root, from, LEVEL_MAX, visit).map(|_| ())
}

fn scan_node(
    source: &dyn NodeSource,
    hash: BlockHash,
    from: &[u8],
    depth: u8,
    visit: &mut dyn FnMut(LeafEntry) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let bytes = source.read_node(&hash)?;
    let node = NodeView::new(&bytes)?;
    if node.level() >= depth {
        return Err(Error::Corrupt("a tree's levels do not descend".into()));
    }
    if node.level() == 0 {
        for index in node.lower_bound(from)?..node.count() {
            if visit(node.leaf_entry(index)?.to_owned()).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        return Ok(ControlFlow::Continue(()));
    }
    for index in node.child_index(from)?..node.count() {
        if scan_node(source, node.child(index)?, from, node.level(), visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Applies changes, ascending by key and each key once; returns the new root.
pub(crate) fn merge(
    sink: &dyn NodeSink,
    root: BlockHash,
    changes: Vec<Change>,
) -> Result<BlockHash> {
    debug_assert!(changes.windows(2).all(|pair| pair[0].0 < pair[1].0));
    if changes.is_empty() {
        return Ok(root);
    }
    let mut node =
        if root.is_zero() { Node::Leaf(Vec::new()) } else { Node::load(sink, root, &[])? };
    node.apply(sink, &mut changes.into_iter().peekable(), None)?;
    finish(sink, node)
}

/// Writes the top of a tree, adding levels while it is too large and dropping those of one child.
fn finish(sink: &dyn NodeSink, node: Node) -> Result<BlockHash> {
    let mut level = node.level();
    let mut parts = node.split();
    loop {
        if parts.len() == 1 {
            let Some(only) = parts.pop() else { break };
            return match only {
                Node::Leaf(entries) if entries.is_empty() => Ok(BlockHash::ZERO),
                Node::Branch(_, mut children) if children.len() <= 1 => match children.pop() {
                    None => Ok(BlockHash::ZERO),
                    // The child may itself be a branch with one child: an old one that was never
                    // changed.
                    Some(child) => child.state.written(sink),
                },
                node => node.write(sink),
            };
        }
        level += 1;
        let mut children = Vec::new();
        for part in parts {
            let key = part.first_key();
            children.push(Child { key, state: ChildState::Stored(part.write(sink)?) });
        }
        parts = Node::Branch(level, children).split();
    }
    Ok(BlockHash::ZERO)
}

/// A node being changed.
enum Node {
    Leaf(Vec<LeafEntry>),
    Branch(u8, Vec<Child>),
}

struct Child {
    key: Vec<u8>,
    state: ChildState,
}

enum ChildState {
    Stored(BlockHash),
    Fresh(Node),
}

impl ChildState {
    fn written(self, sink: &dyn NodeSink) -> Result<BlockHash> {
        match self {
            ChildState::Stored(hash) => Ok(hash),
            ChildState::Fresh(node) => node.write(sink),
        }
    }
}

type Changes = std::iter::Peekable<std::vec::IntoIter<Change>>;

impl Node {
    /// Reads a node. `key` is its key in the parent; its first entry takes that key, so that the
    /// node can be joined with the one before.
    fn load(source: &dyn NodeSource, hash: BlockHash, key: &[u8]) -> Result<Node> {
        let bytes = source.read_node(&hash)?;
        let view = NodeView::new(&bytes)?;
        if view.level() == 0 {
            let entries = (0..view.count()).map(|index| Ok(view.leaf_entry(index)?.to_owned()));
            return Ok(Node::Leaf(entries.collect::<Result<_>>()?));
        }
        let mut children = Vec::with_capacity(view.count());
        for index in 0..view.count() {
            let key = if index == 0 { key } else { view.key(index)? };
            let state = ChildState::Stored(view.child(index)?);
            children.push(Child { key: key.to_vec(), state });
        }
        Ok(Node::Branch(view.level(), children))
    }

    fn level(&self) -> u8 {
        match self {
            Node::Leaf(_) => 0,
            Node::Branch(level, _) => *level,
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Node::Leaf(entries) => entries.is_empty(),
            Node::Branch(_, children) => children.is_empty(),
        }
    }

    fn first_key(&self) -> Vec<u8> {
        match self {
            Node::Leaf(entries) => entries.first().map(|entry| entry.key.clone()),
            Node::Branch(_, children) => children.first().map(|child| child.key.clone()),
        }
        .unwrap_or_default()
    }

    fn entry_lens(&self) -> Vec<usize> {
        match self {
            Node::Leaf(entries) => entries.iter().map(LeafEntry::stored_len).collect(),
            Node::Branch(_, children) => {
                children.iter().map(|child| 2 + 2 + child.key.len() + 32).collect()
            }
        }
    }

    fn stored_len(&self) -> usize {
        self.entry_lens().iter().sum()
    }

    /// Applies the changes below `end` (`None`: all of them).
    fn apply(
        &mut self,
        sink: &dyn NodeSink,
        changes: &mut Changes,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let within = |change: &Change| end.is_none_or(|end| change.0.as_slice() < end);
        match self {
            Node::Leaf(entries) => {
                let old = std::mem::take(entries);
                let mut old = old.into_iter().peekable();
                while let Some((key, value)) = changes.next_if(within) {
                    while let Some(entry) = old.next_if(|entry| entry.key < key) {
                        entries.push(entry);
                    }
                    old.next_if(|entry| entry.key == key);
                    if let Some(value) = value {
                        entries.push(LeafEntry { key, value });
                    }
                }
                entries.extend(old);
                Ok(())
            }
            Node::Branch(level, children) => {
                for index in 0..children.len() {
                    let next = children.get(index + 1).map(|child| child.key.clone());
                    let end = next.as_deref().or(end);
                    let below = |change: &Change| end.is_none_or(|end| change.0.as_slice() < end);
                    if !changes.peek().is_some_and(below) {
                        continue;
                    }
                    let child = &mut children[index];
                    let mut node = load_child(sink, child, *level)?;
                    node.apply(sink, changes, end)?;
                    child.state = ChildState::Fresh(node);
                }
                settle(sink, children, *level)
            }
        }
    }

    /// Cuts a node into parts of at most [`NODE_LEN_MAX`], about equally large.
    fn split(self) -> Vec<Node> {
        let lens = self.entry_lens();
        let total: usize = lens.iter().sum();
        let parts = total.div_ceil(NODE_LEN_MAX).max(1);
        if parts == 1 {
            return vec![self];
        }
        let goal = total.div_ceil(parts);
        let mut cuts = Vec::new();
        let mut filled = 0;
        for (index, len) in lens.iter().enumerate() {
            if filled > 0 && filled + len > goal.max(*len) {
                cuts.push(index);
                filled = 0;
            }
            filled += len;
        }
        match self {
            Node::Leaf(entries) => cut(entries, &cuts).into_iter().map(Node::Leaf).collect(),
            Node::Branch(level, children) => {
                cut(children, &cuts).into_iter().map(|part| Node::Branch(level, part)).collect()
            }
        }
    }

    fn join(&mut self, right: Node) -> Result<()> {
        match (self, right) {
            (Node::Leaf(left), Node::Leaf(right)) => left.extend(right),
            (Node::Branch(_, left), Node::Branch(_, right)) => left.extend(right),
            _ => return Err(Error::Corrupt("neighbours in a tree differ in level".into())),
        }
        Ok(())
    }

    fn write(self, sink: &dyn NodeSink) -> Result<BlockHash> {
        match self {
            Node::Leaf(entries) => sink.write_node(&encode_leaf(&entries)),
            Node::Branch(level, children) => {
                let mut entries = Vec::with_capacity(children.len());
                for child in children {
                    let hash = child.state.written(sink)?;
                    entries.push(BranchEntry { key: child.key, child: hash });
                }
                sink.write_node(&encode_branch(level, &entries))
            }
        }
    }
}

fn load_child(source: &dyn NodeSource, child: &mut Child, level: u8) -> Result<Node> {
    let node = match std::mem::replace(&mut child.state, ChildState::Stored(BlockHash::ZERO)) {
        ChildState::Fresh(node) => node,
        ChildState::Stored(hash) => Node::load(source, hash, &child.key)?,
    };
    if node.level() + 1 != level {
        return Err(Error::Corrupt("a tree's levels do not descend".into()));
    }
    Ok(node)
}

/// Makes changed children fit: drops empty ones, joins small ones with a neighbour, splits large
/// ones, and writes them.
fn settle(sink: &dyn NodeSink, children: &mut Vec<Child>, level: u8) -> Result<()> {
    let mut settled: Vec<Child> = Vec::with_capacity(children.len());
    for mut child in std::mem::take(children) {
        let small = |child: &Child| match &child.state {
            ChildState::Fresh(node) => node.stored_len() < NODE_LEN_MIN,
            ChildState::Stored(_) => false,
        };
        if matches!(&child.state, ChildState::Fresh(node) if node.is_empty()) {
            continue;
        }
        let joins = small(&child) || settled.last().is_some_and(small);
        match settled.last_mut() {
            Some(last) if joins => {
                let mut left = load_child(sink, last, level)?;
                left.join(load_child(sink, &mut child, level)?)?;
                last.state = ChildState::Fresh(left);
            }
            _ => settled.push(child),
        }
    }
    for child in settled {
        match child.state {
            ChildState::Stored(_) => children.push(child),
            ChildState::Fresh(node) => {
                for (index, part) in node.split().into_iter().enumerate() {
                    let key = if index == 0 { child.key.clone() } else { part.first_key() };
                    children.push(Child { key, state: ChildState::Stored(part.write(sink)?) });
                }
            }
        }
    }
    Ok(())
}

fn cut<T>(mut entries: Vec<T>, cuts: &[usize]) -> Vec<Vec<T>> {
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    for &at in cuts.iter().rev() {
        parts.push(entries.split_off(at));
    }
    parts.push(entries);
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests;
