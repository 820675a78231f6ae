//! Transfers that ask: the target says what it lacks, and nothing else is sent.
//!
//! There is no I/O here: whoever has a connection passes on what these two say. It may lose, repeat or reorder messages,
//! and be cut at any time.
//!
//! ```text
//! Giver  ── manifest, states ──▶  Taker       what there is
//!        ◀──────── want ────────              which children of which node
//!        ──────── blocks ───────▶             in any order
//! ```
//! # Invariants
//! 1. A want names blocks by a path from the root of a state that was offered. So a giver needs no memory of what it gave,
//!    and what no offered state refers to cannot be asked for.
//! 2. A taker stores only blocks that it asked for: it compares names.
//! 3. Subtrees that the target has are never entered.

use crate::lacking::{Estimate, Lacking};
use crate::wire::{PATH_MAX, Want};
use crate::{Error, Result};
use offshoot_dataset::{
    Becomes, BlockKind, Checked, HeldState, Intake, OpenedBlock, PassingBlock, Received,
};
use offshoot_format::directory::TreeState;
use offshoot_format::links::links;
use offshoot_types::BlockHash;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Blocks that may be on their way: with 1 KiB each they fill a link of 400 Mbit/s with a round trip of 80 ms.
const WINDOW: usize = 4096;
/// Twice so many bytes come twice after a crash, and those on their way: while some are made durable, others come.
pub(crate) const CHECKPOINT_BYTES: u64 = 12 << 20;

/// Where a node is: the state, and which child to take at each level.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Path {
    state: u32,
    steps: Vec<u16>,
}

/// What gives states away.
pub struct Giver {
    states: Vec<HeldState>,
    checked: Checked,
}

impl Giver {
    /// States to be given; they are held until it is dropped.
    pub fn new(states: Vec<HeldState>) -> Giver {
        Giver { states, checked: Checked::Frame }
    }

    /// From now on blocks are compared with their names before they are given, as something that came was damaged. Whether
    /// they were not before.
    pub fn check_content(&mut self) -> bool {
        std::mem::replace(&mut self.checked, Checked::Content) == Checked::Frame
    }

    /// What it offers.
    pub fn states(&self) -> Vec<TreeState> {
        self.states.iter().map(|state| state.tree().clone()).collect()
    }

    /// Hands the blocks that a want asks for to `give`.
    ///
    /// # Errors
    /// `NotOffered` if it asks for anything else; those of reading, and of `give`.
    pub fn answer(
        &self,
        want: &Want,
        give: &mut dyn FnMut(PassingBlock) -> Result<()>,
    ) -> Result<()> {
        let state = self.states.get(want.state as usize).ok_or(Error::NotOffered)?;
        let mut node = state.tree().root;
        for step in &want.path {
            node = match children(state, &node)?.get(usize::from(*step)) {
                Some((child, BlockKind::Node)) if !child.is_zero() => *child,
                _ => return Err(Error::NotOffered),
            };
        }
        if want.children.is_empty() {
            return give(state.block(&node)?.0);
        }
        let all = children(state, &node)?;
        let asked = want.children.iter().map(|index| match all.get(usize::from(*index)) {
            Some((child, _)) if !child.is_zero() => Ok(*child),
            _ => Err(Error::NotOffered),
        });
        state.blocks(&asked.collect::<Result<Vec<_>>>()?, self.checked, give)
    }
}

fn children(state: &HeldState, node: &BlockHash) -> Result<Vec<(BlockHash, BlockKind)>> {
    Ok(links(&state.node(node)?).map_err(offshoot_dataset::Error::from)?)
}

/// A block that was asked for.
struct Asked {
    kind: BlockKind,
    /// The node that refers to it, and which of its children it is; none: it is a root.
    from: Option<(Arc<Path>, u16)>,
    state: u32,
}

/// What takes states in.
pub struct Taker<'a> {
    intake: &'a Intake,
    states: Vec<TreeState>,
    /// Nodes that are here, below which something may be missing.
    open: Vec<(Path, BlockHash)>,
    /// Nodes below which was looked: states share most of theirs.
    entered: HashSet<BlockHash>,
    asked: HashMap<BlockHash, Asked>,
    /// The next root to look at.
    next: usize,
    pace: Pace,
    /// What is lacking, where only that is asked.
    lacking: Option<Lacking>,
}

/// How much may come twice.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Blocks that may be on their way.
    pub window: usize,
    /// Bytes after which what came is to be made durable.
    pub checkpoint_bytes: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { window: WINDOW, checkpoint_bytes: CHECKPOINT_BYTES }
    }
}

impl<'a> Taker<'a> {
    /// Takes the states in that were offered, or goes on with it.
    pub fn new(intake: &'a Intake, states: Vec<TreeState>, pace: Pace) -> Taker<'a> {
        let (open, entered, asked) = Default::default();
        Taker { intake, states, open, entered, asked, next: 0, pace, lacking: None }
    }

    /// Only finds out how much is lacking: nodes come, and a few of the data blocks. What came need not come again. It does
    /// not look for all of it where that is far more than `room` bytes.
    pub fn estimating(
        intake: &'a Intake,
        states: Vec<TreeState>,
        pace: Pace,
        room: u64,
    ) -> Taker<'a> {
        Taker { lacking: Some(Lacking::new(room)), ..Taker::new(intake, states, pace) }
    }

    /// How much is lacking, once [all that was asked for](Taker::is_done) has come.
    pub fn estimate(&self) -> Estimate {
        let whole = self.has_seen_all();
        match &self.lacking {
            Some(lacking) => lacking.estimate(whole),
            None => Estimate { bytes: 0, coming_bytes: 0, whole },
        }
    }

