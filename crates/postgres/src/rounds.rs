//! Rounds: recovery points at any position of the log, without a checkpoint of the source there.
//!
//! A *round* recovers a private copy to a position X and stops it cleanly. Nobody has read a table in it, so the
//! copy is exactly what a standby is at X, and it can later go on along the source's log from X. For that the log
//! that its own server wrote is thrown away and the source's put back, and in this copy of the log the 120 bytes
//! before Q, the last record before X, become a checkpoint record C whose replay begins at itself. Q, which has been
//! replayed, becomes a NOOP of the same length that names C as its predecessor. The control file then says what that
//! of a standby says which was stopped at X and whose last restart point was at C.
//!
//! ```text
//!   the source's   … ─────────────────▶ Q ──▶ │X  next record (names Q)
//!   the copy's     … [C 114 bytes][pad 6] NOOP │X  next record (names Q)
//! ```
//!
//! Invariants
//! 1. Only a private copy is changed, never received log. A copy whose round was cut off is thrown away.
//! 2. The record at Q was replayed whole before it became a NOOP.
//! 3. Between the start of a round and its end nothing but the server itself worked in the copy: after X it wrote
//!    only what every server writes when its recovery ends ([`run`] reads its log). Whatever else starts a server on
//!    the copy removes the [`Point`]: a clone of it never goes on. Only a standby keeps it, which writes nothing else.
//! 4. A round runs with exactly the settings that the control file holds, or its server would record other ones,
//!    and discard commit timestamps where they are off.
//! 5. Q and C lie on the timeline of X, and no timeline ends between where replay begins and X.
//! 6. As long as the control file of a copy that went on names C (until the first restart point of a standby), whoever
//!    starts a server on it puts C and the NOOP into its log again: the [`Point`] stays beside them until then.

use crate::archive::reader::{Found, LogReader, Step};
use crate::archive::record::{PAGE_BYTES, PageHeader, RECORD_HEADER_BYTES};
use crate::archive::{Archive, TimelineHistory, damaged};
use crate::config::POINT_FILE;
use crate::files::write_file;
use crate::lsn::Lsn;
use control_file::CHECKPOINT_BYTES;
pub(crate) use control_file::ControlFile;
use offshoot_connector::DataDir;
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};

mod control_file;
mod forge;
mod run;

pub use forge::resume;
pub use run::run;

/// How [`Point`] is written.
const POINT_VERSION: u32 = 1;
const POINT_BYTES_MAX: u64 = 4 << 10;

const MANAGER_XLOG: u8 = 0;
/// Bytes of C: its header, that of its data, and the checkpoint.
const CHECKPOINT_RECORD_BYTES: usize = RECORD_HEADER_BYTES + 2 + CHECKPOINT_BYTES;
/// How far before Q C begins.
const FORGED_BYTES: u64 = CHECKPOINT_RECORD_BYTES.next_multiple_of(8) as u64;
/// No NOOP is shorter: its header, and that of no data.
const NOOP_BYTES_MIN: usize = RECORD_HEADER_BYTES + 2;
/// No round ends at a longer record: resuming makes as long a NOOP in memory. Those with images of pages have 264 KiB at
/// most; logical messages may have more.
const LAST_BYTES_MAX: usize = 16 << 20;
/// How much log is first looked through for a place to end.
const LOOK_BACK_BYTES: u64 = 8 * PAGE_BYTES;

/// Where a round can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Q: where its last record begins, after a page's header.
    last: Lsn,
    /// Q's bytes.
    length: u32,
    /// Q's checksum: whether it is this record that was replayed.
    checksum: u32,
    /// X: where Q ends.
    position: Lsn,
    /// The timeline of both.
    timeline: u32,
}

impl End {
    /// The last place at or before `limit` where a round that begins at `from`, the end of a record, can end.
    ///
    /// # Errors
    /// `DataDamaged`, `MomentUnavailable` when the log from `from` on is not kept.
    pub fn before(archive: &Archive, from: Lsn, limit: Lsn) -> Result<Option<End>, Failure> {
        let history = archive.history()?;
        let mut back = LOOK_BACK_BYTES;
        loop {
            let page = limit.0.saturating_sub(back) / PAGE_BYTES * PAGE_BYTES;
            let begin = from.max(Lsn(page));
            match End::last_between(archive, &history, begin, limit) {
                Ok(None) if begin > from => {}
                // The source left a file of the log before it was full: nothing begins in the rest of it.
                Err(failure) if failure.code == ErrorKind::DataDamaged && begin > from => {}
                // A server in plain crash recovery follows no other timeline.
                end => return Ok(end?.filter(|end| history.at(from).id == end.timeline)),
            }
            back = back.saturating_mul(4);
        }
    }

    /// The last place after a record that begins between two positions.
    fn last_between(
        archive: &Archive,
        history: &TimelineHistory,
        begin: Lsn,
        limit: Lsn,
    ) -> Result<Option<End>, Failure> {
        let mut reader = LogReader::new(archive, history.clone());
        let (mut position, _) = reader.first_record(begin)?;
        let mut end = None;
        while position < limit
            && let Step::Record(found) = reader.next_record(position)?
            && found.end <= limit
        {
            position = found.end;
            let timeline = history.at(found.start).id;
            end = End::after(&found, timeline, archive.segment_bytes()).or(end);
        }
        Ok(end)
    }

