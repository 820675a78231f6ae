//! The archive: the directory of WAL files that the receiver fills.
//!
//! A file `TTTTTTTTHHHHHHHHLLLLLLLL` holds the log from one multiple of the file size to the next:
//! T its timeline, H and L its number (the position divided by the file size), in two parts. While
//! it is received its name ends in `.partial` and what is not received yet is zeros. After a
//! timeline switch the last file of the old timeline stays partial, and the first file of the new
//! one begins with a copy of it up to the switch.

use crate::lsn::Lsn;
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use offshoot_connector::{DataDir, DataFile};

pub mod history;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod written;

pub use history::{Timeline, TimelineHistory};

use reader::LogReader;

/// The ending of the name of a file that is still being received.
const PARTIAL: &str = ".partial";

/// One WAL file of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WalFile {
    /// Its timeline.
    pub timeline: u32,
    /// Its number: the position of its first byte divided by the file size.
    pub number: u64,
    /// Whether it is still being received (`NAME.partial`): its unreceived rest is zeros.
    pub partial: bool,
}

impl WalFile {
    /// Parses a file name with or without `.partial`, of files of that size; `None` for any other name.
    pub(crate) fn parse(name: &str, segment_bytes: u64) -> Option<WalFile> {
        let (digits, partial) = match name.strip_suffix(PARTIAL) {
            Some(digits) => (digits, true),
            None => (name, false),
        };
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
        if digits.len() != 24 || !digits.bytes().all(hexadecimal) {
            return None;
        }
        let part = |at: usize| u64::from_str_radix(digits.get(at..at + 8)?, 16).ok();
        let per_part = (1 << 32) / segment_bytes;
        let (timeline, high, low) = (part(0)?, part(8)?, part(16)?);
        if timeline == 0 || low >= per_part {
            return None;
        }
        let number = high * per_part + low;
        Some(WalFile { timeline: u32::try_from(timeline).ok()?, number, partial })
    }
}

/// What stands for the directory in messages.
const DIRECTORY: &str = "the directory of received log";

/// The directory of received WAL files.
#[derive(Clone)]
pub struct Archive {
    dir: Arc<dyn DataDir>,
    /// Where in it the files are: empty, or a path that ends in `/`.
    place: &'static str,
    segment_bytes: u64,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("segment_bytes", &self.segment_bytes)
            .finish_non_exhaustive()
    }
}

impl Archive {
    /// An archive in a directory that exists; `segment_bytes` is the source's WAL file size
    /// (`SourceFacts::wal_segment_bytes`).
    ///
    /// # Errors
    /// `InvalidInput` when the size is not a power of two from 1 MiB to 1 GiB.
    pub fn new(dir: Arc<dyn DataDir>, segment_bytes: u64) -> Result<Self, Failure> {
        if !segment_bytes.is_power_of_two() || !(1 << 20..=1 << 30).contains(&segment_bytes) {
            return Err(Failure::new(
                ErrorKind::InvalidInput,
                format!("{segment_bytes} bytes is no size of a WAL file"),
                "",
            ));
        }
        Ok(Archive { dir, place: "", segment_bytes })
    }

    /// The log in a server's data directory.
    pub(crate) fn of_server(files: Arc<dyn DataDir>, segment_bytes: u64) -> Result<Self, Failure> {
        Ok(Archive { place: "pg_wal/", ..Archive::new(files, segment_bytes)? })
    }

    fn path(&self, name: &str) -> String {
        format!("{}{name}", self.place)
    }

    /// The size of a WAL file in bytes.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// The number of the file that holds the byte at a position.
    pub fn number_at(&self, position: Lsn) -> u64 {
        position.0 / self.segment_bytes
    }

    /// The name PostgreSQL gives the file, without `.partial`.
    pub fn name(&self, file: &WalFile) -> String {
        let per_part = (1 << 32) / self.segment_bytes;
        let (high, low) = (file.number / per_part, file.number % per_part);
        format!("{:08X}{high:08X}{low:08X}", file.timeline)
    }

    /// The name of the file in the archive, with `.partial` if it is partial.
    pub fn file_name(&self, file: &WalFile) -> String {
        let mut name = self.name(file);
        if file.partial {
            name.push_str(PARTIAL);
        }
        name
    }

