//! Commits that can have changed an answer.

use super::{FIRST_OF_USERS, place};
use crate::archive::Archive;
use crate::archive::reader::{LogReader, Step};
use crate::archive::record::Meaning;
use crate::archive::written::{File, Written, written};
use crate::lsn::Lsn;
use offshoot_connector::{Reads, Suspect};
use offshoot_types::Failure;
use std::collections::{HashMap, HashSet};

/// Records between two looks at whether to go on.
const TICK_RECORDS: u64 = 4096;
/// Files of log before the range that are read for a list of running transactions; a source that works writes one every
/// 15 seconds.
const FILES_BEFORE_MAX: u64 = 8;

const MANAGER_DATABASE: u8 = 4;

/// As [`offshoot_connector::Inquirer::suspects`].
///
/// # Errors
/// As there.
pub(crate) fn suspects(
    archive: &Archive,
    (from, to): (Lsn, Lsn),
    reads: &Reads,
    tick: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<Option<Vec<Suspect>>, Failure> {
    if reads.unknown {
        return Ok(None);
    }
    let first = archive.files()?.iter().map(|file| file.number).min().unwrap_or_default();
    let number = archive.number_at(from);
    let earliest = number.saturating_sub(FILES_BEFORE_MAX).max(first);
    // Not from `from`: what began before is then known by what it wrote.
    for begin in (earliest..=number).rev() {
        let start = Lsn(begin.saturating_mul(archive.segment_bytes()));
        let bound = if begin == earliest { reads.begun_before } else { None };
        let mut look = Look { bound, ..Look::new(reads) };
        match look.read(archive, (start, from, to), tick)? {
            Looked::Found(suspects) => return Ok(Some(suspects)),
            Looked::Unknown => return Ok(None),
            Looked::BeganBefore => {}
        }
    }
    Ok(None)
}

/// What came of reading the log.
enum Looked {
    Found(Vec<Suspect>),
    /// It does not tell.
    Unknown,
    /// It has to be read from further back: which transactions began before is not known.
    BeganBefore,
}

struct Look<'a> {
    reads: &'a Reads,
    /// The databases that were read, and 0 for what all share.
    databases: HashSet<u32>,
    /// Transactions before this one may have begun before the log that is read.
    bound: Option<u32>,
    /// Transactions that wrote something that matters, and whether it was what was read.
    writers: HashMap<u32, bool>,
    /// Files that were made meanwhile: they may be read by then.
    made: HashSet<File>,
}

impl<'a> Look<'a> {
    fn new(reads: &'a Reads) -> Look<'a> {
        let databases = reads.places.iter().map(|place| (place >> 32) as u32).chain([0]);
        Look {
            reads,
            databases: databases.collect(),
            bound: None,
            writers: HashMap::new(),
            made: HashSet::new(),
        }
    }

    fn read(
        &mut self,
        archive: &Archive,
        (start, from, to): (Lsn, Lsn, Lsn),
        tick: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<Looked, Failure> {
        let mut reader = LogReader::new(archive, archive.history()?);
        let (mut suspects, mut records, mut listed) = (Vec::new(), 0_u64, false);
        let mut position = reader.first_record(start)?.0;
        while position < to {
            let Step::Record(found) = reader.next_record(position)? else { break };
            position = found.end;
            records += 1;
            if records.is_multiple_of(TICK_RECORDS) {
                tick()?;
            }
            let Some(written) = written(reader.record(), reader.magic()) else {
                return Ok(Looked::Unknown);
            };
            // A list says which number comes next: from there on everything is seen from its beginning.
            if let (Some(next), false) = (written.next_xid, listed || found.end > from) {
                (self.bound, listed) = (Some(next), true);
            }
            if found.end > from && self.bound.is_none() {
                return Ok(Looked::BeganBefore);
            }
            if found.manager == MANAGER_DATABASE && found.end > from {
                // Files of a new database have the numbers of those that they were copied from.
                return Ok(Looked::Unknown);
            }
            self.note(&written);
            let Meaning::Commit { xid, .. } = found.meaning else { continue };
            let suspect = self.suspect(xid, &written);
            if let Some(likely) = suspect.filter(|_| found.end > from && found.end <= to) {
                suspects.push(Suspect { end: found.end.into(), likely });
            }
        }
        Ok(Looked::Found(suspects))
    }

    /// Notes what a record wrote.
    fn note(&mut self, written: &Written) {
        self.made.extend(written.made);
        if written.xid == 0 {
            return;
        }
        for file in &written.files {
            let read = self.reads.places.contains(&place(file.0, file.1));
            let catalog = file.1 < FIRST_OF_USERS && self.databases.contains(&file.0);
            if read || catalog || self.made.contains(file) {
                *self.writers.entry(written.xid).or_default() |= read && !catalog;
            }
        }
    }

    /// Whether a commit can have changed the answer; then, whether it is likely.
    fn suspect(&mut self, xid: u32, written: &Written) -> Option<bool> {
        let here = |database| self.databases.contains(&database);
        let changes_catalog = written.changes_catalog && written.database.is_none_or(here);
        let mut suspect = changes_catalog.then_some(false);
        // Each is looked at, so that none stays behind.
        for xid in [xid].into_iter().chain(written.subtransactions.iter().copied()) {
            let wrote = self.writers.remove(&xid);
            let before = self.bound.is_none_or(|bound| precedes(xid, bound)).then_some(false);
            suspect = suspect.max(wrote).max(before);
        }
        suspect
    }
}

/// Whether a transaction's number is before another's; numbers wrap around.
pub(super) fn precedes(xid: u32, other: u32) -> bool {
    xid.wrapping_sub(other).cast_signed() < 0
}
