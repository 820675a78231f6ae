//! How much is lacking of what was offered, before it comes.
//!
//! All nodes have to be seen for that: they are about a hundredth of what is stored, and would have to come anyway. Data
//! blocks are counted by name, of many of them a part. A sample of them comes, which says how much room one takes.

use offshoot_dataset::BlockKind;
use offshoot_types::BlockHash;
use std::collections::{HashMap, HashSet};

/// Names that are counted one by one: the count is right to about a hundredth.
const NAMES_MAX: usize = 1 << 15;
/// So many data blocks come, if there are; of twice as many each second one from there on, and so on.
const SAMPLED: u64 = 128;
/// Nodes of which this part of the room is taken say enough, where it does not fit.
const NODES_PART: u64 = 32;
/// But so many bytes of nodes always may come.
const NODES_MIN: u64 = 1 << 20;

/// How much is lacking, as it is stored here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Bytes, about.
    pub bytes: u64,
    /// Bytes of blocks that come for it, about: since it was looked for, and those that did for that.
    pub coming_bytes: u64,
    /// Whether this is all of it: where it is far more than there is room, it was not looked further.
    pub whole: bool,
}

impl Estimate {
    /// Whether there is too little room for it, even if it is a tenth less.
    pub fn exceeds(&self, room: u64) -> bool {
        self.bytes - self.bytes / 10 > room
    }
}

/// What is lacking.
pub(crate) struct Lacking {
    room: u64,
    /// Names of data blocks, of those that end with so many bits that are 0.
    names: HashSet<BlockHash>,
    thinned: u32,
    /// Data blocks that were asked for, and for how many one stands.
    sample: HashMap<BlockHash, u64>,
    /// Of those that came.
    stand_for: u64,
    stand_for_bytes: u64,
    /// Of nodes, as they are written once all came.
    node_bytes: u64,
    /// Of those that came for this.
    came_bytes: u64,
}

impl Lacking {
    pub(crate) fn new(room: u64) -> Lacking {
        let (names, sample) = Default::default();
        let (thinned, stand_for, stand_for_bytes, node_bytes, came_bytes) = Default::default();
        Lacking { room, names, thinned, sample, stand_for, stand_for_bytes, node_bytes, came_bytes }
    }

    /// A node that is written once all of it came.
    pub(crate) fn enter(&mut self, bytes: usize) {
        self.node_bytes += bytes as u64;
    }

    /// A data block that is lacking. Whether it is to come.
    pub(crate) fn wants(&mut self, name: &BlockHash) -> bool {
        let (first, last) = ends(name);
        if last.trailing_zeros() >= self.thinned && self.names.insert(*name) {
            while self.names.len() > NAMES_MAX {
                self.thinned += 1;
                let thinned = self.thinned;
                self.names.retain(|name| ends(name).1.trailing_zeros() >= thinned);
            }
        }
        let each = (self.count() / SAMPLED).max(1).ilog2();
        let wanted = first.trailing_zeros() >= each;
        if wanted {
            self.sample.insert(*name, 1 << each);
        }
        wanted
    }

    /// A block that was asked for.
    pub(crate) fn came(&mut self, kind: BlockKind, name: &BlockHash, stored_bytes: usize) {
        match kind {
            BlockKind::Node => self.came_bytes += stored_bytes as u64,
            BlockKind::Data => {
                let weight = self.sample.remove(name).unwrap_or_default();
                self.stand_for += weight;
                self.stand_for_bytes += weight * stored_bytes as u64;
            }
        }
    }

    /// What is known of it so far; whether that is all.
    pub(crate) fn estimate(&self, whole: bool) -> Estimate {
        Estimate { bytes: self.bytes(), coming_bytes: self.coming_bytes(), whole }
    }

    fn count(&self) -> u64 {
        (self.names.len() as u64) << self.thinned
    }

    /// What all of it takes; until it is assembled nodes that came are kept twice.
    pub(crate) fn bytes(&self) -> u64 {
        self.node_bytes.saturating_add(self.coming_bytes())
    }

    /// What comes for it.
    pub(crate) fn coming_bytes(&self) -> u64 {
        let all = u128::from(self.count()) * u128::from(self.stand_for_bytes);
        let data = all / u128::from(self.stand_for.max(1));
        self.came_bytes.saturating_add(u64::try_from(data).unwrap_or(u64::MAX))
    }

    /// Whether it is far too much, and it is not worth to look further.
    pub(crate) fn is_enough(&self) -> bool {
        self.node_bytes + self.came_bytes > (self.room / NODES_PART).max(NODES_MIN)
            && self.estimate(false).exceeds(self.room)
    }
}

/// Two numbers that have nothing to do with each other: names are hashes.
fn ends(name: &BlockHash) -> (u64, u64) {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    (number(&name.0[..8]), number(&name.0[24..]))
}

#[cfg(test)]
mod tests;
