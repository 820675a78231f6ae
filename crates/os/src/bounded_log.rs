//! Logs that other processes append to, and that must not grow without bound.
//!
//! A server holds the descriptor of its log, so a new file of that name would stay empty. The log is cut in
//! place instead: its last part is copied into `NAME.old`, then it is emptied. Whoever appends goes on at its
//! beginning. What is written in between is lost.
//!
//! A reader that remembers where something began in a log takes a [`LogPlace`], which knows of cuts.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::num::ParseIntError;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the earlier part of a log is kept.
pub fn earlier(log: &Path) -> PathBuf {
    log.with_added_extension("old")
}

/// Bytes of a log with its earlier part; 0 for what is not there.
pub fn bytes(log: &Path) -> u64 {
    let bytes = |file: &Path| std::fs::metadata(file).map_or(0, |file| file.len());
    bytes(log) + bytes(&earlier(log))
}

/// Cuts a log that is larger than `bytes_max`, and keeps that much of its end beside it. Whether it did.
///
/// # Errors
/// File system errors; a log that is not there is none.
pub fn cut(log: &Path, bytes_max: u64) -> io::Result<bool> {
    let mut file = match OpenOptions::new().read(true).write(true).open(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    if length <= bytes_max {
        return Ok(false);
    }
    let new = log.with_added_extension("new");
    let kept = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
    let copied = kept.and_then(|mut kept| {
        file.seek(SeekFrom::Start(length - bytes_max))?;
        io::copy(&mut (&file).take(bytes_max), &mut kept)
    });
    if let Err(error) = copied.and_then(|_| std::fs::rename(&new, earlier(log))) {
        // A full disk: to have no log is better than to fill it further.
        let _ = std::fs::remove_file(&new);
        file.set_len(0)?;
        return Err(error);
    }
    file.set_len(0)?;
    Ok(true)
}

/// Where something begins in a log that may be cut: the beginning by default. As text it can be handed out, and taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPlace {
    length: u64,
    /// The earlier part at that time: each cut makes another file.
    earlier: Option<(u64, i64, i64)>,
}

impl LogPlace {
    /// The present end of a log, which need not exist.
    pub fn end_of(log: &Path) -> LogPlace {
        // In this order: a cut in between shows.
        let earlier = identity(log);
        let length = std::fs::metadata(log).map(|log| log.len()).unwrap_or(0);
        LogPlace { length, earlier }
    }

    /// Where it is now: as long as nothing was cut, where it was; afterwards everything in the log is later.
    pub fn offset(&self, log: &Path) -> u64 {
        let length = std::fs::metadata(log).map(|log| log.len()).unwrap_or(0);
        if identity(log) == self.earlier && length >= self.length { self.length } else { 0 }
    }
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.length)?;
        let Some((inode, seconds, nanoseconds)) = self.earlier else { return Ok(()) };
        write!(f, ".{inode}.{seconds}.{nanoseconds}")
    }
}

impl FromStr for LogPlace {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<LogPlace, ParseIntError> {
        let mut parts = text.splitn(4, '.');
        let mut next = || parts.next().unwrap_or_default();
        let length = next().parse()?;
        let earlier = match next() {
            "" => None,
            inode => Some((inode.parse()?, next().parse()?, next().parse()?)),
        };
        Ok(LogPlace { length, earlier })
    }
}

fn identity(log: &Path) -> Option<(u64, i64, i64)> {
    let file = std::fs::metadata(earlier(log)).ok()?;
    Some((file.ino(), file.mtime(), file.mtime_nsec()))
}

/// Removes a log and its earlier part; nobody may append to it any more.
///
/// # Errors
/// File system errors.
pub fn remove(log: &Path) -> io::Result<()> {
    for path in [earlier(log), log.to_owned()] {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The text of a log from an offset on, at most its last `bytes_max` bytes; empty when it cannot be read.
pub fn tail(log: &Path, offset: u64, bytes_max: u64) -> String {
    let mut bytes = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(offset.max(length.saturating_sub(bytes_max))))?;
        file.take(bytes_max).read_to_end(&mut bytes)
    });
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

/// The whole lines of a log from a place on, at most its last `bytes_max` bytes, and the place of what will follow.
pub fn lines_since(log: &Path, place: &LogPlace, bytes_max: u64) -> (String, LogPlace) {
    let mut end = LogPlace::end_of(log);
    let from = place.offset(log).max(end.length.saturating_sub(bytes_max));
    let mut bytes = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        file.seek(SeekFrom::Start(from))?;
        file.take(end.length.saturating_sub(from)).read_to_end(&mut bytes)
    });
    if read.is_err() {
        return (String::new(), end);
    }
    // Who is in the middle of a line ends it soon.
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    end.length = from + bytes.len() as u64;
    (String::from_utf8_lossy(&bytes).into_owned(), end)
}

#[cfg(test)]
mod tests;
