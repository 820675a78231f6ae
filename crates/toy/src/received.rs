//! What was received of a source's journal: files of the same form, and an index of commits in memory, which is
//! read from them again at each start.

use crate::journal::{Journal, Reader, SEGMENT_BYTES, Step, damaged, segment_name, segment_start};
use crate::state::JOURNAL;
use jiff::Timestamp;
use offshoot_connector::{Commit, DataDir, LogFeed, LogTarget, ReceivedLog, read_full};
use offshoot_domain::FoundCommit;
use offshoot_types::{ErrorKind, Failure, LogPosition};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

/// What stands for the directory in messages.
const WHAT: &str = "received log";

#[derive(Debug, Clone, Copy)]
struct Entry {
    begin: u64,
    end: u64,
    time_us: i64,
    number: u64,
}

struct Index {
    reader: Reader,
    /// Where the next record begins; none before the first was found.
    position: Option<u64>,
    entries: Vec<Entry>,
}

pub(crate) struct Received {
    dir: Arc<dyn DataDir>,
    journal: Journal,
    index: Mutex<Index>,
}

impl Received {
    pub(crate) fn new(dir: Arc<dyn DataDir>) -> Received {
        let journal = Journal::new(dir.clone(), "");
        let reader = Reader::new(journal.clone());
        let index = Mutex::new(Index { reader, position: None, entries: Vec::new() });
        Received { dir, journal, index }
    }

    fn pick<'a>(
        &self,
        entries: &'a Index,
        pick: impl Fn(&'a [Entry]) -> Option<&'a Entry>,
    ) -> Option<Commit> {
        pick(&entries.entries).map(|entry| Commit {
            end: LogPosition(entry.end),
            time: Timestamp::from_microsecond(entry.time_us).unwrap_or_default(),
        })
    }
}

impl Index {
    fn step(&mut self, journal: &Journal) -> Result<bool, Failure> {
        let position = match self.position {
            Some(position) => position,
            None => {
                let range = journal.range().map_err(|error| damaged(WHAT, error))?;
                let Some((begin, _)) = range else { return Ok(false) };
                let first = self.reader.first(begin).map_err(|error| damaged(WHAT, error))?;
                let first = first.map_err(|_| no_record(begin))?;
                self.position = first;
                if first.is_none() {
                    self.reader.forget();
                }
                return Ok(first.is_some());
            }
        };
        match self.reader.next(position).map_err(|error| damaged(WHAT, error))? {
            Step::Record(record, end) => {
                let (time_us, number) = (record.time_us, record.number);
                self.entries.push(Entry { begin: position, end, time_us, number });
                self.position = Some(end);
                Ok(true)
            }
            Step::End => Ok(false),
            Step::Damaged => {
                self.reader.forget();
                Err(no_record(position))
            }
        }
    }
}

fn no_record(position: u64) -> Failure {
    damaged(&segment_name(position / SEGMENT_BYTES), format!("there is no record at j{position}"))
}

impl ReceivedLog for Received {
    fn update_until(&self, enough: LogPosition) -> Result<LogPosition, Failure> {
        let mut index = self.index.lock();
        while index.position.is_none_or(|position| position < enough.0) {
            if !index.step(&self.journal)? {
                break;
            }
        }
        Ok(LogPosition(index.position.unwrap_or_default()))
    }

    fn end(&self) -> LogPosition {
        LogPosition(self.index.lock().position.unwrap_or_default())
    }

    fn begin(&self) -> Result<Option<LogPosition>, Failure> {
        let range = self.journal.range().map_err(|error| damaged(WHAT, error))?;
        Ok(range.map(|(begin, _)| LogPosition(begin)))
    }

    fn last_not_after(&self, time: Timestamp) -> Result<Option<Commit>, Failure> {
        let time_us = time.as_microsecond();
        let index = self.index.lock();
        Ok(self.pick(&index, |all| all.iter().rfind(|entry| entry.time_us <= time_us)))
    }

    fn last_at(&self, position: LogPosition) -> Result<Option<Commit>, Failure> {
        let index = self.index.lock();
        Ok(self.pick(&index, |all| all.iter().rfind(|entry| entry.begin <= position.0)))
    }

    fn next_after(&self, position: LogPosition) -> Result<Option<Commit>, Failure> {
        let index = self.index.lock();
        Ok(self.pick(&index, |all| all.iter().find(|entry| entry.begin >= position.0)))
    }

    fn last(&self) -> Result<Option<Commit>, Failure> {
        let index = self.index.lock();
        Ok(self.pick(&index, <[Entry]>::last))
    }

    fn count_by_time(
        &self,
        from: Timestamp,
        to: Timestamp,
        parts: usize,
    ) -> Result<Vec<u64>, Failure> {
        let (from, to) = (from.as_microsecond(), to.as_microsecond());
        let mut counts = vec![0; parts];
        for entry in &self.index.lock().entries {
            if (from..to).contains(&entry.time_us) {
                let (past, whole) = (i128::from(entry.time_us - from), i128::from(to - from));
                counts[(past * parts as i128 / whole) as usize] += 1;
            }
        }
        Ok(counts)
    }

