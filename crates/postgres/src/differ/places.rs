//! Which rows of pages may differ, as the bytes of both pages tell.
//!
//! A place is left out if both copies show the same row there, or none. That it is so is known in these cases alone; of everything
//! else the servers are asked:
//! - Both have the same bytes there, of a row that whoever inserted it has committed and nobody has deleted. It has no value out of
//!   line (TOAST); or its transaction had begun at the common ancestor, as the [front page](super) has it of whole pages.
//! - In both there is no row, or one that was deleted, or whose transaction was rolled back.
//!
//! How a transaction ended is read from the row, where it was marked, or from the copy's own `pg_xact`
//! ([`Outcomes`]): as the copies were stopped, what was under way never ends.
//!
//! How pages and rows are laid out: `bufpage.h`, `itemid.h` and `htup_details.h` of PostgreSQL, the same from 13 to 18.

use super::outcomes::{Outcome, Outcomes};
use offshoot_connector::{DataDir, DataFile, read_full};
use offshoot_types::Failure;
use std::ops::Range;
use std::{fmt, io};

/// Bytes of a page.
const PAGE_BYTES: usize = 8192;
/// Bytes that are read at once.
const RUN_BYTES: usize = 64 * PAGE_BYTES;
/// Bytes of a page before its item pointers.
const PAGE_HEADER: usize = 24;
/// Bytes of a row before its null bitmap.
const ROW_HEADER: usize = 23;
/// Item pointers of a page, at most: `MaxHeapTuplesPerPage`.
const ITEMS_MAX: u16 = 291;
/// An item pointer's state: it leads to a row.
const NORMAL: u32 = 1;

/// There are values out of line.
const HAS_EXTERNAL: u16 = 0x0004;
/// The number in `xmax` has locked the row alone.
const LOCK_ONLY: u16 = 0x0080;
/// How it is locked: for others to refer to it, or by one alone. With the second of these and neither [`LOCK_ONLY`] nor
/// [`XMAX_IS_MULTI`], PostgreSQL 9.2 and before have locked a row, and not deleted it.
const LOCKS: u16 = 0x0050;
const LOCKED_BY_ONE: u16 = 0x0040;
/// What inserted the row has committed; with the next mark: so long ago that its number means nothing.
const XMIN_COMMITTED: u16 = 0x0100;
/// What inserted the row was rolled back.
const XMIN_INVALID: u16 = 0x0200;
/// What deleted the row has committed.
const XMAX_COMMITTED: u16 = 0x0400;
/// What is in `xmax` has not deleted the row.
const XMAX_INVALID: u16 = 0x0800;
/// The number in `xmax` is one of several transactions together.
const XMAX_IS_MULTI: u16 = 0x1000;
/// An old VACUUM FULL has moved the row.
const MOVED: u16 = 0xC000;
/// The count of columns, in the second word of marks.
const COLUMNS: u16 = 0x07FF;
/// The first number of a transaction that is not always there.
const FIRST_NORMAL: u32 = 3;

/// A row's place in its table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) page: u32,
    /// From 1.
    pub(crate) item: u16,
}

/// As the server writes it.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.page, self.item)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether a transaction is before another one, as its number is written in rows: less than 2³¹ apart.
fn is_before(number: u32, limit: u64) -> bool {
    number < FIRST_NORMAL || (number.wrapping_sub(limit as u32) as i32) < 0
}

/// A row as its page has it.
struct Row<'a> {
    xmin: u32,
    xmax: u32,
    marks: u16,
    columns: u16,
    /// From the null bitmap on, and where its columns begin.
    data: (&'a [u8], u8),
}

/// Whether a copy shows a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Yes,
    No,
    /// The server knows.
    Perhaps,
}