    /// After a record, if C and the beginning of Q fit into one page. The log's own records are left alone: a file
    /// ends at some of them, and recovery looks at others; so are those of the transactions that run: a standby
    /// answers after the first of them, and an idle source writes no other.
    fn after(last: &Found, timeline: u32, segment_bytes: u64) -> Option<End> {
        let (length, checksum) = (last.length, last.checksum);
        let end = End { last: last.start, length, checksum, position: last.end, timeline };
        let is_left = last.manager == MANAGER_XLOG || last.is_running_transactions();
        (!is_left && end.is_possible(segment_bytes)).then_some(end)
    }

    fn is_possible(&self, segment_bytes: u64) -> bool {
        let page = self.last.0 / PAGE_BYTES * PAGE_BYTES;
        let first = page + PageHeader::bytes_at(page, segment_bytes);
        let room = self.last.0.checked_sub(first);
        let aligned = self.last.0.is_multiple_of(8) && self.position.0.is_multiple_of(8);
        let bytes = self.position.0.checked_sub(self.last.0);
        aligned
            && room.is_some_and(|room| room >= FORGED_BYTES)
            && (NOOP_BYTES_MIN..=LAST_BYTES_MAX).contains(&(self.length as usize))
            && bytes.is_some_and(|bytes| bytes >= u64::from(self.length))
    }

    /// X: everything before it was replayed, nothing after it.
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// C: recovery from the point needs the log from here on.
    pub fn replay_from(&self) -> Lsn {
        Lsn(self.last.0.saturating_sub(FORGED_BYTES))
    }

    /// The timeline of the log there.
    pub fn timeline(&self) -> u32 {
        self.timeline
    }
}

/// What a data directory says of the round that it is the result of, or from which it went on as a standby that has made
/// no restart point since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    version: u32,
    system_identifier: u64,
    /// Where the round ended.
    end: End,
    /// Where the server's own last checkpoint is, in the log that is thrown away.
    stopped_at: Lsn,
}

impl Point {
    /// The point that a data directory is, or begins at; `None` if it is neither. A file that claims it but does not
    /// agree with the control file says nothing: somebody has worked there since.
    ///
    /// # Errors
    /// `DataDamaged` if the control file cannot be read.
    pub fn read(files: &dyn DataDir, segment_bytes: u64) -> Result<Option<Point>, Failure> {
        let Ok(bytes) = files.read_up_to(POINT_FILE, POINT_BYTES_MAX) else { return Ok(None) };
        let Ok(point) = serde_json::from_slice::<Point>(&bytes) else { return Ok(None) };
        let control = ControlFile::read(files)?;
        let agrees = point.version == POINT_VERSION
            && point.end.is_possible(segment_bytes)
            && control.system_identifier() == point.system_identifier
            && control.segment_bytes() == segment_bytes
            && (point.is_where_it_stopped(&control) || point.is_where_it_began(&control));
        Ok(agrees.then_some(point))
    }

    /// The point that a data directory is, if no server was started on it since.
    ///
    /// # Errors
    /// As [`Point::read`].
    pub(crate) fn read_stopped(files: &dyn DataDir) -> Result<Option<Point>, Failure> {
        let control = ControlFile::read(files)?;
        let point = Point::read(files, control.segment_bytes())?;
        Ok(point.filter(|point| point.is_where_it_stopped(&control)))
    }

    fn is_where_it_stopped(&self, control: &ControlFile) -> bool {
        control.is_shut_down() && control.checkpoint_at() == self.stopped_at
    }

    /// Whether a copy went on from it and its control file still names C.
    fn is_where_it_began(&self, control: &ControlFile) -> bool {
        control.is_of_standby() && control.checkpoint_at() == self.end.replay_from()
    }

    fn write(&self, files: &dyn DataDir) -> Result<(), Failure> {
        let text = serde_json::to_string(self)
            .map_err(|error| Failure::internal(format!("a recovery point: {error}")))?;
        write_file(files, POINT_FILE, &text)
    }

    /// Where the round ended.
    pub fn end(&self) -> &End {
        &self.end
    }
}

/// Where a cluster that was stopped cleanly has its last checkpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShutDown {
    pub(crate) position: Lsn,
    pub(crate) timeline: u32,
    pub(crate) segment_bytes: u64,
}

/// What the control file says of the stop; none if it was no clean one.
///
/// # Errors
/// `DataDamaged` if it cannot be read.
pub(crate) fn shut_down_at(files: &dyn DataDir) -> Result<Option<ShutDown>, Failure> {
    let control = ControlFile::read(files)?;
    let segment_bytes = control.segment_bytes();
    if segment_bytes == 0 {
        return Err(control_damaged("its log files have no size"));
    }
    let (position, timeline) = (control.checkpoint_at(), control.timeline());
    Ok(control.is_shut_down().then_some(ShutDown { position, timeline, segment_bytes }))
}

fn not_possible(why: &str) -> Failure {
    let hint = "recover it from a snapshot of staging";
    Failure::new(ErrorKind::WrongState, format!("no recovery point can be made: {why}"), hint)
}

fn control_damaged(why: &str) -> Failure {
    damaged("global/pg_control", why)
}

#[cfg(test)]
mod tests;
