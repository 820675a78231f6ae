//! Reads the records of an archive in order, across files and timelines, up to where it ends.
//!
//! The end is where a page, or the rest of a record, is missing so far: zeros in a partial file, or
//! no next file. What was read before the end never changes, so a caller may return later with the
//! same position. A page or checksum that is wrong inside a *whole* file is damage.

use crate::lsn::Lsn;
use offshoot_types::Failure;

use super::record::{
    Meaning, PAGE_BYTES, PageHeader, RECORD_BYTES_MAX, RECORD_HEADER_BYTES, align,
    checksum_matches, meaning, u32_at, u64_at,
};
use super::{Archive, TimelineHistory, WalFile, damaged};
use offshoot_connector::{DataFile, read_full};

/// How much is read from a file at once, in bytes.
const WINDOW_BYTES: usize = 256 << 10;

/// A record that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where it begins.
    pub(crate) start: Lsn,
    /// Where it ends, and where to look for the next one.
    pub(crate) end: Lsn,
    /// What it means.
    pub(crate) meaning: Meaning,
    /// Its bytes, without the headers of pages inside it and without padding.
    pub(crate) length: u32,
    /// Its checksum, which is right.
    pub(crate) checksum: u32,
    /// Where it says that the record before it begins.
    pub(crate) previous: Lsn,
    /// Its resource manager.
    pub(crate) manager: u8,
    /// Which of the resource manager's records it is, in the upper four bits.
    pub(crate) info: u8,
}

impl Found {
    /// Whether it says which transactions run.
    pub(crate) fn is_running_transactions(&self) -> bool {
        const MANAGER_STANDBY: u8 = 8;
        const RUNNING_TRANSACTIONS: u8 = 0x10;
        (self.manager, self.info & 0xF0) == (MANAGER_STANDBY, RUNNING_TRANSACTIONS)
    }
}

/// What is at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A record.
    Record(Found),
    /// Nothing yet.
    End,
}

/// A WAL file that is open.
type Open = (WalFile, Box<dyn DataFile>);

/// How reading the bytes of a record went.
enum Assembled {
    /// They are in the buffer; the position after them.
    Whole(u64),
    /// The source abandoned the record in a crash; where the next one begins.
    GivenUp(u64),
    /// They are not all there yet.
    Unfinished,
}

/// Reads records.
pub(crate) struct LogReader<'a> {
    archive: &'a Archive,
    history: TimelineHistory,
    open: Option<Open>,
    window: Vec<u8>,
    window_start: u64,
    record: Vec<u8>,
    magic: u16,
}

impl<'a> LogReader<'a> {
    pub(crate) fn new(archive: &'a Archive, history: TimelineHistory) -> Self {
        LogReader {
            archive,
            history,
            open: None,
            window: Vec::new(),
            window_start: 0,
            record: Vec::new(),
            magic: 0,
        }
    }

    /// The first position at or after `from` where a record begins, for a `from` of which only the
    /// page is known to be right: skips the rest of a record that began on an earlier page. The
    /// flag says whether the position is certain: not before the page there was received.
    ///
    /// A `from` inside a page is taken as the beginning of a record.
    pub(crate) fn first_record(&mut self, from: Lsn) -> Result<(Lsn, bool), Failure> {
        if !from.0.is_multiple_of(PAGE_BYTES) {
            return Ok((from, true));
        }
        let mut address = from.0;
        loop {
            let Some(header) = self.page(address)? else { return Ok((from, false)) };
            let after = address + header.bytes();
            if !header.continues() {
                return Ok((Lsn(after), true));
            }
            let room = PAGE_BYTES - header.bytes();
            if u64::from(header.remaining) < room {
                return Ok((align(after + u64::from(header.remaining)), true));
            }
            address += PAGE_BYTES;
            if u64::from(header.remaining) == room {
                return Ok((Lsn(address), true));
            }
        }
    }

    /// Reads the record that begins at a position (or after the page header there).
    pub(crate) fn next_record(&mut self, position: Lsn) -> Result<Step, Failure> {
        let mut start = position.0;
        loop {
            match self.assemble(&mut start)? {
                Assembled::Unfinished => return self.unfinished(start),
                Assembled::GivenUp(next) => start = next,
                Assembled::Whole(end) => {
                    if !checksum_matches(&self.record) {
                        return self.unfinished(start);
                    }
                    let Some(meaning) = meaning(&self.record, self.magic) else {
                        return Err(self.damage(start, "a transaction's record makes no sense"));
                    };
                    let end = match meaning {
                        Meaning::SwitchFile => {
                            let size = self.archive.segment_bytes();
                            Lsn(end.div_ceil(size).saturating_mul(size))
                        }
                        _ => align(end),
                    };
                    return Ok(Step::Record(self.found(start, end, meaning)));
                }
            }
        }
    }

    /// The record that was read last, without the headers of pages inside it.
    pub(crate) fn record(&self) -> &[u8] {
        &self.record
    }

    /// Which version wrote it.
    pub(crate) fn magic(&self) -> u16 {
        self.magic
    }