impl Row<'_> {
    fn is_seen(&self, outcomes: &mut Outcomes<'_>) -> Seen {
        if self.marks & MOVED != 0 {
            return Seen::Perhaps;
        }
        let inserted = match self.marks & (XMIN_COMMITTED | XMIN_INVALID) {
            // `INSERT … ON CONFLICT` has taken it back.
            0 if self.xmin == 0 => Outcome::RolledBack,
            0 if self.xmin < FIRST_NORMAL => Outcome::Committed,
            0 => outcomes.of(self.xmin),
            XMIN_INVALID => Outcome::RolledBack,
            _ => Outcome::Committed,
        };
        let deleted = match self.marks {
            _ if self.xmax == 0 => Outcome::RolledBack,
            marks if marks & (XMAX_INVALID | LOCK_ONLY) != 0 => Outcome::RolledBack,
            marks if marks & XMAX_IS_MULTI != 0 => Outcome::Unknown,
            marks if marks & LOCKS == LOCKED_BY_ONE => Outcome::RolledBack,
            marks if marks & XMAX_COMMITTED != 0 => Outcome::Committed,
            _ => outcomes.of(self.xmax),
        };
        match (inserted, deleted) {
            (Outcome::RolledBack, _) => Seen::No,
            (Outcome::Committed, Outcome::Committed) => Seen::No,
            (Outcome::Committed, Outcome::RolledBack) => Seen::Yes,
            _ => Seen::Perhaps,
        }
    }

    /// Whether both have the same values.
    fn is_equal(&self, other: &Row<'_>, shared: u64) -> bool {
        let is_known = self.marks & HAS_EXTERNAL == 0
            || self.xmin == other.xmin && is_before(self.xmin, shared);
        is_known && self.columns == other.columns && self.data == other.data
    }
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn word_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

/// A page of a table.
#[derive(Clone, Copy)]
struct Page<'a> {
    bytes: &'a [u8],
    items: u16,
}

impl<'a> Page<'a> {
    /// None for what is no page of a table. One that was never written, or is not there, is empty.
    fn read(bytes: &'a [u8]) -> Option<Page<'a>> {
        let lower = word_at(bytes, 12).map_or(0, usize::from);
        if lower == 0 {
            return bytes.iter().all(|byte| *byte == 0).then_some(Page { bytes, items: 0 });
        }
        let items = lower.checked_sub(PAGE_HEADER)? / 4;
        let items = u16::try_from(items).ok().filter(|items| *items <= ITEMS_MAX)?;
        (bytes.len() == PAGE_BYTES).then_some(Page { bytes, items })
    }

    /// The pointer of an item, counted from 1; 0 if there is none.
    fn pointer(&self, item: u16) -> u32 {
        if item > self.items {
            return 0;
        }
        number_at(self.bytes, PAGE_HEADER + 4 * (usize::from(item) - 1)).unwrap_or_default()
    }

    /// The row that an item leads to, if its pointer is one to a row.
    fn row(&self, pointer: u32) -> Option<Row<'a>> {
        let (from, bytes) = ((pointer & 0x7FFF) as usize, (pointer >> 17) as usize);
        let row = self.bytes.get(from..from.checked_add(bytes)?)?;
        Some(Row {
            xmin: number_at(row, 0)?,
            xmax: number_at(row, 4)?,
            columns: word_at(row, 18)? & COLUMNS,
            marks: word_at(row, 20)?,
            data: (row.get(ROW_HEADER..)?, *row.get(22)?),
        })
    }

    /// What an item leads to, and whether the copy shows it.
    fn seen(&self, item: u16, outcomes: &mut Outcomes<'_>) -> (Option<Row<'a>>, Seen) {
        let pointer = self.pointer(item);
        if pointer >> 15 & 3 != NORMAL {
            return (None, Seen::No);
        }
        let row = self.row(pointer);
        let seen = row.as_ref().map_or(Seen::Perhaps, |row| row.is_seen(outcomes));
        (row, seen)
    }
}

/// What is known of the transactions of both copies.
pub(super) struct Transactions<'a> {
    pub(super) left: Outcomes<'a>,
    pub(super) right: Outcomes<'a>,
    /// Those before had begun at a state that both come from.
    pub(super) shared: u64,
}

