//! Masks rows as `COPY` writes them in its text format.
//!
//! A row is a line, its values are separated by tabs, `\N` is NULL, and a backslash comes before what would be taken
//! for something else. Values that are kept go through as they are, byte by byte; only a row that a mask needs is
//! understood.

use offshoot_masking::{Outcome, Row, ValueMask};
use offshoot_types::{ErrorKind, Failure};
use std::borrow::Cow;
use std::sync::Arc;

const NULL: &[u8] = b"\\N";

/// What becomes of the rows of a table.
pub(super) struct RowPlan {
    /// How many values a row has as it is read.
    pub(super) fields: usize,
    /// The values that are written.
    pub(super) written: Vec<Written>,
    /// Rules that share a condition.
    pub(super) groups: Vec<Group>,
    /// What tells which row it is: a name, and the value's place.
    pub(super) key: Vec<(String, usize)>,
    /// Values whose blanks at the end mean nothing, by their place.
    pub(super) padded: Vec<bool>,
}

/// Rules of one table, which is the one that is masked or one above it.
pub(super) struct Group {
    /// The value that says whether they hold for a row; none: they do.
    pub(super) flag: Option<usize>,
    /// Where the values are that its masks expect, in their order.
    pub(super) layout: Vec<usize>,
}

/// A value that is written.
pub(super) struct Written {
    pub(super) column: String,
    /// Where it is in the row that was read.
    pub(super) field: usize,
    pub(super) not_null: bool,
    pub(super) change: Change,
}

/// What becomes of a value.
pub(super) enum Change {
    Kept,
    Masked {
        group: usize,
        /// Where it is in the group's layout.
        place: usize,
        mask: Arc<dyn ValueMask>,
    },
    /// The database has computed its mask.
    Computed {
        group: usize,
        field: usize,
    },
}

/// What was done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) rows: u64,
    /// Values that were replaced.
    pub(super) values: u64,
}

/// Why a row cannot be masked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Empty if it is none in particular.
    pub(super) column: String,
    /// The row's key.
    pub(super) row: String,
    pub(super) why: String,
}

impl Fault {
    /// As it is told to users.
    pub(super) fn into_failure(self, table: &str) -> Failure {
        Failure::new(
            ErrorKind::InvalidInput,
            format!("{}: {}", place(table, &self.column, &self.row), self.why),
            "choose another algorithm for this column, or give its parameters",
        )
    }
}

/// Where something is; a column or a row that is empty is none in particular.
pub(super) fn place(table: &str, column: &str, row: &str) -> String {
    let mut place = table.to_owned();
    for (what, name) in [("column", column), ("row", row)] {
        if !name.is_empty() {
            place += &format!(", {what} {name}");
        }
    }
    place
}

impl RowPlan {
    /// Masks whole rows and appends them to `out`.
    pub(super) fn mask(&self, rows: &[u8], out: &mut Vec<u8>) -> Result<Counts, Fault> {
        let fault =
            |why: &str| Fault { column: String::new(), row: String::new(), why: why.to_owned() };
        let text = std::str::from_utf8(rows)
            .map_err(|_| fault("the database has no encoding, and texts in it are not UTF-8"))?;
        let mut counts = Counts::default();
        let mut fields: Vec<&str> = Vec::with_capacity(self.fields);
        let mut plain: Vec<Vec<Option<&str>>> = vec![Vec::new(); self.groups.len()];
        let mut mask = String::new();
        for line in text.split_terminator('\n') {
            fields.clear();
            fields.extend(line.split('\t'));
            if fields.len() != self.fields {
                return Err(fault("a row has another number of values"));
            }
            counts.rows += 1;
            counts.values += match self.is_plain(&fields, &mut plain) {
                true => self.row(&fields, &plain, &mut mask, out)?,
                false => {
                    let understood = self.understand(&fields);
                    let texts: Vec<Vec<Option<&str>>> = understood
                        .iter()
                        .map(|row| row.iter().map(Option::as_deref).collect())
                        .collect();
                    self.row(&fields, &texts, &mut mask, out)?
                }
            };
        }
        Ok(counts)
    }

