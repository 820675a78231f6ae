//! How transactions ended, as `pg_xact` has it: two bits each.

use crate::rounds::ControlFile;
use offshoot_connector::{DataDir, Differing, read_full};
use offshoot_types::Failure;
use std::collections::BTreeMap;
use std::io;

const PAGE_BYTES: u64 = 8192;
/// Transactions of a page.
const PER_PAGE: u64 = PAGE_BYTES * 4;
/// Pages of a file.
const FILE_PAGES: u64 = 32;
const COMMITTED: u8 = 1;
/// A subtransaction whose outcome is that of its parent.
const OF_PARENT: u8 = 3;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Committed,
    /// Or was under way when the copy was stopped.
    RolledBack,
    /// As its parent did; or nobody knows any more.
    Unknown,
}

/// How transactions of a copy ended that was stopped cleanly.
pub(super) struct Outcomes<'a> {
    files: &'a dyn DataDir,
    /// By their numbers; none: it is not there.
    pages: BTreeMap<u32, Option<Vec<u8>>>,
}

impl<'a> Outcomes<'a> {
    pub(super) fn new(files: &'a dyn DataDir) -> Outcomes<'a> {
        Outcomes { files, pages: BTreeMap::new() }
    }

    /// Of the transaction with a number as it is written in rows.
    pub(super) fn of(&mut self, number: u32) -> Outcome {
        let page = number / PER_PAGE as u32;
        let bytes = self.pages.entry(page).or_insert_with(|| read_page(self.files, page).ok());
        let byte =
            bytes.as_ref().and_then(|bytes| bytes.get((number % PER_PAGE as u32 / 4) as usize));
        match byte.map(|byte| byte >> (2 * (number % 4)) & 3) {
            Some(COMMITTED) => Outcome::Committed,
            None | Some(OF_PARENT) => Outcome::Unknown,
            Some(_) => Outcome::RolledBack,
        }
    }
}

fn read_page(files: &dyn DataDir, page: u32) -> io::Result<Vec<u8>> {
    let (file, within) = (page / FILE_PAGES as u32, u64::from(page) % FILE_PAGES);
    let mut bytes = vec![0; PAGE_BYTES as usize];
    let filled = read_full(&*files.open(&file_name(file))?, within * PAGE_BYTES, &mut bytes)?;
    bytes.truncate(filled);
    Ok(bytes)
}

/// The file of this number.
fn file_name(number: u32) -> String {
    format!("pg_xact/{number:04X}")
}

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
    let name = file_name((first as u32) / (PER_PAGE * FILE_PAGES) as u32);
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
