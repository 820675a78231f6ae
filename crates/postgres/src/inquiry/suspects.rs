//! Commits that can have changed an answer.

use super::{FIRST_OF_USERS, place};
use crate::archive::Archive;
use crate::archive::reader::{LogReader, Step};
use crate::archive::record::Meaning;
use crate::archive::written::written;
use crate::lsn::Lsn;
use offshoot_connector::Reads;
use offshoot_types::{Failure, LogPosition};
use std::collections::HashSet;

/// Records between two looks at whether to go on.
const TICK_RECORDS: u64 = 4096;

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
) -> Result<Option<Vec<LogPosition>>, Failure> {
    let (false, Some(begun_before)) = (reads.unknown, reads.begun_before) else { return Ok(None) };
    let mut reader = LogReader::new(archive, archive.history()?);
    // Transactions that wrote something that matters, and files that were made meanwhile: they may be read by then.
    let (mut writers, mut made) = (HashSet::new(), HashSet::new());
    let (mut suspects, mut records) = (Vec::new(), 0_u64);
    let mut position = reader.first_record(from)?.0;
    while position < to {
        let Step::Record(found) = reader.next_record(position)? else { break };
        position = found.end;
        records += 1;
        if records.is_multiple_of(TICK_RECORDS) {
            tick()?;
        }
        let Some(written) = written(reader.record(), reader.magic()) else { return Ok(None) };
        if found.manager == MANAGER_DATABASE {
            // Files of a new database have the numbers of those that they were copied from.
            return Ok(None);
        }
        made.extend(written.made);
        let matters = |(database, file): &(u32, u32)| {
            *file < FIRST_OF_USERS
                || made.contains(&(*database, *file))
                || reads.places.contains(&place(*database, *file))
        };
        if written.xid != 0 && written.files.iter().any(matters) {
            writers.insert(written.xid);
        }
        let Meaning::Commit { xid, .. } = found.meaning else { continue };
        if found.end > to {
            break;
        }
        let own = [xid].into_iter().chain(written.subtransactions.iter().copied());
        let suspect = |xid: u32| writers.remove(&xid) || precedes(xid, begun_before);
        // Each is looked at, so that none stays behind.
        if own.map(suspect).fold(written.changes_catalog, |any, one| any || one) {
            suspects.push(found.end.into());
        }
    }
    Ok(Some(suspects))
}

/// Whether a transaction's number is before another's; numbers wrap around.
pub(super) fn precedes(xid: u32, other: u32) -> bool {
    xid.wrapping_sub(other).cast_signed() < 0
}
