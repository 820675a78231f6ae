//! Which pages of a pair of tables are read.

use super::ancestor::Common;
use super::facts::{Column, Facts, Table};
use super::outcomes::Outcomes;
use super::places::{Files, Place, Transactions};
use offshoot_connector::{Ancestor, DataDir, Differing};
use offshoot_types::Failure;
use std::fmt::Write as _;
use std::io;
use std::ops::Range;

/// Pages of one file of a relation, but the last.
const FILE_PAGES: u64 = (1 << 30) / 8192;
/// Places that are looked for: beyond them a statement that names them all is too long.
const PLACES_MAX: usize = 3_000_000;
/// From this version on a server reads ranges of pages by their numbers.
const RANGES_SINCE: u32 = 14;

/// What is read of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reading {
    /// These pages of both.
    Pages(Vec<Range<u64>>),
    /// What is at these places of both, in ascending order, which are some of so many.
    Places(Vec<Place>, u64),
    /// Everything, and why.
    Whole(&'static str),
}

impl Reading {
    /// Whether there is nothing to read.
    pub(crate) fn is_nothing(&self) -> bool {
        match self {
            Reading::Pages(ranges) => ranges.is_empty(),
            Reading::Places(places, _) => places.is_empty(),
            Reading::Whole(_) => false,
        }
    }

    /// Pages to read of a table with so many.
    pub(crate) fn pages_of(&self, pages: u64) -> u64 {
        match self {
            Reading::Whole(_) => pages,
            Reading::Places(places, _) => {
                places.chunk_by(|one, other| one.page == other.page).count() as u64
            }
            Reading::Pages(ranges) => {
                ranges.iter().map(|one| one.end.min(pages).saturating_sub(one.start)).sum()
            }
        }
    }
}

/// What the store knows of two copies.
pub(crate) struct Known<'a> {
    /// The files of the first and of the second.
    pub(crate) files: (&'a dyn DataDir, &'a dyn DataDir),
    /// Their blocks that may differ.
    pub(crate) differing: &'a Differing<'a>,
    /// What both come from; or why there is none.
    pub(crate) common: Result<Common, &'static str>,
    /// Whether words of enumerations were renamed.
    pub(crate) renamed: bool,
}

/// Whether a word of an enumeration is another one in the second.
pub(crate) fn renamed(left: &Facts, right: &Facts) -> bool {
    left.words.iter().any(|(oid, word)| right.words.get(oid).is_some_and(|other| other != word))
}

/// The columns that both have, as each has them.
pub(crate) fn common<'a>(left: &'a Table, right: &'a Table) -> Vec<(&'a Column, &'a Column)> {
    let both = left.columns.iter().filter(|one| !one.is_virtual);
    both.filter_map(|one| Some((one, right.column(&one.name).filter(|one| !one.is_virtual)?)))
        .collect()
}

