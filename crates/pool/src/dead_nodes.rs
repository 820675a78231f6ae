//! Nodes without references whose children are still to be released.

use crate::Result;
use offshoot_types::BlockHash;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// The queue of dead nodes.
pub(crate) struct DeadNodes {
    queue: Mutex<VecDeque<BlockHash>>,
    /// Held while the children of nodes at the front are released.
    burying: Mutex<()>,
}

impl DeadNodes {
    pub(crate) fn new(queue: VecDeque<BlockHash>) -> DeadNodes {
        DeadNodes { queue: Mutex::new(queue), burying: Mutex::new(()) }
    }

    pub(crate) fn push(&self, hash: BlockHash) {
        self.queue.lock().push_back(hash);
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.lock().len()
    }

    pub(crate) fn all(&self) -> Vec<BlockHash> {
        self.queue.lock().iter().copied().collect()
    }

    /// Hands at most `max` from the front to `bury`. Whether there were any.
    ///
    /// They leave the queue only when `bury` succeeded and their children's release is durable. After an error they
    /// are tried again, and the ledger always knows which nodes no longer count as parents.
    pub(crate) fn bury(
        &self,
        max: usize,
        bury: impl FnOnce(&[BlockHash]) -> Result<()>,
    ) -> Result<bool> {
        let _burying = self.burying.lock();
        let dead: Vec<BlockHash> = self.queue.lock().iter().take(max).copied().collect();
        if dead.is_empty() {
            return Ok(false);
        }
        bury(&dead)?;
        self.queue.lock().drain(..dead.len());
        Ok(true)
    }
}