    /// Fills in what masks expect if the values mean what they say, as most do.
    fn is_plain<'a>(&self, fields: &[&'a str], plain: &mut [Vec<Option<&'a str>>]) -> bool {
        for (group, row) in self.groups.iter().zip(plain) {
            row.clear();
            if !self.holds(group, fields) {
                continue;
            }
            for at in &group.layout {
                let Some(field) = fields.get(*at).copied() else { return false };
                row.push(match field.as_bytes() == NULL {
                    true => None,
                    false if field.contains('\\') => return false,
                    false => Some(self.trimmed(*at, field)),
                });
            }
        }
        true
    }

    fn row(
        &self,
        fields: &[&str],
        texts: &[Vec<Option<&str>>],
        mask: &mut String,
        out: &mut Vec<u8>,
    ) -> Result<u64, Fault> {
        let mut values = 0;
        for (number, written) in self.written.iter().enumerate() {
            if number > 0 {
                out.push(b'\t');
            }
            let kept = fields[written.field].as_bytes();
            let fault = |why: &str| self.fault(fields, &written.column, why);
            let null = || fault("its mask is NULL, which the column does not take");
            match &written.change {
                Change::Masked { group, place, mask: how } if !kept.is_empty() && kept != NULL => {
                    let row = Row { values: &texts[*group] };
                    // There is none where the condition does not hold.
                    let value = row.values.get(*place).copied().flatten();
                    let Some(value) = value.filter(|value| !value.is_empty()) else {
                        out.extend_from_slice(kept);
                        continue;
                    };
                    mask.clear();
                    match how.mask(value, &row, mask).map_err(|error| fault(error.why))? {
                        Outcome::Value => escape(mask, out),
                        Outcome::Null if written.not_null => return Err(null()),
                        Outcome::Null => out.extend_from_slice(NULL),
                    }
                    values += 1;
                }
                Change::Computed { group, field }
                    if kept != NULL && self.holds(&self.groups[*group], fields) =>
                {
                    let computed = fields[*field].as_bytes();
                    if computed == NULL && written.not_null {
                        return Err(null());
                    }
                    out.extend_from_slice(computed);
                    values += 1;
                }
                _ => out.extend_from_slice(kept),
            }
        }
        out.push(b'\n');
        Ok(values)
    }

    /// Whether the rules of a group hold for a row.
    pub(super) fn holds(&self, group: &Group, fields: &[&str]) -> bool {
        group.flag.is_none_or(|at| fields.get(at).is_some_and(|flag| *flag == "t"))
    }

    /// What masks expect, of any values.
    fn understand<'a>(&self, fields: &[&'a str]) -> Vec<Vec<Option<Cow<'a, str>>>> {
        let value = |at: &usize| {
            Some(match unescape(fields.get(*at)?)? {
                Cow::Borrowed(text) => Cow::Borrowed(self.trimmed(*at, text)),
                Cow::Owned(text) => Cow::Owned(self.trimmed(*at, &text).to_owned()),
            })
        };
        let group = |group: &Group| match self.holds(group, fields) {
            true => group.layout.iter().map(value).collect(),
            false => Vec::new(),
        };
        self.groups.iter().map(group).collect()
    }

    fn trimmed<'a>(&self, at: usize, text: &'a str) -> &'a str {
        let padded = self.padded.get(at).copied().unwrap_or_default();
        if padded { text.trim_end_matches(' ') } else { text }
    }

    fn fault(&self, fields: &[&str], column: &str, why: &str) -> Fault {
        let told = |(name, at): &(String, usize)| {
            let value = fields.get(*at).and_then(|field| unescape(field)).unwrap_or_default();
            format!("{name}={value}")
        };
        let row: Vec<String> = self.key.iter().map(told).collect();
        Fault { column: column.to_owned(), row: row.join(", "), why: why.to_owned() }
    }
}

/// A value as the database means it; none for NULL.
pub(super) fn unescape(field: &str) -> Option<Cow<'_, str>> {
    if field.as_bytes() == NULL {
        return None;
    }
    if !field.contains('\\') {
        return Some(Cow::Borrowed(field));
    }
    let mut text = String::with_capacity(field.len());
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        text.push(match letters.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            other => other,
        });
    }
    Some(Cow::Owned(text))
}

/// Writes a value so that it is read back as it is.
fn escape(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        let letter = match byte {
            0x8 => b'b',
            0xc => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0xb => b'v',
            b'\\' => b'\\',
            other => {
                out.push(other);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

#[cfg(test)]
mod tests;