    /// Position of the file's first byte.
    pub fn start(&self, file: &WalFile) -> Lsn {
        Lsn(file.number.saturating_mul(self.segment_bytes))
    }

    /// Position after the file's last byte.
    pub fn end(&self, file: &WalFile) -> Lsn {
        Lsn((file.number + 1).saturating_mul(self.segment_bytes))
    }

    /// Parses a file name with or without `.partial`; `None` for any other name.
    pub fn parse_name(&self, name: &str) -> Option<WalFile> {
        WalFile::parse(name, self.segment_bytes)
    }

    /// All WAL files, by timeline and number. If a file exists both whole and partial, only the
    /// whole one is listed.
    ///
    /// # Errors
    /// `DataDamaged` when the directory cannot be read.
    pub fn files(&self) -> Result<Vec<WalFile>, Failure> {
        let mut files: Vec<WalFile> =
            self.names()?.iter().filter_map(|name| self.parse_name(name)).collect();
        files.sort_unstable();
        // Whole sorts before partial.
        files.dedup_by_key(|file| (file.timeline, file.number));
        Ok(files)
    }

    fn names(&self) -> Result<Vec<String>, Failure> {
        self.dir
            .list(self.place.trim_end_matches('/'))
            .map_err(|error| damaged(DIRECTORY, &error.to_string()))
    }