/// The pages of a table's file in both copies.
pub(super) struct Files {
    /// None where it has no such file.
    left: Option<Box<dyn DataFile>>,
    right: Option<Box<dyn DataFile>>,
    /// For what is read of each.
    buffers: (Vec<u8>, Vec<u8>),
}

impl Files {
    pub(super) fn open(
        (left, right): (&dyn DataDir, &dyn DataDir),
        name: &str,
    ) -> io::Result<Files> {
        let open = |files: &dyn DataDir| match files.open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        };
        let buffers = (vec![0; RUN_BYTES], vec![0; RUN_BYTES]);
        Ok(Files { left: open(left)?, right: open(right)?, buffers })
    }

    /// Finds the places in these pages of the file that may be rows which are not the same in both copies, in ascending order;
    /// `first` is the number of the file's first page in the table. Ends early where there are more than so many. Returns how
    /// many places it looked at.
    pub(super) fn places(
        &mut self,
        (first, pages): (u64, Range<u64>),
        known: &mut Transactions<'_>,
        (places, most): (&mut Vec<Place>, usize),
        waiting: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let mut looked = 0;
        let mut at = pages.start;
        while at < pages.end && places.len() <= most {
            waiting()?;
            let count = (pages.end - at).min((RUN_BYTES / PAGE_BYTES) as u64);
            let failed = |error: io::Error| {
                Failure::internal(format!("pages of a table cannot be read: {error}"))
            };
            let left =
                read(self.left.as_deref(), at, count, &mut self.buffers.0).map_err(failed)?;
            let right =
                read(self.right.as_deref(), at, count, &mut self.buffers.1).map_err(failed)?;
            for page in 0..count {
                let number = u32::try_from(first + at + page).unwrap_or(u32::MAX);
                let (left, right) = (page_of(left, page), page_of(right, page));
                let items = of_page(left, right, known, &mut |item| {
                    places.push(Place { page: number, item });
                });
                looked += u64::from(items);
            }
            at += count;
        }
        Ok(looked)
    }
}

/// Reads pages; what is not there is left out.
fn read<'b>(
    file: Option<&dyn DataFile>,
    page: u64,
    count: u64,
    buffer: &'b mut [u8],
) -> io::Result<&'b [u8]> {
    let Some(file) = file else { return Ok(&[]) };
    let wanted = buffer.get_mut(..count as usize * PAGE_BYTES).unwrap_or_default();
    let filled = read_full(file, page * PAGE_BYTES as u64, wanted)?;
    Ok(wanted.get(..filled).unwrap_or_default())
}

fn page_of(run: &[u8], page: u64) -> &[u8] {
    let from = page as usize * PAGE_BYTES;
    run.get(from..run.len().min(from + PAGE_BYTES)).unwrap_or_default()
}

/// Finds the items of a page that may be rows which are not the same in both copies, in ascending order. Returns how many
/// there are in all.
fn of_page(
    left: &[u8],
    right: &[u8],
    known: &mut Transactions<'_>,
    found: &mut dyn FnMut(u16),
) -> u16 {
    let (Some(a), Some(b)) = (Page::read(left), Page::read(right)) else {
        // The servers say what it is.
        (1..=ITEMS_MAX).for_each(found);
        return ITEMS_MAX;
    };
    let items = a.items.max(b.items);
    for item in 1..=items {
        let ((one, in_one), (other, in_other)) =
            (a.seen(item, &mut known.left), b.seen(item, &mut known.right));
        let same = match (in_one, in_other) {
            (Seen::No, Seen::No) => true,
            (Seen::Yes, Seen::Yes) => {
                one.zip(other).is_some_and(|(one, other)| one.is_equal(&other, known.shared))
            }
            _ => false,
        };
        if !same {
            found(item);
        }
    }
    items
}

#[cfg(test)]
mod tests;
