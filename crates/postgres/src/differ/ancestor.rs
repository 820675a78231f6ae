//! The state that says which pages need not be read: see the front page of [`super`].

use super::outcomes::{Stopped, first_difference};
use crate::settled;
use offshoot_connector::{Ancestor, DataDir, Differing, NextAncestor};
use offshoot_types::Failure;

/// States that are tried.
const TRIED_MAX: usize = 24;

/// What two copies have in common.
pub(crate) struct Common {
    /// The state that both come from.
    pub(crate) ancestor: Ancestor,
    /// Transactions before this one had begun there, and have ended in the same way in both.
    pub(crate) shared: u64,
}

/// Finds the nearest state that will do; or why none does.
///
/// # Errors
/// When files cannot be read.
pub(crate) fn find(
    (left, right): (&dyn DataDir, &dyn DataDir),
    differing: &Differing<'_>,
    ancestors: &mut NextAncestor<'_>,
) -> Result<Result<Common, &'static str>, Failure> {
    let (Some(a), Some(b)) = (Stopped::read(left)?, Stopped::read(right)?) else {
        return Ok(Err("a copy was not stopped cleanly"));
    };
    if a.control.system_identifier() != b.control.system_identifier() {
        return Ok(Err("they come from different clusters"));
    }
    let first = first_difference(&a, &b, differing)?;
    let begun = a.control.next_transaction().min(b.control.next_transaction());
    for _ in 0..TRIED_MAX {
        let Some(ancestor) = ancestors()? else { break };
        let Some(begun_there) = begun_at(&ancestor)? else { continue };
        if begun_there <= begun && first.is_none_or(|first| begun_there <= first) {
            return Ok(Ok(Common { ancestor, shared: begun_there }));
        }
    }
    Ok(Err("no state that is kept is before transactions that ended only in one of them"))
}

/// A number that all transactions that have written to tables of a state are before; none: it does not say.
fn begun_at(ancestor: &Ancestor) -> Result<Option<u64>, Failure> {
    let Some(stopped) = Stopped::read(&*ancestor.files)? else { return Ok(None) };
    let noted = match ancestor.of_source {
        true => settled::first(&*ancestor.files, &stopped.control),
        false => None,
    };
    Ok(Some(noted.unwrap_or_else(|| stopped.control.next_transaction())))
}
