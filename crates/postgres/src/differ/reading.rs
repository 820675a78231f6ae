//! Which pages of a pair of tables are read.

use super::facts::{Column, Facts, Table};
use offshoot_connector::{Ancestor, Differing};
use offshoot_types::Failure;
use std::io;
use std::ops::Range;

/// Pages of one file of a relation, but the last.
const FILE_PAGES: u64 = (1 << 30) / 8192;
/// From this version on a server reads ranges of pages by their numbers.
const RANGES_SINCE: u32 = 14;

/// What is read of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reading {
    /// These pages of both.
    Pages(Vec<Range<u64>>),
    /// Everything, and why.
    Whole(&'static str),
}

impl Reading {
    /// Pages to read of a table with so many.
    pub(crate) fn pages_of(&self, pages: u64) -> u64 {
        match self {
            Reading::Whole(_) => pages,
            Reading::Pages(ranges) => {
                ranges.iter().map(|one| one.end.min(pages).saturating_sub(one.start)).sum()
            }
        }
    }
}

/// What the store knows of two copies.
pub(crate) struct Known<'a> {
    /// Of the first and the second.
    pub(crate) differing: &'a Differing<'a>,
    /// The state that both come from; or why there is none.
    pub(crate) ancestor: Result<Ancestor, &'static str>,
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

/// Decides what to read of a table that both have.
///
/// # Errors
/// When the store cannot compare files.
pub(crate) fn of_pair(
    left: &Table,
    right: &Table,
    version: u32,
    known: &Known<'_>,
) -> Result<Reading, Failure> {
    let ancestor = match &known.ancestor {
        Ok(ancestor) => ancestor,
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
        differing(file, left.pages.max(right.pages), known, ancestor).map_err(failed)?;
    // What only one of them has.
    let tail = left.pages.min(right.pages)..left.pages.max(right.pages);
    ranges.push(tail);
    let reading = Reading::Pages(joined(ranges));
    let most = left.pages.max(right.pages);
    if most > 1 && reading.pages_of(most) > most / 2 {
        return Ok(Reading::Whole("most of its pages differ"));
    }
    Ok(reading)
}

/// Whether a file of so many pages may hold rows that differ.
///
/// # Errors
/// When the store cannot compare files.
pub(crate) fn file_differs(file: &str, pages: u64, known: &Known<'_>) -> Result<bool, Failure> {
    let Ok(ancestor) = &known.ancestor else { return Ok(true) };
    let ranges = differing(file, pages, known, ancestor).map_err(|error| {
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
        let name = if number == 0 { file.to_owned() } else { format!("{file}.{number}") };
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
    /// The rows of these pages, or all of them, behind what `first` says of each.
    fn rows(&self, table: &Table, reading: &Reading, first: &str) -> String {
        let Selected { alias, fields } = self;
        let rows = format!("SELECT {first} AS k, {}", fields.join(", "));
        let place = format!("ONLY {} {alias}", table.quoted());
        let Reading::Pages(ranges) = reading else { return format!("{rows} FROM {place}") };
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
