//! What must hold whenever a commit is made durable.
//!
//! 1. *A root is newer than the one before it*: each commit counts one more. Otherwise nobody would take it for the
//!    newest, and what was acknowledged with it would be gone.
//! 2. *What a record names is durable*: a block's place is in its file, and a successful flush has covered it.
//! 3. *Nobody refers to or uses what is dropped*: it has no references in the plan, is marked dying in the table,
//!    and only the committing transaction pins it.
//! 4. *Bytes of a segment belong to a live block or are dead*, never both: dead bytes are given back or
//!    overwritten.
//!
//! Checks that cost nothing are asserted in every build if continuing would cost data: 1, 3, and 4 at each place that
//! is overwritten. What a wrong table on disk could break is not asserted, but must do no harm: a place that is given
//! back twice is not used again, and a segment whose accounts do not add up is not deleted. The other checks look at
//! every block of a commit and at every segment, and run if [`crate::PoolOptions::check_invariants`] says so, in debug
//! builds and in the simulation.

use crate::segments::Segments;
use crate::table::Entry;
use offshoot_format::root::RootSlot;
use offshoot_types::BlockHash;

/// Invariant 1.
pub(crate) fn follows(last: &RootSlot, next: &RootSlot) -> bool {
    next.txg > last.txg
}

/// Asserts invariant 1.
pub(crate) fn assert_follows(last: &RootSlot, next: &RootSlot) {
    assert!(follows(last, next), "root {} after root {}", next.txg.0, last.txg.0);
}

/// Invariant 2 of a block whose record is about to be written. What is committed is durable.
pub(crate) fn is_durable(segments: &Segments, entry: &Entry) -> bool {
    entry.is_committed() || segments.is_durable(entry.place())
}

/// Asserts invariant 2.
pub(crate) fn assert_durable(segments: &Segments, hash: &BlockHash, entry: &Entry) {
    assert!(is_durable(segments, entry), "{hash} is to be named and is not durable: {entry:?}");
}

/// Invariant 3 for a dropped block that has this many references left.
pub(crate) fn may_be_dropped(refs: u32, entry: &Entry) -> bool {
    refs == 0 && entry.is_dying()
}

/// Asserts invariant 3.
pub(crate) fn assert_may_be_dropped(hash: &BlockHash, refs: u32, entry: &Entry) {
    assert!(
        may_be_dropped(refs, entry),
        "{hash} is to be dropped with {refs} references: {entry:?}"
    );
}

/// Asserts invariant 4 of every segment.
pub(crate) fn assert_accounts(segments: &Segments) {
    let problems = segments.accounts_that_do_not_add_up();
    assert!(problems.is_empty(), "{problems:?}");
}

#[cfg(test)]
mod tests;
