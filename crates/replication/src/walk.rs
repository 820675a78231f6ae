//! Through states, each block once, everything before what refers to it.

use crate::Result;
use offshoot_dataset::{BlockKind, HeldState, PassingBlock};
use offshoot_format::links::links;
use offshoot_types::BlockHash;
use std::collections::HashSet;

/// What is still to be done.
enum Step {
    /// A block that was not looked at.
    Enter(BlockHash, BlockKind),
    /// A node after all that it refers to.
    Leave(PassingBlock),
}

/// Blocks that were met. 32 bytes each, with the room that a hash table leaves: about 60.
#[derive(Default)]
pub struct Walk {
    met: HashSet<BlockHash>,
}

impl Walk {
    /// Hands each block of a state that no earlier state had to `take`, children before parents.
    ///
    /// # Errors
    /// Those of reading, and of `take`.
    pub fn go(
        &mut self,
        state: &HeldState,
        take: &mut dyn FnMut(&PassingBlock) -> Result<()>,
    ) -> Result<()> {
        let mut steps = vec![Step::Enter(state.tree().root, BlockKind::Node)];
        while let Some(step) = steps.pop() {
            let (hash, kind) = match step {
                Step::Leave(node) => {
                    take(&node)?;
                    continue;
                }
                Step::Enter(hash, kind) => (hash, kind),
            };
            if hash.is_zero() || !self.met.insert(hash) {
                continue;
            }
            let (block, content) = state.block(&hash)?;
            match kind {
                BlockKind::Data => take(&block)?,
                BlockKind::Node => {
                    let links = links(&content).map_err(offshoot_dataset::Error::from)?;
                    steps.push(Step::Leave(block));
                    let children = links.into_iter().rev();
                    steps.extend(children.map(|(child, kind)| Step::Enter(child, kind)));
                }
            }
        }
        Ok(())
    }
}
