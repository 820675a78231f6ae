//! Making a new root durable.
//!
//! A commit first plans, against the table but without changing it, what the new root adds and what
//! the old root alone reached; then makes that durable; then applies it to the table. References are
//! counted by walking from the new root through the blocks that are not committed yet, and from the
//! old root through the nodes nobody refers to any more (a bounded number; `reclaim` does the rest).
//! What both trees share is added and subtracted in the same plan and costs no record.
//!
//! What must hold for every commit, whatever its order, is in `invariants`.
//!
//! Order of a commit, each rule beside the code that keeps it:
//! 1. blocks durable before anything that points to them (`Segments::flush`, called first),
//! 2. the table's log durable before the root that counts it (`Journal::commit`),
//! 3. the root durable before the commit is reported (`Journal::write_root`),
//! 4. only then is the space of unreachable blocks given back (`Pool::apply`).
//!
//! A device without room at a flush (one that promised more than it has) is no reason to refuse
//! everything that follows. But what was flushed may be lost, and a later flush would not report it.
//! So it is never flushed again, but rewritten: blocks in a new segment, by later transactions, as
//! this one and all that were writing fail (`Segments::is_reliable`); the table's log in the same
//! place, which no root counts; and a root slot gets the previous root, before anything else
//! (`Journal::settle`). After any other failure of a flush all writes are refused.

use crate::durable::{EXTRA_LEN_MAX, Root};
use crate::invariants;
use crate::journal::Journal;
use crate::pool::Pool;
use crate::roots::CommitError;
use crate::table::{Entry, Move};
use crate::transaction::{Children, Difference, Transaction};
use crate::{Error, Result};
use offshoot_cache::BlockHashBuilder;
use offshoot_format::root::RootSlot;
use offshoot_format::segment::BlockKind;
use offshoot_format::table::Record;
use offshoot_types::{BlockHash, Txg};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;

/// Dead nodes whose children any commit may release, in addition to as many as it wrote.
const CASCADE_MIN: usize = 256;

/// What a commit does to one block.
#[derive(Debug, Clone, Copy)]
struct Change {
    kind: BlockKind,
    was_committed: bool,
    refs_before: u32,
    refs: u32,
    /// The new tree reaches it, and what it refers to was counted.
    acquired: bool,
    /// Dropped: unreachable, unpinned, and (a node) its children released in this plan.
    gone: bool,
}

impl Change {
    fn matters(&self) -> bool {
        self.gone || self.refs != self.refs_before || (!self.was_committed && self.refs > 0)
    }

    /// It was lost and is found again, by a transaction whose commit is still to come.
    fn stays_lost(&self) -> bool {
        !self.was_committed && !self.acquired
    }
}

/// All changes of one commit.
#[derive(Default)]
pub(crate) struct Plan {
    changes: HashMap<BlockHash, Change, BlockHashBuilder>,
}

struct Planner<'a> {
    pool: &'a Pool,
    transaction: Option<&'a Transaction>,
    plan: Plan,
    /// In order of arrival: the bound never cuts off what was to be dropped first.
    unreferenced: VecDeque<BlockHash>,
    cascade_left: usize,
    /// Nodes that a new node replaces, with the references that the new one no longer has: the new
    /// node inherits the other references if this plan drops the old one, and they are not counted.
    inherited: HashMap<BlockHash, Box<[BlockHash]>, BlockHashBuilder>,
}

impl<'a> Planner<'a> {
    fn new(pool: &'a Pool, transaction: Option<&'a Transaction>, cascade_left: usize) -> Self {
        Planner {
            pool,
            transaction,
            plan: Plan::default(),
            unreferenced: VecDeque::new(),
            cascade_left,
            inherited: HashMap::default(),
        }
    }