    /// What to ask for now; nothing while enough is on its way.
    pub fn wants(&mut self) -> Result<Vec<Want>> {
        let mut wants = Vec::new();
        while self.asked.len() < self.pace.window && !self.is_enough() {
            if let Some((path, name)) = self.open.pop() {
                wants.extend(self.look_below(path, &name)?);
            } else if let Some(tree) = self.states.get(self.next) {
                let (root, state) = (tree.root, self.next as u32);
                self.next += 1;
                wants.extend(self.look_at_root(root, state)?);
            } else {
                break;
            }
        }
        Ok(wants)
    }

    /// All that was asked for and has not come, to be asked for again: a message may have been lost.
    pub fn wants_again(&self) -> Vec<Want> {
        let mut by_node: BTreeMap<&Path, Vec<u16>> = BTreeMap::new();
        let mut wants = Vec::new();
        for asked in self.asked.values() {
            match &asked.from {
                Some((path, index)) => by_node.entry(&**path).or_default().push(*index),
                None => {
                    let (path, children) = (Vec::new(), Vec::new());
                    wants.push(Want { state: asked.state, path, children });
                }
            }
        }
        wants.extend(by_node.into_iter().map(|(path, mut children)| {
            children.sort_unstable();
            Want { state: path.state, path: path.steps.clone(), children }
        }));
        wants
    }

    /// Blocks that were asked for and have not been taken.
    pub fn asked(&self) -> usize {
        self.asked.len()
    }

    /// A block that came; one that was not asked for, or came already, is left alone. Says whether it was taken.
    ///
    /// # Errors
    /// Those of the store.
    pub fn take(&mut self, opened: &OpenedBlock) -> Result<bool> {
        let (block, name) = (opened.block(), opened.name());
        let Some(asked) = self.asked.get(&name).filter(|asked| asked.kind == block.kind) else {
            return Ok(false);
        };
        // A node that is none would be asked for again and again.
        self.intake.put(opened)?;
        if let Some(lacking) = &mut self.lacking {
            lacking.came(block.kind, &name, block.stored.len());
        }
        if block.kind == BlockKind::Node {
            let path = match &asked.from {
                Some((path, index)) => path.below(*index)?,
                None => Path { state: asked.state, steps: Vec::new() },
            };
            self.open.push((path, name));
        }
        self.asked.remove(&name);
        Ok(true)
    }

    /// Whether what came is to be made durable now: [`Intake::checkpoint`], which may be beside all else.
    pub fn is_checkpoint_due(&self) -> bool {
        self.intake.unsafe_bytes() >= self.pace.checkpoint_bytes
    }

    /// Where it goes.
    pub fn intake(&self) -> &'a Intake {
        self.intake
    }

    /// Whether all of it came.
    pub fn is_done(&self) -> bool {
        self.asked.is_empty() && (self.has_seen_all() || self.is_enough())
    }

    fn has_seen_all(&self) -> bool {
        self.open.is_empty() && self.next == self.states.len()
    }

    fn is_enough(&self) -> bool {
        self.lacking.as_ref().is_some_and(Lacking::is_enough)
    }

    /// Shows the states, once all of them came.
    ///
    /// # Errors
    /// `Missing` if what was here has been deleted meanwhile: begin with a new taker on the same intake.
    pub fn finish(self, becomes: &[Becomes]) -> Result<Vec<Received>> {
        let states: Vec<_> = self.states.into_iter().zip(becomes.iter().copied()).collect();
        Ok(self.intake.finish(&states)?)
    }

    fn look_at_root(&mut self, root: BlockHash, state: u32) -> Result<Option<Want>> {
        if self.intake.has(&root) || self.asked.contains_key(&root) {
            return Ok(None);
        }
        let path = Path { state, steps: Vec::new() };
        if self.intake.node(&root)?.is_some() {
            self.open.push((path, root));
            return Ok(None);
        }
        self.asked.insert(root, Asked { kind: BlockKind::Node, from: None, state });
        Ok(Some(Want { state, path: Vec::new(), children: Vec::new() }))
    }

    fn look_below(&mut self, path: Path, name: &BlockHash) -> Result<Option<Want>> {
        if !self.entered.insert(*name) {
            return Ok(None);
        }
        let content = self.intake.node(name)?.ok_or(Error::NotOffered)?;
        let links = links(&content).map_err(offshoot_dataset::Error::from)?;
        if let Some(lacking) = &mut self.lacking {
            lacking.enter(content.len());
        }
        let path = Arc::new(path);
        let mut children = Vec::new();
        for (index, (child, kind)) in (0..).zip(links) {
            if child.is_zero() || self.asked.contains_key(&child) || self.intake.has(&child) {
                continue;
            }
            if kind == BlockKind::Node && self.intake.node(&child)?.is_some() {
                self.open.push((path.below(index)?, child));
                continue;
            }
            if kind == BlockKind::Data
                && let Some(lacking) = &mut self.lacking
                && !lacking.wants(&child)
            {
                continue;
            }
            let from = Some((Arc::clone(&path), index));
            self.asked.insert(child, Asked { kind, from, state: path.state });
            children.push(index);
        }
        let want = || Want { state: path.state, path: path.steps.clone(), children };
        Ok((!self.asked.is_empty()).then(want).filter(|want| !want.children.is_empty()))
    }
}

impl Path {
    fn below(&self, index: u16) -> Result<Path> {
        // No tree that is sound is as high.
        if self.steps.len() >= PATH_MAX {
            return Err(offshoot_dataset::Error::Corrupt("a tree is too high".to_owned()).into());
        }
        let steps = self.steps.iter().copied().chain([index]).collect();
        Ok(Path { state: self.state, steps })
    }
}

#[cfg(test)]
mod tests;
