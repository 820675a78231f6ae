//! Operations of a dataset that are applied in memory but not durable yet.
//!
//! Operations are numbered from 1 in the order in which they were applied. The queue holds those
//! that are neither in the intent log nor in a durable commit, so that a sync can log them. Not all
//! can be logged: after too much was queued, after an operation without a form in the log (shared
//! blocks), or when the log refused. Then everything up to [`Queue::commit_only`] is made durable by
//! a commit, and nothing later is logged before that: the log never has a gap.

use offshoot_format::operation::Operation;
use offshoot_intent_log::{Request, VolatileLog};
use offshoot_pool::BlockData;
use std::collections::VecDeque;
use std::sync::Arc;

/// A piece of a write's data.
pub(crate) enum Piece {
    /// A whole block, shared with the dirty layer.
    Block(BlockData),
    /// Part of a block.
    Part(Box<[u8]>),
}

impl Piece {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Piece::Block(bytes) => bytes,
            Piece::Part(bytes) => bytes,
        }
    }
}

/// An operation as it goes to the log.
pub(crate) struct Queued {
    pub(crate) head: Vec<u8>,
    pub(crate) data: Vec<Piece>,
}

impl Queued {
    /// Bytes of the encoded operation.
    pub(crate) fn len(&self) -> usize {
        self.parts().map(<[u8]>::len).sum()
    }

    fn parts(&self) -> impl Iterator<Item = &[u8]> + Clone {
        std::iter::once(&self.head[..]).chain(self.data.iter().map(Piece::bytes))
    }
}

/// What the answer to the request that made this operation needs to know: the inode that got a name.
fn outcome(operation: &Operation<'_>) -> u64 {
    match operation {
        Operation::Create { ino, .. } | Operation::Link { ino, .. } => ino.0,
        _ => 0,
    }
}

/// The queue.
pub(crate) struct Queue {
    /// Number of the last operation applied.
    pub(crate) last: u64,
    /// Every operation up to this one is in a durable commit.
    pub(crate) applied: u64,
    /// Operations up to this one that are not durable can only be made so by a commit.
    pub(crate) commit_only: u64,
    /// The last operations, up to and including `last`, that are not logged.
    pub(crate) entries: VecDeque<Queued>,
    bytes: usize,
    bytes_max: usize,
    /// Gets every operation before it is acknowledged, where one is attached.
    volatile: Option<Arc<VolatileLog>>,
}

impl Queue {
    pub(crate) fn new(applied: u64, bytes_max: usize) -> Queue {
        Queue {
            last: applied,
            applied,
            commit_only: 0,
            entries: VecDeque::new(),
            bytes: 0,
            bytes_max,
            volatile: None,
        }
    }

    /// Keeps every operation from now on in the volatile log as well.
    pub(crate) fn attach(&mut self, volatile: Arc<VolatileLog>) {
        // Earlier operations are not in it: it counts once those are committed.
        volatile.skip(self.last);
        self.volatile = Some(volatile);
    }

    /// Ends what [`Queue::attach`] began.
    pub(crate) fn detach(&mut self) {
        self.volatile = None;
    }

    /// Numbers an operation and keeps it for the log.
    pub(crate) fn push(&mut self, operation: &Operation<'_>, data: Vec<Piece>) {
        self.put(operation, data, None);
    }

    /// The same for an operation whose request must be done exactly once.
    pub(crate) fn push_asked(&mut self, operation: &Operation<'_>, request: Option<&Request<'_>>) {
        self.put(operation, Vec::new(), request);
    }

    fn put(&mut self, operation: &Operation<'_>, data: Vec<Piece>, request: Option<&Request<'_>>) {
        self.last += 1;
        let mut head = Vec::with_capacity(64);
        operation.encode(&mut head);
        let queued = Queued { head, data };
        if let Some(volatile) = &self.volatile {
            let asked = request.map(|request| (request, outcome(operation)));
            volatile.append(self.last, queued.parts(), asked);
        }
        self.bytes += queued.len() + std::mem::size_of::<Queued>();
        self.entries.push_back(queued);
        if self.bytes > self.bytes_max {
            self.give_up_log();
        }
    }

    /// Numbers an operation that has no form in the log.
    pub(crate) fn push_commit_only(&mut self) {
        self.last += 1;
        if let Some(volatile) = &self.volatile {
            volatile.skip(self.last);
        }
        self.give_up_log();
    }

    /// From now on only a commit makes what is queued durable.
    pub(crate) fn give_up_log(&mut self) {
        self.entries.clear();
        self.bytes = 0;
        self.commit_only = self.last;
    }

    /// Whether what is queued may be logged.
    pub(crate) fn can_log(&self) -> bool {
        self.commit_only <= self.applied
    }

    /// Takes the queue for the log: the number of the first entry, and the entries.
    pub(crate) fn take(&mut self) -> (u64, VecDeque<Queued>) {
        let entries = std::mem::take(&mut self.entries);
        self.bytes = 0;
        (self.last + 1 - entries.len() as u64, entries)
    }

    /// Everything up to `applied` is in a durable commit.
    pub(crate) fn commit_done(&mut self, applied: u64) {
        self.applied = self.applied.max(applied);
        let first = self.last + 1 - self.entries.len() as u64;
        for _ in first..=applied {
            let Some(entry) = self.entries.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(entry.len() + std::mem::size_of::<Queued>());
        }
    }
}