    fn change(&mut self, hash: &BlockHash) -> Result<&mut Change> {
        match self.plan.changes.entry(*hash) {
            std::collections::hash_map::Entry::Occupied(change) => Ok(change.into_mut()),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                let entry = self.pool.table.get(hash).ok_or(Error::Missing(*hash))?;
                let was_committed = entry.is_committed();
                Ok(vacant.insert(Change {
                    kind: entry.kind(),
                    was_committed,
                    refs_before: entry.refs,
                    refs: entry.refs,
                    acquired: false,
                    gone: false,
                }))
            }
        }
    }

    /// Counts a reference to `root`, and those of every uncommitted node it reaches.
    fn acquire(&mut self, root: BlockHash) -> Result<()> {
        let mut stack = vec![root];
        while let Some(hash) = stack.pop() {
            let pool = self.pool;
            let change = self.change(&hash)?;
            let first = !change.was_committed && !change.acquired;
            if first && !pool.is_flushed(&hash) {
                return Err(Error::Full { needed: 0, available: 0 });
            }
            change.acquired = true;
            change.refs = change.refs.checked_add(1).ok_or_else(|| too_many(&hash))?;
            if first && change.kind == BlockKind::Node {
                let written = self.transaction.and_then(|transaction| transaction.children(&hash));
                match written.ok_or(Error::Missing(hash))? {
                    Children::All(children) => stack.extend(children),
                    Children::Like(difference) => self.acquire_like(difference, &mut stack)?,
                }
            }
        }
        Ok(())
    }

    /// For a node that replaces another, counts what the other does not refer to. The rest is
    /// inherited, or counted here if another node already inherits it.
    fn acquire_like(&mut self, new: Difference, stack: &mut Vec<BlockHash>) -> Result<()> {
        stack.extend(new.added);
        match self.inherited.entry(new.like) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(new.removed);
            }
            std::collections::hash_map::Entry::Occupied(_) => {
                stack.extend(without(self.pool.children_of(&new.like)?, &new.removed));
            }
        }
        Ok(())
    }

    /// Counts what could not be inherited, as the old node stays.
    fn acquire_shared(&mut self) -> Result<()> {
        for (like, removed) in std::mem::take(&mut self.inherited) {
            for hash in without(self.pool.children_of(&like)?, &removed) {
                let change = self.change(&hash)?;
                // The old node refers to it: it can be gone only if counts are wrong.
                if change.gone {
                    return Err(Error::Missing(hash));
                }
                change.refs = change.refs.checked_add(1).ok_or_else(|| too_many(&hash))?;
            }
        }
        Ok(())
    }

    /// Removes a reference. A wrong count is a fault, not a reason to stop: the space leaks.
    fn release(&mut self, hash: BlockHash) {
        match self.change(&hash) {
            Ok(change) if change.refs > 0 => {
                change.refs -= 1;
                if change.refs == 0 {
                    self.unreferenced.push_back(hash);
                }
            }
            Ok(_) => self.pool.faults.add_structure(hash, "it has fewer references than parents"),
            Err(_) => {
                self.pool.faults.add_structure(hash, "a node refers to it, but it is missing")
            }
        }
    }

    /// Drops blocks without references, and releases the children of nodes, up to the bound.
    fn cascade(&mut self) {
        while let Some(hash) = self.unreferenced.pop_front() {
            let Some(change) = self.plan.changes.get(&hash).copied() else { continue };
            if change.refs > 0 || change.gone || !change.was_committed {
                continue;
            }
            let children = match change.kind {
                BlockKind::Data => Vec::new(),
                BlockKind::Node if self.cascade_left == 0 => continue,
                BlockKind::Node => {
                    self.cascade_left -= 1;
                    match self.inherited.get(&hash) {
                        Some(removed) => removed.to_vec(),
                        None => {
                            // A damaged node is already a fault; its children's space leaks.
                            let Ok(children) = self.pool.children_of(&hash) else { continue };
                            children
                        }
                    }
                }
            };
            let own = self.transaction.is_some_and(|transaction| transaction.holds(&hash));
            if !self.pool.table.mark_dying(&hash, u32::from(own)) {
                continue;
            }
            if let Some(change) = self.plan.changes.get_mut(&hash) {
                change.gone = true;
            }
            self.inherited.remove(&hash);
            for child in children {
                self.release(child);
            }
        }
    }
}

fn too_many(hash: &BlockHash) -> Error {
    Error::Failed(format!("block {hash} has more references than can be counted"))
}

/// `children` without each of `removed`, as often as it is listed there.
fn without(mut children: Vec<BlockHash>, removed: &[BlockHash]) -> Vec<BlockHash> {
    for hash in removed {
        if let Some(at) = children.iter().position(|child| child == hash) {
            children.swap_remove(at);
        }
    }
    children
}

