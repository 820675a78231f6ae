//! How transactions ended, as `pg_xact` has it: two bits each.

use crate::rounds::ControlFile;
use offshoot_connector::{DataDir, Differing, read_full};
use offshoot_types::Failure;
use std::io;

const PAGE_BYTES: u64 = 8192;
/// Transactions of a page.
const PER_PAGE: u64 = PAGE_BYTES * 4;
/// Pages of a file.
const FILE_PAGES: u64 = 32;
const COMMITTED: u8 = 1;
/// A subtransaction whose outcome is that of its parent.
const OF_PARENT: u8 = 3;

/// A copy's files, stopped cleanly, and what its control file says.
pub(super) struct Stopped<'a> {
    pub(super) files: &'a dyn DataDir,
    pub(super) control: ControlFile,
}

impl<'a> Stopped<'a> {
    /// None if it was not stopped cleanly: more may have happened than its control file says.
    pub(super) fn read(files: &'a dyn DataDir) -> Result<Option<Stopped<'a>>, Failure> {
        let control = ControlFile::read(files)?;
        Ok(control.is_shut_down().then_some(Stopped { files, control }))
    }
}

/// The first transaction whose outcome is not the same in two copies, of those that have begun in both and whose numbers
/// may still stand in rows of both; none: there is none.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn first_difference(
    left: &Stopped<'_>,
    right: &Stopped<'_>,
    differing: &Differing<'_>,
) -> Result<Option<u64>, Failure> {
    let from = left.control.oldest_transaction().max(right.control.oldest_transaction());
    let to = left.control.next_transaction().min(right.control.next_transaction());
    let failed = |error: io::Error| {
        Failure::internal(format!("how transactions ended cannot be compared: {error}"))
    };
    let mut file = from / PER_PAGE / FILE_PAGES;
    while file * FILE_PAGES * PER_PAGE < to {
        let found = first_in_file(left, right, differing, file, from..to).map_err(failed)?;
        if found.is_some() {
            return Ok(found);
        }
        file += 1;
    }
    Ok(None)
}

fn first_in_file(
    left: &Stopped<'_>,
    right: &Stopped<'_>,
    differing: &Differing<'_>,
    file: u64,
    within: std::ops::Range<u64>,
) -> io::Result<Option<u64>> {
    let first = file * FILE_PAGES * PER_PAGE;
    // Numbers are used again after 2³² transactions.
    let name = format!("pg_xact/{:04X}", (first as u32) / (PER_PAGE * FILE_PAGES) as u32);
    let Some(pages) = differing(&name)? else { return Ok(Some(first.max(within.start))) };
    for page in pages.into_iter().flatten() {
        let (mut a, mut b) = (vec![0; PAGE_BYTES as usize], vec![0; PAGE_BYTES as usize]);
        read_full(&*left.files.open(&name)?, page * PAGE_BYTES, &mut a)?;
        read_full(&*right.files.open(&name)?, page * PAGE_BYTES, &mut b)?;
        let base = first + page * PER_PAGE;
        let found = differing_in(&a, &b).map(|at| base + at).find(|one| within.contains(one));
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Transactions of a page, counted from its first, that were committed in one alone.
fn differing_in(left: &[u8], right: &[u8]) -> impl Iterator<Item = u64> {
    let bytes = left.iter().zip(right).enumerate().filter(|(_, (a, b))| a != b);
    bytes.flat_map(|(at, (a, b))| {
        let (a, b) = (*a, *b);
        let outcome = |byte: u8, slot: u64| byte >> (2 * slot) & 3;
        (0..4).filter_map(move |slot| {
            let (a, b) = (outcome(a, slot), outcome(b, slot));
            // What is under way in a copy that was stopped never ends: it counts as rolled back.
            let same = a == b || ![a, b].contains(&COMMITTED) && ![a, b].contains(&OF_PARENT);
            (!same).then_some(at as u64 * 4 + slot)
        })
    })
}

#[cfg(test)]
mod tests;