    fn by_transaction(&self, label: &str) -> Result<Option<Commit>, Failure> {
        let number: u64 = label.parse().map_err(|_| {
            let message = format!("'{label}' is no number of a commit");
            Failure::new(ErrorKind::InvalidInput, message, "give the number that SET returned")
        })?;
        let index = self.index.lock();
        Ok(self.pick(&index, |all| all.iter().rfind(|entry| entry.number == number)))
    }

    fn count_between(&self, from: LogPosition, to: LogPosition) -> Result<u64, Failure> {
        let index = self.index.lock();
        let inside = |entry: &&Entry| entry.begin >= from.0 && entry.end <= to.0;
        Ok(index.entries.iter().filter(inside).count() as u64)
    }

    fn skip_after(&self, from: LogPosition, others: u64) -> Result<Option<FoundCommit>, Failure> {
        let index = self.index.lock();
        let mut after = index.entries.iter().filter(|entry| entry.begin >= from.0);
        Ok(after.nth(others as usize).map(|entry| FoundCommit {
            end: LogPosition(entry.end),
            time: Timestamp::from_microsecond(entry.time_us).unwrap_or_default(),
            label: entry.number.to_string(),
        }))
    }

    fn kept_from(&self, position: LogPosition) -> LogPosition {
        LogPosition(segment_start(position.0))
    }

    fn holds_before(&self, position: LogPosition) -> Result<bool, Failure> {
        let gone = self.journal.removable(position.0, true);
        Ok(!gone.map_err(|error| damaged(WHAT, error))?.is_empty())
    }

    fn forget_before(&self, position: LogPosition) -> Result<usize, Failure> {
        let mut index = self.index.lock();
        let gone = self.journal.remove_before(position.0, true);
        let gone = gone.map_err(|error| damaged(WHAT, error))?;
        let range = self.journal.range().map_err(|error| damaged(WHAT, error))?;
        let begin = range.map_or(0, |(begin, _)| begin);
        index.entries.retain(|entry| entry.begin >= begin);
        // After a start it may not have come to here yet: what it would read next is gone.
        if index.position.is_some_and(|position| position < begin) {
            index.position = None;
            index.reader.forget();
        }
        Ok(gone)
    }

    fn feed(&self, staging: Arc<dyn LogTarget>, from: LogPosition) -> Box<dyn LogFeed> {
        let log = Log { dir: self.dir.clone(), journal: self.journal.clone() };
        Box::new(Feed { log, staging, fed: from })
    }

    fn place(
        &self,
        target: &dyn LogTarget,
        from: LogPosition,
        to: LogPosition,
    ) -> Result<(), Failure> {
        let files = target.files();
        let present = files.list(JOURNAL).map_err(|error| cannot_place(&error))?;
        for name in present {
            files.remove(&format!("{JOURNAL}/{name}")).map_err(|error| cannot_place(&error))?;
        }
        let log = Log { dir: self.dir.clone(), journal: self.journal.clone() };
        log.give(target, segment_start(from.0.min(to.0)), to.0)
    }
}

/// The files of a received journal, to be given to servers.
struct Log {
    dir: Arc<dyn DataDir>,
    journal: Journal,
}

impl Log {
    /// Gives the bytes `from..to`: whole files are shared.
    fn give(&self, target: &dyn LogTarget, from: u64, to: u64) -> Result<(), Failure> {
        let mut at = from;
        while at < to {
            let number = at / SEGMENT_BYTES;
            let (start, end) = (number * SEGMENT_BYTES, (number + 1) * SEGMENT_BYTES);
            let length = self.journal.length(number).map_err(|error| cannot_place(&error))?;
            let needed = end.min(to) - start;
            if length.is_none_or(|length| length < needed) {
                return Err(missing(number));
            }
            let name = segment_name(number);
            let path = format!("{JOURNAL}/{name}");
            let given = if at == start && needed == SEGMENT_BYTES {
                target.share(&name, &path)
            } else {
                self.copy(target, &name, &path, at - start..needed)
            };
            given.map_err(|error| cannot_place(&error))?;
            at = end;
        }
        Ok(())
    }

    fn copy(
        &self,
        target: &dyn LogTarget,
        name: &str,
        path: &str,
        bytes: std::ops::Range<u64>,
    ) -> io::Result<()> {
        // A new file there also gets what comes before.
        let from = if target.files().exists(path)? { bytes.start } else { 0 };
        let mut buffer = vec![0; (bytes.end - from) as usize];
        if read_full(&*self.dir.open(name)?, from, &mut buffer)? < buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        target.files().open_writable(path, 0o600)?.write_at(from, &buffer)
    }
}

struct Feed {
    log: Log,
    staging: Arc<dyn LogTarget>,
    fed: LogPosition,
}

impl LogFeed for Feed {
    fn fed(&self) -> LogPosition {
        self.fed
    }

    fn advance(&mut self, to: LogPosition) -> Result<(), Failure> {
        if to > self.fed {
            self.log.give(&*self.staging, self.fed.0, to.0)?;
            self.fed = to;
        }
        Ok(())
    }
}

fn missing(number: u64) -> Failure {
    Failure::new(
        ErrorKind::MomentUnavailable,
        format!("the log file {} is not kept or was not received yet", segment_name(number)),
        "choose a moment inside what `offshoot dsource show` names as kept",
    )
}

fn cannot_place(error: &io::Error) -> Failure {
    Failure::internal(format!("cannot give log to a server: {error}")).or_pool_full(error)
}

#[cfg(test)]
mod tests;
