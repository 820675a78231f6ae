//! The index of commits: which transaction committed when and where in the log.
//!
//! It follows the log to the newest timeline. The commits of a WAL file that was read to its end
//! are *sealed* in their own file (see [`segment`]); those of the file that is being received are
//! kept in memory and read again after a restart. A commit belongs to the WAL file in which its
//! record ends.
//!
//! Invariants:
//! 1. `position` is where the next record begins; every commit that ends at or before it, from the
//!    first file of the archive on, is either sealed or in `open`.
//! 2. Sealed files hold only commits of the history of the newest timeline.

use crate::lsn::Lsn;
use jiff::Timestamp;
use offshoot_types::Failure;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::archive::reader::{Found, LogReader, Step};
use crate::archive::record::Meaning;
use crate::archive::{Archive, TimelineHistory, WalFile, damaged};
use offshoot_connector::DataDir;

mod count;
mod segment;

use segment::{Entry, Summary};

/// The ending of an index file's name; before it comes the name of the WAL file.
const ENDING: &str = ".commits";

/// A commit of the source (`COMMIT` or `COMMIT PREPARED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Where its record begins. Recovery to this LSN, *inclusive*, ends right after this commit:
    /// give this to `recovery_target_lsn` with `recovery_target_inclusive = on`.
    pub lsn: Lsn,
    /// Where its record ends.
    pub end: Lsn,
    /// The commit time that the source wrote, to the microsecond.
    pub time: Timestamp,
    /// Its transaction id.
    pub xid: u32,
    /// The timeline whose log holds it.
    pub timeline: u32,
}

/// The commits of an archive, kept in one small file per WAL file. All methods may be called from
/// several threads.
pub struct CommitIndex {
    archive: Archive,
    dir: Arc<dyn DataDir>,
    state: Mutex<State>,
}

struct State {
    history: TimelineHistory,
    /// By number of the WAL file.
    sealed: BTreeMap<u64, Sealed>,
    /// The commits of the WAL file `open_number`, in log order.
    open: Vec<Entry>,
    open_number: u64,
    /// Where the next record begins; `None` before the first page was seen.
    position: Option<Lsn>,
}

#[derive(Debug, Clone, Copy)]
struct Sealed {
    timeline: u32,
    summary: Summary,
}

impl CommitIndex {
    /// Opens (or begins) the index of an archive in its own directory, which must exist; existing
    /// index files are read, damaged ones are rebuilt from the log.
    ///
    /// # Errors
    /// `DataDamaged` when the directory cannot be used.
    pub fn open(archive: Archive, dir: Arc<dyn DataDir>) -> Result<Self, Failure> {
        let state = State {
            history: archive.history()?,
            sealed: BTreeMap::new(),
            open: Vec::new(),
            open_number: 0,
            position: None,
        };
        let index = CommitIndex { archive, dir, state: Mutex::new(state) };
        index.load(&mut index.state.lock())?;
        Ok(index)
    }

    /// Reads what the archive has received since; cheap if nothing has. Returns
    /// [`CommitIndex::end`].
    ///
    /// # Errors
    /// `DataDamaged` when a WAL file is damaged in the middle.
    pub fn update(&self) -> Result<Lsn, Failure> {
        self.update_until(Lsn(u64::MAX))
    }

    /// The same up to a position, or a little further: while log arrives as fast as it is read, there
    /// is no end.
    ///
    /// # Errors
    /// As [`CommitIndex::update`].
    pub fn update_until(&self, enough: Lsn) -> Result<Lsn, Failure> {
        let state = &mut *self.state.lock();
        let newest = state.history.newest().id;
        let changed = (1..=2).any(|step| self.archive.has_history(newest + step));
        if changed || state.position.is_none() {
            self.follow_history(state)?;
        }
        let mut reader = LogReader::new(&self.archive, state.history.clone());
        while state.position.is_none_or(|position| position < enough) {
            let Some(position) = state.position else {
                let Some(number) = self.next_file(state, 0)? else { break };
                if !self.begin_at(state, &mut reader, number)? {
                    break;
                }
                continue;
            };
            match reader.next_record(position)? {
                Step::Record(found) => self.add(state, &found)?,
                Step::End => match self.after_gap(state, position)? {
                    Some(number) => {
                        self.seal(state)?;
                        if !self.begin_at(state, &mut reader, number)? {
                            break;
                        }
                    }
                    None => break,
                },
            }
        }
        Ok(state.position.unwrap_or_default())
    }