/// Decides what to read of a table that both have. `waiting` is called now and then; its error ends it.
///
/// # Errors
/// When the store cannot compare or read files; those of `waiting`.
pub(crate) fn of_pair(
    left: &Table,
    right: &Table,
    version: u32,
    known: &Known<'_>,
    waiting: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<Reading, Failure> {
    let pages = pages_of_pair(left, right, version, known)?;
    let reading = narrowed(right, pages, known, waiting)?;
    let most = left.pages.max(right.pages);
    let is_most = most > 1 && reading.pages_of(most) > most / 2;
    Ok(match reading {
        Reading::Pages(_) if is_most => Reading::Whole("most of its pages differ"),
        other => other,
    })
}

/// All pages that may hold rows that differ.
fn pages_of_pair(
    left: &Table,
    right: &Table,
    version: u32,
    known: &Known<'_>,
) -> Result<Reading, Failure> {
    let common = match &known.common {
        Ok(common) => common,
        Err(why) => return Ok(Reading::Whole(why)),
    };
    if let Some(why) = why_whole(left, right, version, known) {
        return Ok(Reading::Whole(why));
    }
    let Some(file) = &left.file else { return Ok(Reading::Whole("it has no file")) };
    let failed = |error: io::Error| {
        Failure::internal(format!("the files of {} cannot be compared: {error}", left.full_name()))
    };
    let mut ranges =
        differing(file, left.pages.max(right.pages), known, &common.ancestor).map_err(failed)?;
    // What only one of them has.
    let tail = left.pages.min(right.pages)..left.pages.max(right.pages);
    ranges.push(tail);
    Ok(Reading::Pages(joined(ranges)))
}

/// Which rows of these pages may differ, as the pages' bytes tell; the pages themselves where these are most of their rows, or
/// very many. `waiting` is called now and then; its error ends it.
///
/// # Errors
/// When the store cannot read files; those of `waiting`.
fn narrowed(
    table: &Table,
    reading: Reading,
    known: &Known<'_>,
    waiting: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<Reading, Failure> {
    let (Reading::Pages(ranges), Some(file), Ok(common)) = (&reading, &table.file, &known.common)
    else {
        return Ok(reading);
    };
    let failed = |error: io::Error| {
        Failure::internal(format!("the files of {} cannot be read: {error}", table.full_name()))
    };
    let (left, right) = (Outcomes::new(known.files.0), Outcomes::new(known.files.1));
    let mut transactions = Transactions { left, right, shared: common.shared };
    let (mut places, mut looked) = (Vec::new(), 0);
    let mut opened: Option<(u64, Files)> = None;
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let number = at / FILE_PAGES;
            let mut files = match opened.take().filter(|(which, _)| *which == number) {
                Some((_, files)) => files,
                None => Files::open(known.files, &file_name(file, number)).map_err(failed)?,
            };
            let first = number * FILE_PAGES;
            let end = range.end.min(first + FILE_PAGES);
            let pages = (first, at - first..end - first);
            looked += files.places(pages, &mut transactions, (&mut places, PLACES_MAX), waiting)?;
            opened = Some((number, files));
            at = end;
        }
        if places.len() > PLACES_MAX {
            return Ok(reading);
        }
    }
    let is_most = places.len() as u64 > looked / 2;
    Ok(if is_most { reading } else { Reading::Places(places, looked) })
}

/// Whether a file of so many pages may hold rows that differ.
///
/// # Errors
/// When the store cannot compare files.
pub(crate) fn file_differs(file: &str, pages: u64, known: &Known<'_>) -> Result<bool, Failure> {
    let Ok(common) = &known.common else { return Ok(true) };
    let ranges = differing(file, pages, known, &common.ancestor).map_err(|error| {
        Failure::internal(format!("the files {file} cannot be compared: {error}"))
    })?;
    Ok(!joined(ranges).is_empty())
}

fn why_whole(left: &Table, right: &Table, version: u32, known: &Known<'_>) -> Option<&'static str> {
    if version < RANGES_SINCE {
        return Some("this version of PostgreSQL reads no ranges of pages");
    }
    if left.file != right.file {
        return Some("it was rewritten");
    }
    if left.method != "heap" || right.method != "heap" {
        return Some("it is stored by another access method");
    }
    let both = common(left, right);
    if !both.iter().all(|(a, b)| a.same_as(b)) {
        return Some("columns were changed");
    }
    if known.renamed && both.iter().any(|(one, _)| one.is_of_users()) {
        return Some("words of an enumeration were renamed");
    }
    None
}

fn differing(
    file: &str,
    pages: u64,
    known: &Known<'_>,
    ancestor: &Ancestor,
) -> io::Result<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    for number in 0..pages.div_ceil(FILE_PAGES) {
        let name = file_name(file, number);
        let base = number * FILE_PAGES;
        for found in [(known.differing)(&name)?, (ancestor.differing)(&name)?] {
            match found {
                Some(found) => {
                    ranges.extend(found.into_iter().map(|one| base + one.start..base + one.end));
                }
                None => ranges.push(base..(base + FILE_PAGES).min(pages)),
            }
        }
    }
    Ok(ranges)
}