impl Pool {
    /// Makes `new_root` (a node written by `transaction`, the present root, or [`BlockHash::ZERO`])
    /// and `extra` (at most [`EXTRA_LEN_MAX`] bytes) durable, with all that the new root reaches.
    /// Commits are serialised; the caller must have derived `new_root` from the present root, so it
    /// must serialise everything from reading the root to this call.
    ///
    /// # Errors
    /// `Full`, and `Io` before the root was touched, leave the pool as it was, with the transaction
    /// undone. After a failed flush every later commit is `Failed`.
    pub fn commit(
        &self,
        transaction: Transaction,
        new_root: BlockHash,
        extra: &[u8],
    ) -> Result<Txg> {
        assert!(std::ptr::eq(self, &*transaction.pool), "a transaction is committed to its pool");
        if extra.len() > EXTRA_LEN_MAX {
            let len = extra.len();
            return Err(Error::TooLarge { what: "a root's extra bytes", len, max: EXTRA_LEN_MAX });
        }
        let began = self.clock.elapsed();
        // This keeps ORDER 1: everything the new root reaches was appended before this call.
        self.flush_segments()?;
        let mut journal = self.durable.begin()?;
        let cascade_max = CASCADE_MIN + 2 * transaction.nodes_written();
        let mut planner = Planner::new(self, Some(&transaction), cascade_max);
        let old_root = journal.root.hash;
        if new_root != old_root {
            if !new_root.is_zero() {
                planner.acquire(new_root)?;
            }
            if !old_root.is_zero() {
                planner.release(old_root);
            }
            planner.cascade();
            if let Err(error) = planner.acquire_shared() {
                self.unmark(&planner.plan);
                return Err(error);
            }
        }
        let plan = planner.plan;
        let txg = self.make_durable(&mut journal, &plan, new_root, extra.to_vec())?;
        self.apply(plan);
        drop(journal);
        self.commits.record(self.clock.elapsed().saturating_sub(began));
        self.space.correct(&self.segments);
        Ok(txg)
    }

    /// Releases the children of dead nodes; the root stays. One that is pinned comes back into the queue
    /// when its last pin is gone.
    pub(crate) fn bury(&self, dead: &[BlockHash]) -> Result<()> {
        let mut journal = self.durable.begin()?;
        let mut planner = Planner::new(self, None, 2 * dead.len());
        for hash in dead {
            // In use again, or gone: then it is not ours.
            if planner.change(hash).is_ok_and(|change| change.was_committed && change.refs == 0) {
                planner.unreferenced.push_back(*hash);
            }
        }
        planner.cascade();
        let plan = planner.plan;
        if !plan.changes.values().any(Change::matters) {
            return Ok(());
        }
        let (hash, extra) = (journal.root.hash, journal.root.extra.clone());
        self.make_durable(&mut journal, &plan, hash, extra)?;
        self.apply(plan);
        Ok(())
    }

    /// Makes blocks' new places durable, then the table's. The blocks are durable already.
    pub(crate) fn move_blocks(&self, moves: &[(BlockHash, Move)]) -> Result<()> {
        let mut journal = self.durable.begin()?;
        if !moves.iter().all(|(_, moved)| self.segments.is_reliable(moved.to)) {
            moves.iter().for_each(|(_, moved)| self.segments.release(moved.to));
            return Err(Error::Full { needed: 0, available: 0 });
        }
        let mut records = Vec::new();
        for (hash, moved) in moves {
            let entry = self.table.get(hash);
            if let Some(mut entry) = entry.filter(|entry| entry.place() == moved.from)
                && entry.is_committed()
            {
                entry.set_place(moved.to, moved.codec);
                Record::Put(*hash, entry.durable(entry.refs)).encode(&mut records);
            }
        }
        let (hash, extra) = (journal.root.hash, journal.root.extra.clone());
        let written = self.write_root(&mut journal, hash, extra, &records);
        for (hash, moved) in moves {
            // ORDER 4 holds for the old place of a moved block. A block that was committed only
            // now, or dropped, leaves a record of the new place that nothing depends on.
            let relocated = written.is_ok() && self.table.relocate(hash, moved);
            self.segments.release(if relocated { moved.from } else { moved.to });
        }
        written.map(|_| ())
    }