    /// The names of all timeline history files (`00000002.history`), in order.
    ///
    /// # Errors
    /// `DataDamaged` when the directory cannot be read.
    pub fn history_files(&self) -> Result<Vec<String>, Failure> {
        let mut names: Vec<String> =
            self.names()?.into_iter().filter(|name| parse_history_name(name).is_some()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The newest timeline that is followed here, with its ancestors. An archive without any file
    /// counts as timeline 1.
    ///
    /// # Errors
    /// `DataDamaged` when a history file is missing or wrong.
    pub fn history(&self) -> Result<TimelineHistory, Failure> {
        let names = self.names()?;
        let of_histories = names.iter().filter_map(|name| parse_history_name(name)).max();
        let timelines: BTreeSet<u32> =
            names.iter().filter_map(|name| self.parse_name(name)).map(|one| one.timeline).collect();
        let newest = of_histories.max(timelines.last().copied()).unwrap_or(1);
        let name = history_name(newest);
        match self.dir.read(&self.path(&name)) {
            Ok(text) => TimelineHistory::parse(newest, &String::from_utf8_lossy(&text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && timelines.len() <= 1 => {
                Ok(TimelineHistory::single(newest))
            }
            Err(error) => Err(damaged(&name, &error.to_string())),
        }
    }

    /// Whether a timeline's history file has arrived.
    pub(crate) fn has_history(&self, timeline: u32) -> bool {
        self.dir.exists(&self.path(&history_name(timeline))).unwrap_or(false)
    }

    /// Whether a file is there.
    pub(crate) fn holds(&self, file: &WalFile) -> bool {
        self.dir.exists(&self.path(&self.file_name(file))).unwrap_or(false)
    }

    /// How far whole files of a timeline continue from a position in it.
    pub(crate) fn end_of_whole_files(&self, timeline: u32, from: Lsn) -> Lsn {
        let at = |number| WalFile { timeline, number, partial: false };
        let first = self.number_at(from);
        let missing = (first..).find(|number| !self.holds(&at(*number))).unwrap_or(first);
        if missing == first { from } else { self.start(&at(missing)) }
    }

    /// Opens a file, also one that was still being received when it was listed and has become whole, under
    /// its other name, since.
    pub(crate) fn open_now(&self, file: &WalFile) -> Result<Option<Box<dyn DataFile>>, Failure> {
        match self.open(file)? {
            None if file.partial => self.open(&WalFile { partial: false, ..*file }),
            found => Ok(found),
        }
    }

    /// Opens a file; `None` when it is not there.
    pub(crate) fn open(&self, file: &WalFile) -> Result<Option<Box<dyn DataFile>>, Failure> {
        let name = self.file_name(file);
        match self.dir.open(&self.path(&name)) {
            Ok(open) => Ok(Some(open)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(damaged(&name, &error.to_string())),
        }
    }

    /// Removes a file; it is no error if there is none.
    pub(crate) fn remove(&self, file: &WalFile) -> Result<(), Failure> {
        let name = self.file_name(file);
        self.dir
            .remove(&self.path(&name))
            .map_err(|error| damaged(&name, &format!("cannot be removed: {error}")))
    }

    /// The files a server needs for replay of all records that begin in `[from, to]` (`to` =
    /// `None`: of everything there is) on the way to the newest timeline, in order. If a timeline
    /// switch is in a file, both timelines' files are named.
    ///
    /// # Errors
    /// `MomentUnavailable` that names the first missing file.
    pub fn files_for(&self, from: Lsn, to: Option<Lsn>) -> Result<Vec<WalFile>, Failure> {
        let history = self.history()?;
        let mut files = self.files()?;
        files.retain(|file| self.belongs(&history, file));
        files.sort_unstable_by_key(|file| (file.number, file.timeline));
        let first = self.number_at(from);
        let newest = files.last().map_or(0, |file| file.number);
        // The last record may continue in the next file.
        let (required, wanted) = match to {
            Some(to) => (self.number_at(to), self.number_at(to) + 1),
            None => (newest.max(first), newest.max(first)),
        };
        files.retain(|file| (first..=wanted).contains(&file.number));
        let mut next = first;
        for file in &files {
            if file.number > next {
                break;
            }
            next = file.number + 1;
        }
        if next <= required {
            let timeline = history.at(Lsn(next.saturating_mul(self.segment_bytes))).id;
            let missing = self.name(&WalFile { timeline, number: next, partial: false });
            return Err(Failure::new(
                ErrorKind::MomentUnavailable,
                format!("the log file {missing} is not kept or was not received yet"),
                "choose a moment inside what `offshoot dsource show` names as kept",
            ));
        }
        Ok(files)
    }

    /// Whether a file holds log on the way to the newest timeline.
    fn belongs(&self, history: &TimelineHistory, file: &WalFile) -> bool {
        history.timelines().any(|timeline| {
            timeline.id == file.timeline
                && self.end(file) > timeline.begin
                && timeline.end.is_none_or(|end| self.start(file) < end)
        })
    }

    /// The end of the last whole record that can be read from `from` on: the position where a
    /// record begins, or any other from which to look for the next record.
    ///
    /// # Errors
    /// `DataDamaged`, `MomentUnavailable` when `from` is not kept.
    pub fn valid_end(&self, from: Lsn) -> Result<Lsn, Failure> {
        self.files_for(from, Some(Lsn(from.0.saturating_sub(1))))?;
        let mut reader = LogReader::new(self, self.history()?);
        let (mut position, _) = reader.first_record(from)?;
        while let reader::Step::Record(found) = reader.next_record(position)? {
            position = found.end;
        }
        Ok(position)
    }

    /// Removes what is [`removable`](Self::removable); returns how many files.
    ///
    /// # Errors
    /// `DataDamaged` when a file cannot be removed.
    pub fn remove_before(&self, keep_from: Lsn) -> Result<usize, Failure> {
        let files = self.removable(keep_from)?;
        files.iter().try_for_each(|file| self.remove(file))?;
        Ok(files.len())
    }

    /// The WAL files that end at or before `keep_from`. History files and the newest file (where the
    /// receiver continues) stay.
    ///
    /// # Errors
    /// `DataDamaged` when the directory cannot be read.
    pub fn removable(&self, keep_from: Lsn) -> Result<Vec<WalFile>, Failure> {
        let names = self.names()?;
        let mut files: Vec<WalFile> =
            names.iter().filter_map(|name| self.parse_name(name)).collect();
        let newest = files.iter().map(|file| (file.number, file.timeline)).max();
        files.retain(|file| {
            self.end(file) <= keep_from && Some((file.number, file.timeline)) != newest
        });
        Ok(files)
    }
}

fn history_name(timeline: u32) -> String {
    format!("{timeline:08X}.history")
}

fn parse_history_name(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".history")?;
    if digits.len() != 8 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

pub(crate) fn damaged(name: &str, why: &str) -> Failure {
    Failure::new(
        ErrorKind::DataDamaged,
        format!("{name}: {why}"),
        "copy the source again, which does not need the damaged log: offshoot dsource sync NAME",
    )
}

#[cfg(test)]
mod tests;