    /// The record in the buffer, whose checksum is right.
    fn found(&self, start: u64, end: Lsn, meaning: Meaning) -> Found {
        let byte = |at: usize| self.record.get(at).copied().unwrap_or_default();
        Found {
            start: Lsn(start),
            end,
            meaning,
            length: self.record.len() as u32,
            checksum: u32_at(&self.record, 20).unwrap_or_default(),
            previous: Lsn(u64_at(&self.record, 8).unwrap_or_default()),
            manager: byte(17),
            info: byte(16),
        }
    }

    /// Copies the record at `start` into the buffer; moves `start` over a page header.
    fn assemble(&mut self, start: &mut u64) -> Result<Assembled, Failure> {
        self.record.clear();
        let mut page = *start - *start % PAGE_BYTES;
        let Some(header) = self.page(page)? else { return Ok(Assembled::Unfinished) };
        if *start == page {
            *start += header.bytes();
        }
        self.magic = header.magic;
        let Some(length) = self.length_at(*start)? else { return Ok(Assembled::Unfinished) };
        let mut at = *start;
        loop {
            let room = (page + PAGE_BYTES - at).min((length - self.record.len()) as u64);
            let offset = (at - self.window_start) as usize;
            let Some(bytes) = self.window.get(offset..offset + room as usize) else {
                return Err(Failure::internal("a page of the log is not in memory"));
            };
            self.record.extend_from_slice(bytes);
            at += room;
            if self.record.len() == length {
                return Ok(Assembled::Whole(at));
            }
            page += PAGE_BYTES;
            let Some(header) = self.page(page)? else { return Ok(Assembled::Unfinished) };
            at = page + header.bytes();
            if header.replaces_broken() {
                return Ok(Assembled::GivenUp(at));
            }
            let left = length - self.record.len();
            if !header.continues() || header.remaining as usize != left {
                return Ok(Assembled::Unfinished);
            }
        }
    }

    /// The length of the record at a position of the page in the window, if it can be one.
    fn length_at(&self, position: u64) -> Result<Option<usize>, Failure> {
        let offset = (position - self.window_start) as usize;
        let length = u32_at(&self.window, offset).unwrap_or(0) as usize;
        if length == 0 {
            return Ok(None);
        }
        Ok((RECORD_HEADER_BYTES..=RECORD_BYTES_MAX).contains(&length).then_some(length))
    }

    /// Decides what an unreadable record means: the end so far, or damage.
    fn unfinished(&mut self, start: u64) -> Result<Step, Failure> {
        // The last page looked at belongs to the file that is open.
        match &self.open {
            Some((file, _)) if !file.partial && !self.may_be_replaced(file) => {
                Err(self.damage(start, "the record there is not valid"))
            }
            _ => Ok(Step::End),
        }
    }

    /// Whether a file's tail may be superseded by a timeline that is not known yet.
    fn may_be_replaced(&self, file: &WalFile) -> bool {
        let newest = self.history.newest().id;
        file.timeline != newest || self.archive.has_history(newest + 1)
    }

    fn damage(&self, position: u64, why: &str) -> Failure {
        let file = WalFile {
            timeline: self.history.at(Lsn(position)).id,
            number: self.archive.number_at(Lsn(position)),
            partial: false,
        };
        let name = self.archive.file_name(&file);
        damaged(&name, &format!("the log is damaged at {}: {why}", Lsn(position)))
    }

    /// Makes the window hold the page at an address and reads its header; `None` when it was not
    /// received yet (then `open` is the file that should hold it, if any).
    fn page(&mut self, address: u64) -> Result<Option<PageHeader>, Failure> {
        let in_window = address >= self.window_start
            && address.saturating_add(PAGE_BYTES) <= self.window_start + self.window.len() as u64;
        if !in_window && !self.fill(address)? {
            return Ok(None);
        }
        let offset = (address - self.window_start) as usize;
        let page = self.window.get(offset..offset + PAGE_BYTES as usize).unwrap_or_default();
        Ok(PageHeader::parse(page, address))
    }

    fn fill(&mut self, address: u64) -> Result<bool, Failure> {
        self.window.clear();
        let number = self.archive.number_at(Lsn(address));
        if self.open.as_ref().is_none_or(|(file, _)| file.number != number) {
            self.open = self.find(number)?;
        }
        let Some((file, handle)) = &self.open else { return Ok(false) };
        let offset = address - self.archive.start(file).0;
        let wanted = (WINDOW_BYTES as u64).min(self.archive.segment_bytes() - offset) as usize;
        self.window.resize(wanted, 0);
        let filled = read_full(&**handle, offset, &mut self.window)
            .map_err(|error| damaged(&self.archive.file_name(file), &error.to_string()))?;
        self.window.truncate(filled - filled % PAGE_BYTES as usize);
        self.window_start = address;
        Ok(!self.window.is_empty())
    }

    /// Opens the file of a number: that of the newest timeline which has one, as it begins with a
    /// copy of what the older ones had.
    fn find(&self, number: u64) -> Result<Option<Open>, Failure> {
        for timeline in self.history.timelines().rev() {
            // A partial file may get its whole name in between.
            for partial in [false, true, false] {
                let file = WalFile { timeline: timeline.id, number, partial };
                if self.archive.end(&file) <= timeline.begin {
                    break;
                }
                if let Some(handle) = self.archive.open(&file)? {
                    return Ok(Some((file, handle)));
                }
            }
        }
        Ok(None)
    }
}