    /// Writes the plan's records and the root.
    fn make_durable(
        &self,
        journal: &mut Journal,
        plan: &Plan,
        hash: BlockHash,
        extra: Vec<u8>,
    ) -> Result<Txg> {
        let mut records = Vec::new();
        if self.options.check_invariants {
            self.check_plan(plan);
        }
        for (hash, change) in plan.changes.iter().filter(|(_, change)| change.matters()) {
            assert!(!change.gone || change.refs == 0, "{hash} is dropped and referred to");
            if change.gone || (change.stays_lost() && change.refs == 0) {
                Record::Gone(*hash).encode(&mut records);
            } else if change.stays_lost() {
                let lost = Entry::lost(change.refs).durable(change.refs);
                Record::Put(*hash, lost).encode(&mut records);
            } else if let Some(entry) = self.table.get(hash) {
                Record::Put(*hash, entry.durable(change.refs)).encode(&mut records);
            }
        }
        let durable = self.write_root(journal, hash, extra, &records);
        if durable.is_err() {
            self.unmark(plan);
        }
        durable
    }

    /// Asserts the invariants 2 and 3 of each block of a plan, and 4.
    fn check_plan(&self, plan: &Plan) {
        invariants::assert_accounts(&self.segments);
        for (hash, change) in plan.changes.iter().filter(|(_, change)| change.matters()) {
            match self.table.get(hash) {
                Some(entry) if change.gone => {
                    invariants::assert_may_be_dropped(hash, change.refs, &entry);
                }
                Some(entry) if !change.stays_lost() => {
                    invariants::assert_durable(&self.segments, hash, &entry);
                }
                _ => {}
            }
        }
    }

    /// Removes the marks in the table of a plan that will not be applied.
    fn unmark(&self, plan: &Plan) {
        for (hash, _) in plan.changes.iter().filter(|(_, change)| change.gone) {
            self.table.unmark_dying(hash);
        }
    }

    fn write_root(
        &self,
        journal: &mut Journal,
        hash: BlockHash,
        extra: Vec<u8>,
        records: &[u8],
    ) -> Result<Txg> {
        let txg = Txg(journal.root.txg.0 + 1);
        let next = RootSlot {
            txg,
            hash,
            checkpoint: 0,
            logs: Vec::new(),
            zero_saved: self.savings.zero.load(Ordering::Relaxed),
            dedup_saved: self.savings.dedup.load(Ordering::Relaxed),
            extra: extra.clone(),
        };
        let outcome = match journal.commit(next.clone(), records) {
            Err(CommitError::Undone(Error::Full { .. })) if self.space.release_ballast() => {
                journal.commit(next, records)
            }
            other => other,
        };
        self.check_outcome(journal, outcome)?;
        self.durable.publish(Root { txg, hash, extra });
        self.space.set_table(journal.used());
        Ok(txg)
    }

    /// Remembers that the outcome of a write is unknown.
    pub(crate) fn check_outcome(
        &self,
        journal: &Journal,
        outcome: std::result::Result<(), CommitError>,
    ) -> Result<()> {
        // ORDER 4: nor before it is known that the device has no newer root.
        self.segments.hold_dead(journal.is_doubtful());
        outcome.map_err(|error| match error {
            CommitError::Undone(error) => error,
            CommitError::Unknown(error) => self.durable.fail(error),
        })
    }

    /// Applies a durable plan to the table.
    ///
    /// ORDER 4: space MUST NOT be given back before a root that does not need it is durable. Every
    /// release of a committed block's place comes from here or from `move_blocks`, after the root.
    fn apply(&self, plan: Plan) {
        for (hash, change) in plan.changes.iter().filter(|(_, change)| change.matters()) {
            if change.stays_lost() {
                self.table.set_references(hash, change.refs);
                continue;
            }
            let unpinned = self.table.apply(hash, change.refs, change.gone);
            if !change.was_committed && change.refs_before > 0 {
                self.faults.forget(hash);
                tracing::info!(%hash, "a lost block came again");
            }
            self.settle(hash, unpinned);
        }
    }
}
