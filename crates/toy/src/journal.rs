//! The journal: files of one size, named by their numbers, in which records follow each other.
//!
//! Invariants:
//! 1. The file `n` holds the bytes from `n` times the size on; it is shorter only where it is the last one.
//! 2. A record may begin in one file and end in the next.
//! 3. If a file begins with zeros, nothing was written there: the journal was resumed after them.

use crate::record::{BODY_BYTES_MAX, HEADER_BYTES, Header, Record};
use offshoot_connector::{DataDir, read_full};
use offshoot_types::{ErrorKind, Failure};
use std::io;
use std::sync::Arc;

/// Bytes of a file of the journal.
pub const SEGMENT_BYTES: u64 = 64 << 10;
/// Where the first record of a new database begins.
pub const BEGIN: u64 = SEGMENT_BYTES;
/// Bytes read at a time.
const READ_BYTES: usize = 128 << 10;

/// The name of a file of the journal.
pub fn segment_name(number: u64) -> String {
    format!("{number:012}.toy")
}

/// The number in a name; none for any other name.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".toy")?;
    let number = digits.parse().ok()?;
    (segment_name(number) == name).then_some(number)
}

/// Where the file begins that holds a position.
pub(crate) fn segment_start(position: u64) -> u64 {
    position - position % SEGMENT_BYTES
}

/// A journal in a directory.
#[derive(Clone)]
pub(crate) struct Journal {
    dir: Arc<dyn DataDir>,
    /// Below the directory; empty: it itself.
    below: &'static str,
}

impl Journal {
    pub(crate) fn new(dir: Arc<dyn DataDir>, below: &'static str) -> Journal {
        Journal { dir, below }
    }

    /// The path of a file.
    pub(crate) fn path(&self, number: u64) -> String {
        match self.below {
            "" => segment_name(number),
            below => format!("{below}/{}", segment_name(number)),
        }
    }

    /// The numbers of all files, ascending.
    pub(crate) fn numbers(&self) -> io::Result<Vec<u64>> {
        Ok(self.dir.list(self.below)?.iter().filter_map(|name| segment_number(name)).collect())
    }

    /// The length of a file; none where there is none.
    pub(crate) fn length(&self, number: u64) -> io::Result<Option<u64>> {
        match self.dir.open(&self.path(number)) {
            Ok(file) => Ok(Some(file.size()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where its bytes begin and end; none if it has no file.
    pub(crate) fn range(&self) -> io::Result<Option<(u64, u64)>> {
        let numbers = self.numbers()?;
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return Ok(None) };
        let end = last * SEGMENT_BYTES + self.length(*last)?.unwrap_or(0);
        Ok(Some((first * SEGMENT_BYTES, end)))
    }

    /// Reads bytes from a position on, across files, as far as they go; returns how many.
    pub(crate) fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = position + filled as u64;
            let offset = at % SEGMENT_BYTES;
            let file = match self.dir.open(&self.path(at / SEGMENT_BYTES)) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            };
            let room = (SEGMENT_BYTES - offset).min((buffer.len() - filled) as u64) as usize;
            let got = read_full(&*file, offset, &mut buffer[filled..filled + room])?;
            filled += got;
            if got < room {
                break;
            }
        }
        Ok(filled)
    }

    /// Writes bytes at a position and makes them durable.
    pub(crate) fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at = position + done as u64;
            let offset = at % SEGMENT_BYTES;
            let room = (SEGMENT_BYTES - offset).min((bytes.len() - done) as u64) as usize;
            let file = self.dir.open_writable(&self.path(at / SEGMENT_BYTES), 0o600)?;
            file.write_at(offset, &bytes[done..done + room])?;
            file.sync()?;
            done += room;
        }
        Ok(())
    }

    /// Removes everything at or after a position.
    pub(crate) fn cut(&self, position: u64) -> io::Result<()> {
        for number in self.numbers()? {
            let start = number * SEGMENT_BYTES;
            if start >= position {
                self.dir.remove(&self.path(number))?;
            } else if self.length(number)?.is_some_and(|length| start + length > position) {
                let file = self.dir.open_writable(&self.path(number), 0o600)?;
                file.set_size(position - start)?;
                file.sync()?;
            }
        }
        Ok(())
    }

    /// Removes whole files that end at or before a position, except the newest if asked; returns how
    /// many.
    pub(crate) fn remove_before(&self, position: u64, keep_newest: bool) -> io::Result<usize> {
        let gone = self.removable(position, keep_newest)?;
        gone.iter().try_for_each(|number| self.dir.remove(&self.path(*number)))?;
        Ok(gone.len())
    }

    /// The files that [`Journal::remove_before`] would remove.
    pub(crate) fn removable(&self, position: u64, keep_newest: bool) -> io::Result<Vec<u64>> {
        let mut numbers = self.numbers()?;
        if keep_newest {
            numbers.pop();
        }
        numbers.retain(|number| (number + 1) * SEGMENT_BYTES <= position);
        Ok(numbers)
    }
}