/// A file of a table, by the name of its first one.
fn file_name(first: &str, number: u64) -> String {
    if number == 0 { first.to_owned() } else { format!("{first}.{number}") }
}

/// Ascending ranges that neither touch nor are empty.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|one| !one.is_empty());
    ranges.sort_by_key(|one| one.start);
    let mut all: Vec<Range<u64>> = Vec::new();
    for one in ranges {
        match all.last_mut() {
            Some(last) if one.start <= last.end => last.end = last.end.max(one.end),
            _ => all.push(one),
        }
    }
    all
}

/// Makes a server read ranges of pages by their numbers.
pub(crate) const BY_NUMBERS: &str = "SET enable_seqscan = off";

/// What is read of each row of a table.
pub(crate) struct Selected<'a> {
    /// What the fields call the table.
    pub(crate) alias: &'a str,
    /// Expressions.
    pub(crate) fields: &'a [String],
}

impl Selected<'_> {
    /// The rows that are to be read, behind what `first` says of each.
    fn rows(&self, table: &Table, reading: &Reading, first: &str) -> String {
        let Selected { alias, fields } = self;
        let rows = format!("SELECT {first} AS k, {}", fields.join(", "));
        let place = format!("ONLY {} {alias}", table.quoted());
        let ranges = match reading {
            Reading::Whole(_) => return format!("{rows} FROM {place}"),
            Reading::Places(places, _) => {
                let mut all = String::with_capacity(places.len() * 16);
                for (at, one) in places.iter().enumerate() {
                    // Writing to text cannot fail.
                    let _ = write!(all, "{}\"{one}\"", if at == 0 { "" } else { "," });
                }
                return format!(
                    "SELECT x.* FROM unnest('{{{all}}}'::tid[]) p (place), \
                     LATERAL ({rows} FROM {place} WHERE {alias}.ctid = p.place OFFSET 0) x"
                );
            }
            Reading::Pages(ranges) => ranges,
        };
        let tids = |of: fn(&Range<u64>) -> u64| {
            let all: Vec<String> =
                ranges.iter().map(|one| format!("\"({},0)\"", of(one))).collect();
            format!("'{{{}}}'::tid[]", all.join(","))
        };
        format!(
            "SELECT x.* FROM unnest({}, {}) r (first, end_), LATERAL ({rows} FROM {place} \
             WHERE {alias}.ctid >= r.first AND {alias}.ctid < r.end_ OFFSET 0) x",
            tids(|one| one.start),
            tids(|one| one.end),
        )
    }
}

/// The statement that reads rows of a table in the order of what tells them from others: that first, then the fields.
pub(crate) fn by_key_sql(
    (table, reading): (&Table, &Reading),
    told_by: &[String],
    selected: &Selected<'_>,
    encoding: &str,
) -> String {
    // Both servers give rows in the order of the bytes that are sent.
    let order = match encoding {
        "UTF8" | "SQL_ASCII" => "k COLLATE \"C\"",
        _ => "convert_to(k, 'UTF8')",
    };
    let rows = selected.rows(table, reading, &format!("ROW({})::text", told_by.join(", ")));
    let names: Vec<String> = (0..selected.fields.len()).map(|at| format!("c{at}")).collect();
    format!("COPY (SELECT * FROM ({rows}) s (k, {}) ORDER BY {order}) TO STDOUT", names.join(", "))
}

/// The statement that reads rows of a table as they lie there: the place of each first, then the fields.
pub(crate) fn by_place_sql(table: &Table, reading: &Reading, selected: &Selected<'_>) -> String {
    let place = format!("{}.ctid", selected.alias);
    format!("COPY ({}) TO STDOUT", selected.rows(table, reading, &place))
}

#[cfg(test)]
mod tests;