    /// The end of the last whole record indexed; 0 before the first.
    pub fn end(&self) -> Lsn {
        self.state.lock().position.unwrap_or_default()
    }

    /// The last commit (in log order) whose time is not after the given one.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn last_not_after(&self, time: Timestamp) -> Result<Option<Commit>, Failure> {
        let time_us = time.as_microsecond();
        self.find_back(|sealed| sealed.earliest_us <= time_us, |entry| entry.time_us <= time_us)
    }

    /// The last commit whose record begins at or before a position.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn last_at_lsn(&self, lsn: Lsn) -> Result<Option<Commit>, Failure> {
        self.find_back(|sealed| sealed.first_lsn <= lsn.0, |entry| entry.lsn <= lsn.0)
    }

    /// The commit of a transaction; the newest one when ids have wrapped around.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn by_xid(&self, xid: u32) -> Result<Option<Commit>, Failure> {
        self.find_back(
            |sealed| (sealed.lowest_xid..=sealed.highest_xid).contains(&xid),
            |entry| entry.xid == xid,
        )
    }

    /// The last commit of all.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn last(&self) -> Result<Option<Commit>, Failure> {
        self.find_back(|_| true, |_| true)
    }

    /// The first commit whose record begins at or after a position (0: the first of all).
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn first_from(&self, lsn: Lsn) -> Result<Option<Commit>, Failure> {
        let state = self.state.lock();
        for (number, sealed) in &state.sealed {
            if sealed.summary.count > 0 && sealed.summary.last_lsn >= lsn.0 {
                let entries = self.entries(&state, *number, sealed)?;
                if let Some(entry) = entries.iter().find(|entry| entry.lsn >= lsn.0) {
                    return Ok(Some(commit(&state, entry)));
                }
            }
        }
        Ok(state.open.iter().find(|entry| entry.lsn >= lsn.0).map(|entry| commit(&state, entry)))
    }

    /// How many commits begin at or after one position and end at or before another. Reads only the files in which
    /// these are.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn count_between(&self, from: Lsn, to: Lsn) -> Result<u64, Failure> {
        let state = self.state.lock();
        let inside = |entry: &&Entry| entry.lsn >= from.0 && entry.end() <= to.0;
        let mut count = state.open.iter().filter(inside).count() as u64;
        for (number, sealed) in &state.sealed {
            let Summary { first_lsn, last_lsn, resume, .. } = sealed.summary;
            if sealed.summary.count == 0 || last_lsn < from.0 || first_lsn >= to.0 {
                continue;
            }
            // No record of the file ends after the next one begins.
            count += if first_lsn >= from.0 && resume <= to {
                sealed.summary.count
            } else {
                self.entries(&state, *number, sealed)?.iter().filter(inside).count() as u64
            };
        }
        Ok(count)
    }

    /// The commit that so many others come before, of those that begin at or after a position.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn skip_from(&self, from: Lsn, others: u64) -> Result<Option<Commit>, Failure> {
        let state = self.state.lock();
        let mut left = others;
        for (number, sealed) in &state.sealed {
            let Summary { count, first_lsn, last_lsn, .. } = sealed.summary;
            if count == 0 || last_lsn < from.0 {
                continue;
            }
            if first_lsn >= from.0 && count <= left {
                left -= count;
                continue;
            }
            for entry in self.entries(&state, *number, sealed)? {
                match left.checked_sub(u64::from(entry.lsn >= from.0)) {
                    Some(rest) => left = rest,
                    None => return Ok(Some(commit(&state, &entry))),
                }
            }
        }
        let mut open = state.open.iter().filter(|entry| entry.lsn >= from.0);
        let skipped = usize::try_from(left).unwrap_or(usize::MAX);
        Ok(open.nth(skipped).map(|entry| commit(&state, entry)))
    }

    /// How many commits are indexed.
    pub fn count(&self) -> u64 {
        let state = self.state.lock();
        let sealed: u64 = state.sealed.values().map(|sealed| sealed.summary.count).sum();
        sealed + state.open.len() as u64
    }

    /// Drops WAL files that end at or before `keep_from`, as [`Archive::remove_before`] does.
    ///
    /// # Errors
    /// `DataDamaged` when a file cannot be removed.
    pub fn remove_before(&self, keep_from: Lsn) -> Result<(), Failure> {
        let state = &mut *self.state.lock();
        let keep = self.archive.number_at(keep_from);
        while let Some((&number, sealed)) = state.sealed.first_key_value() {
            if number >= keep {
                break;
            }
            self.remove_file(&self.file_name(number, sealed.timeline))?;
            state.sealed.remove(&number);
        }
        Ok(())
    }

    /// The newest commit that matches, looking only into files that may hold one.
    fn find_back(
        &self,
        may_hold: impl Fn(&Summary) -> bool,
        matches: impl Fn(&Entry) -> bool,
    ) -> Result<Option<Commit>, Failure> {
        let state = self.state.lock();
        if let Some(entry) = state.open.iter().rfind(|entry| matches(entry)) {
            return Ok(Some(commit(&state, entry)));
        }
        for (number, sealed) in state.sealed.iter().rev() {
            if sealed.summary.count > 0 && may_hold(&sealed.summary) {
                let entries = self.entries(&state, *number, sealed)?;
                if let Some(entry) = entries.iter().rfind(|entry| matches(entry)) {
                    return Ok(Some(commit(&state, entry)));
                }
            }
        }
        Ok(None)
    }

    /// The entries of a sealed file; read again from the log if the file is damaged.
    fn entries(&self, state: &State, number: u64, sealed: &Sealed) -> Result<Vec<Entry>, Failure> {
        let name = self.file_name(number, sealed.timeline);
        match segment::read_entries(&*self.dir, &name) {
            Ok(Some(entries)) => return Ok(entries),
            Ok(None) => tracing::warn!(file = name, "damaged; read again from the log"),
            Err(error) => tracing::warn!(file = name, "{error}; read again from the log"),
        }
        let before = state.sealed.range(..number).next_back();
        let start = Lsn(number.saturating_mul(self.archive.segment_bytes()));
        let mut reader = LogReader::new(&self.archive, state.history.clone());
        let mut position = match before {
            Some((known, before)) if known + 1 == number => before.summary.resume,
            _ => reader.first_record(start)?.0,
        };
        let mut entries = Vec::new();
        while let Step::Record(found) = reader.next_record(position)? {
            if self.number_of(&found) > number {
                break;
            }
            if self.number_of(&found) == number {
                entries.extend(entry(&found));
            }
            position = found.end;
        }
        if entries.len() as u64 != sealed.summary.count {
            return Err(damaged(&name, "it is damaged, and the log it was made of is not kept"));
        }
        segment::write(&*self.dir, &name, &entries, &sealed.summary)
            .map_err(|error| damaged(&name, &error.to_string()))?;
        Ok(entries)
    }

    /// Reads the headers of the sealed files; the first damaged one and all after it go.
    fn load(&self, state: &mut State) -> Result<(), Failure> {
        let failed = |name: &str, error: std::io::Error| damaged(name, &error.to_string());
        let mut found = BTreeMap::new();
        for name in self.dir.list("").map_err(|error| failed("the index of commits", error))? {
            match name.strip_suffix(ENDING).and_then(|stem| self.archive.parse_name(stem)) {
                Some(file) => {
                    found.insert((file.number, file.timeline), name);
                }
                None => self.remove_file(&name)?,
            }
        }
        let mut usable = true;
        for ((number, timeline), name) in found {
            let wanted = self.timeline_of(&state.history, number) == timeline;
            let summary = if usable && wanted {
                segment::read_summary(&*self.dir, &name).map_err(|error| failed(&name, error))?
            } else {
                None
            };
            match summary {
                Some(summary) => {
                    state.position = Some(summary.resume);
                    state.open_number = number + 1;
                    state.sealed.insert(number, Sealed { timeline, summary });
                }
                None => {
                    // A file of a timeline that was left is not damage.
                    usable &= !wanted;
                    self.remove_file(&name)?;
                }
            }
        }
        Ok(())
    }

    /// Notices new timelines. What was read stays valid: an archive never continues on a timeline
    /// that left it before its end (the receiver reports a gap instead).
    fn follow_history(&self, state: &mut State) -> Result<(), Failure> {
        let history = self.archive.history()?;
        if history != state.history {
            tracing::info!(timeline = history.newest().id, "the log goes on on a new timeline");
            state.history = history;
        }
        Ok(())
    }

    /// Begins (again) at the first record of a WAL file; whether its first page was received.
    fn begin_at(
        &self,
        state: &mut State,
        reader: &mut LogReader<'_>,
        number: u64,
    ) -> Result<bool, Failure> {
        let start = Lsn(number.saturating_mul(self.archive.segment_bytes()));
        let (position, certain) = reader.first_record(start)?;
        if certain {
            state.position = Some(position);
            state.open_number = number;
        }
        Ok(certain)
    }

    /// The number of the first existing WAL file from `number` on.
    fn next_file(&self, state: &State, number: u64) -> Result<Option<u64>, Failure> {
        let timelines: Vec<u32> = state.history.timelines().map(|one| one.id).collect();
        let files = self.archive.files()?.into_iter();
        let numbers = files.filter(|file| timelines.contains(&file.timeline));
        Ok(numbers.map(|file| file.number).filter(|one| *one >= number).min())
    }

    /// When the log does not continue at `position` because files are missing: the next existing
    /// one.
    fn after_gap(&self, state: &State, position: Lsn) -> Result<Option<u64>, Failure> {
        let number = self.archive.number_at(position);
        let file = |partial| WalFile { timeline: state.history.at(position).id, number, partial };
        if self.archive.holds(&file(true)) {
            return Ok(None);
        }
        let whole = self.archive.holds(&file(false));
        let next = self.next_file(state, number)?;
        let contiguous = if whole { number + 1 } else { number };
        let next = if whole { self.next_file(state, contiguous)? } else { next };
        Ok(next.filter(|next| *next > contiguous))
    }

    /// Adds a record, sealing the previous WAL file if it is in a new one.
    fn add(&self, state: &mut State, found: &Found) -> Result<(), Failure> {
        let number = self.number_of(found);
        if number > state.open_number {
            self.seal(state)?;
            state.open_number = number;
        }
        state.open.extend(entry(found));
        state.position = Some(found.end);
        Ok(())
    }

    /// Writes the commits of the open WAL file; the log was read beyond its end, or it never will.
    fn seal(&self, state: &mut State) -> Result<(), Failure> {
        let Some(resume) = state.position else { return Ok(()) };
        let number = state.open_number;
        let timeline = self.timeline_of(&state.history, number);
        let summary = Summary::of(&state.open, resume);
        let name = self.file_name(number, timeline);
        segment::write(&*self.dir, &name, &state.open, &summary)
            .map_err(|error| damaged(&name, &error.to_string()))?;
        state.sealed.insert(number, Sealed { timeline, summary });
        state.open.clear();
        Ok(())
    }

    /// The timeline that wrote the last byte of a WAL file.
    fn timeline_of(&self, history: &TimelineHistory, number: u64) -> u32 {
        history.at(Lsn((number + 1).saturating_mul(self.archive.segment_bytes()) - 1)).id
    }

    /// The number of the WAL file in which a record ends.
    fn number_of(&self, found: &Found) -> u64 {
        self.archive.number_at(Lsn(found.end.0.saturating_sub(1)))
    }

    fn file_name(&self, number: u64, timeline: u32) -> String {
        let name = self.archive.name(&WalFile { timeline, number, partial: false });
        format!("{name}{ENDING}")
    }

    fn remove_file(&self, name: &str) -> Result<(), Failure> {
        self.dir.remove(name).map_err(|error| damaged(name, &error.to_string()))
    }
}

fn entry(found: &Found) -> Option<Entry> {
    let Meaning::Commit { time_us, xid } = found.meaning else { return None };
    let length = u32::try_from(found.end.0.saturating_sub(found.start.0)).unwrap_or(u32::MAX);
    Some(Entry { lsn: found.start.0, time_us, xid, length })
}

fn commit(state: &State, entry: &Entry) -> Commit {
    let time = Timestamp::from_microsecond(entry.time_us).unwrap_or(if entry.time_us < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    });
    Commit {
        lsn: Lsn(entry.lsn),
        end: Lsn(entry.end()),
        time,
        xid: entry.xid,
        timeline: state.history.at(Lsn(entry.lsn)).id,
    }
}

#[cfg(test)]
mod tests;