/// What a reader found at its position.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A record, and where it ends.
    Record(Record, u64),
    /// No whole record (yet).
    End,
    /// Bytes that are no record.
    Damaged,
}

/// Reads one record after the other.
pub(crate) struct Reader {
    journal: Journal,
    buffer: Vec<u8>,
    buffer_at: u64,
}

impl Reader {
    pub(crate) fn new(journal: Journal) -> Reader {
        Reader { journal, buffer: Vec::new(), buffer_at: 0 }
    }

    /// The record at a position. Bytes that were read once are not read again.
    pub(crate) fn next(&mut self, position: u64) -> io::Result<Step> {
        let Some(header) = self.bytes(position, HEADER_BYTES)? else {
            return self.end(position);
        };
        let Some(header) = Header::decode(position, header) else { return Ok(Step::Damaged) };
        let length = HEADER_BYTES + header.body_bytes;
        let Some(bytes) = self.bytes(position, length)? else { return self.end(position) };
        Ok(match Record::decode(&header, &bytes[HEADER_BYTES..]) {
            Some(record) => Step::Record(record, position + length as u64),
            None => Step::Damaged,
        })
    }

    /// Where the first record at or after the start of a file begins; none until it has arrived.
    pub(crate) fn first(&mut self, start: u64) -> io::Result<Result<Option<u64>, Damaged>> {
        let mut written = None;
        for position in start..start + SEGMENT_BYTES + HEADER_BYTES as u64 {
            let Some(bytes) = self.bytes(position, HEADER_BYTES)? else { return Ok(Ok(None)) };
            if bytes[0] != 0 && written.is_none() {
                written = Some(position);
            }
            if let Some(header) = Header::decode(position, bytes) {
                // Bytes before it are the end of a record that begins in an earlier file, or nothing.
                let nothing = written.is_none_or(|written| written >= position);
                let whole = nothing || header.previous < start;
                return Ok(if whole { Ok(Some(position)) } else { Err(Damaged) });
            }
            if written
                .is_some_and(|written| position > written + (HEADER_BYTES + BODY_BYTES_MAX) as u64)
            {
                return Ok(Err(Damaged));
            }
        }
        Ok(Err(Damaged))
    }

    /// Forgets what was read, as files may have been replaced.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
    }

    fn bytes(&mut self, position: u64, length: usize) -> io::Result<Option<&[u8]>> {
        let has = |buffer: &Vec<u8>, at: u64| {
            position >= at && position - at + length as u64 <= buffer.len() as u64
        };
        if !has(&self.buffer, self.buffer_at) {
            self.buffer.resize(READ_BYTES, 0);
            let got = match self.journal.read_at(position, &mut self.buffer) {
                Ok(got) => got,
                Err(error) => {
                    self.buffer.clear();
                    return Err(error);
                }
            };
            self.buffer.truncate(got);
            self.buffer_at = position;
        }
        if !has(&self.buffer, self.buffer_at) {
            return Ok(None);
        }
        let from = (position - self.buffer_at) as usize;
        Ok(self.buffer.get(from..from + length))
    }

    /// Bytes end after `position`: that is the end, unless there are more files.
    fn end(&mut self, position: u64) -> io::Result<Step> {
        let stopped = self.buffer_at + self.buffer.len() as u64;
        let Some((begin, end)) = self.journal.range()? else { return Ok(Step::End) };
        if position < begin || stopped / SEGMENT_BYTES >= end / SEGMENT_BYTES {
            return Ok(Step::End);
        }
        // The next file may have been begun since these bytes were read.
        let mut byte = [0];
        let more = self.journal.read_at(stopped, &mut byte)? > 0;
        self.forget();
        Ok(if more { Step::End } else { Step::Damaged })
    }
}

/// Bytes that are not a record where one must be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// The failure for a journal that cannot be read.
pub(crate) fn damaged(what: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(
        ErrorKind::DataDamaged,
        format!("{what}: {why}"),
        "copy the source again, which does not need the damaged log: offshoot dsource sync NAME",
    )
}

#[cfg(test)]
mod tests;
