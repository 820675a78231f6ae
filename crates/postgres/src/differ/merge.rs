//! The rows of both copies, side by side.

use crate::wire::Wire;
use offshoot_types::Failure;
use std::cmp::Ordering;

/// A row as a copy has it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    /// As `COPY` writes it: its key, then its columns.
    line: Vec<u8>,
    /// What it is ordered by.
    key: Vec<u8>,
}

impl Row {
    /// The values of its columns.
    pub(crate) fn values(&self) -> Vec<Option<String>> {
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        line.split(|byte| *byte == b'\t').skip(1).map(text).collect()
    }

    /// Its columns as `COPY` writes them, with the line end.
    pub(crate) fn columns(&self) -> &[u8] {
        let key =
            self.line.iter().position(|byte| *byte == b'\t').map_or(self.line.len(), |at| at + 1);
        self.line.get(key..).unwrap_or_default()
    }

    /// The key as the server writes a record of its columns.
    pub(crate) fn key_text(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }

    fn read_key(&mut self) {
        let end = self.line.iter().position(|byte| matches!(byte, b'\t' | b'\n'));
        let field = self.line.get(..end.unwrap_or(self.line.len())).unwrap_or_default();
        self.key.clear();
        unescape(field, &mut self.key);
    }
}

fn text(field: &[u8]) -> Option<String> {
    if field == b"\\N" {
        return None;
    }
    let mut value = Vec::with_capacity(field.len());
    unescape(field, &mut value);
    Some(String::from_utf8_lossy(&value).into_owned())
}

/// What `COPY` wrote, as it was.
fn unescape(field: &[u8], value: &mut Vec<u8>) {
    let mut bytes = field.iter();
    while let Some(byte) = bytes.next() {
        value.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'v') => 11,
                Some(other) => *other,
                None => b'\\',
            },
            other => *other,
        });
    }
}

/// A row that is not the same in both.
pub(crate) enum Found<'a> {
    Added(&'a Row),
    Removed(&'a Row),
    Changed(&'a Row, &'a Row),
}

/// Rows that come in the order of their keys.
struct Stream<'a> {
    wire: Option<&'a mut Wire>,
    row: Row,
    there: bool,
    place: &'a str,
}

impl<'a> Stream<'a> {
    /// Without a statement there are no rows.
    fn begin(wire: &'a mut Wire, sql: Option<&str>, place: &'a str) -> Result<Stream<'a>, Failure> {
        let Some(sql) = sql else {
            return Ok(Stream { wire: None, row: Row::default(), there: false, place });
        };
        wire.begin_copy_out(sql).map_err(|refusal| refusal.of_reading(place))?;
        Ok(Stream { wire: Some(wire), row: Row::default(), there: true, place })
    }

    fn next(&mut self, waiting: &mut dyn FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
        let Some(wire) = &mut self.wire else { return Ok(()) };
        let place = self.place;
        self.there =
            wire.next_copied(&mut self.row.line, waiting).map_err(|error| match error {
                Ok(refusal) => refusal.of_reading(place),
                Err(failure) => failure,
            })?;
        if self.there {
            self.row.read_key();
        }
        Ok(())
    }
}

/// How rows are ordered by what comes before their columns.
pub(crate) type Order = fn(&[u8], &[u8]) -> Ordering;

/// By the bytes of their keys.
pub(crate) fn by_key(one: &[u8], other: &[u8]) -> Ordering {
    one.cmp(other)
}

/// By their places in the table: `(page,number)`.
pub(crate) fn by_place(one: &[u8], other: &[u8]) -> Ordering {
    place(one).cmp(&place(other))
}

/// What is no place comes first.
fn place(text: &[u8]) -> Option<(u64, u64)> {
    let inside = text.strip_prefix(b"(")?.strip_suffix(b")")?;
    let (page, number) = std::str::from_utf8(inside).ok()?.split_once(',')?;
    Some((page.parse().ok()?, number.parse().ok()?))
}

/// Rows that are looked at between two calls of `waiting`.
const ROWS_UNWATCHED: u64 = 4096;

/// Finds the rows that are not the same, of what two statements give in an order. `waiting` is called now and then; its
/// error ends it.
///
/// # Errors
/// What a server refuses; those of `found` and `waiting`.
pub(crate) fn merge(
    (left, left_sql): (&mut Wire, Option<&str>),
    (right, right_sql): (&mut Wire, Option<&str>),
    (order, place): (Order, &str),
    waiting: &mut dyn FnMut() -> Result<(), Failure>,
    found: &mut dyn FnMut(Found<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut a = Stream::begin(left, left_sql, place)?;
    // Both work at the same time.
    let mut b = Stream::begin(right, right_sql, place)?;
    a.next(waiting)?;
    b.next(waiting)?;
    let mut rows = 0_u64;
    while a.there || b.there {
        rows += 1;
        if rows.is_multiple_of(ROWS_UNWATCHED) {
            waiting()?;
        }
        let which = match (a.there, b.there) {
            (true, true) => order(&a.row.key, &b.row.key),
            (true, false) => Ordering::Less,
            _ => Ordering::Greater,
        };
        match which {
            Ordering::Less => found(Found::Removed(&a.row))?,
            Ordering::Greater => found(Found::Added(&b.row))?,
            Ordering::Equal if a.row.line != b.row.line => found(Found::Changed(&a.row, &b.row))?,
            Ordering::Equal => {}
        }
        if which != Ordering::Greater {
            a.next(waiting)?;
        }
        if which != Ordering::Less {
            b.next(waiting)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
