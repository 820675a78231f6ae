//! The rows of a table that differ: those that went are removed, those that came are written masked.
//!
//! Rows of both states come as they lie in the table ([`crate::differ::merge`]). What is not the same at the same place is
//! masked and put into two tables beside: the masked keys of rows that went, and whole masked rows that came. A row that
//! changed or moved is in both. Then one transaction exchanges them. Neither a table nor what differs of it is held in
//! memory.

use super::super::facts::{Oid, Relation};
use super::super::plan::{Plan, Reading};
use super::super::rewrite;
use super::super::rows::Counts;
use super::super::run::Run;
use super::tables::Rows;
use super::{Doors, Moved};
use crate::differ::merge::{Found, Row, by_place, merge};
use crate::differ::reading::{BY_NUMBERS, Selected, by_place_sql};
use crate::session::quote_identifier;
use crate::wire::{Refusal, Wire};
use offshoot_types::Failure;

/// Bytes of rows that are masked together, at least.
const CHUNK_BYTES: usize = 256 << 10;

/// What exchanges rows in a database.
pub(super) struct Exchange<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) doors: Doors<'a>,
    pub(super) plan: &'a Plan,
    /// Where rows are put first.
    pub(super) schema: &'a str,
}

impl Exchange<'_> {
    /// Exchanges the rows of a table; `named` is the table that progress is told of.
    pub(super) fn rows(
        &self,
        oid: Oid,
        rows: &Rows,
        named: Option<usize>,
    ) -> Result<Moved, Failure> {
        let gone = || Failure::internal("a table of the copy is not known");
        let relation = self.plan.facts.relations.get(&oid).ok_or_else(gone)?;
        let reading = self.plan.reading(oid, oid).ok_or_else(gone)?;
        let place = relation.name();
        let failed = |refusal: Refusal| refusal.into_failure(&place);
        let key: Vec<String> = rows.table.key.iter().map(|name| quote_identifier(name)).collect();
        let beside = Beside::new(self.schema, relation, &key);
        let database = &self.plan.facts.database;
        let (mut coming, mut going) = (self.run.connect(database)?, self.run.connect(database)?);
        let stage = rewrite::stage_sql(self.schema, relation);
        coming.execute(&format!("BEGIN; {stage}")).map_err(failed)?;
        coming.begin_copy_in(&rewrite::copy_sql(&beside.came, relation)).map_err(failed)?;
        going.execute(&beside.gone_sql(relation)).map_err(failed)?;
        going.begin_copy_in(&format!("COPY {} FROM STDIN", beside.gone)).map_err(failed)?;
        let written = &reading.rows.written;
        let of_key = rows.table.key.iter();
        let of_key: Vec<usize> =
            of_key.filter_map(|name| written.iter().position(|one| one.column == *name)).collect();
        let mut came = Masking { to: &mut coming, rows: &reading, of_key: None, lines: Vec::new() };
        let mut went =
            Masking { to: &mut going, rows: &reading, of_key: Some(&of_key), lines: Vec::new() };
        let watch = &self.run.watch;
        let done = |counts: Counts| {
            named.into_iter().for_each(|one| watch.wrote(one, counts.rows, counts.values));
        };
        let selected = Selected { alias: &reading.alias, fields: &reading.selected };
        let sql = by_place_sql(&rows.table, &rows.reading, &selected);
        let (mut before, mut now) =
            (Wire::connect(self.doors.before, database)?, Wire::connect(self.doors.now, database)?);
        before.execute(BY_NUMBERS).map_err(failed)?;
        now.execute(BY_NUMBERS).map_err(failed)?;
        merge(
            (&mut before, Some(&sql)),
            (&mut now, Some(&sql)),
            (by_place, &place),
            &mut || watch.go_on(),
            &mut |found| {
                let (old, new) = match found {
                    Found::Added(row) => (None, Some(row)),
                    Found::Removed(row) => (Some(row), None),
                    Found::Changed(old, new) => (Some(old), Some(new)),
                };
                if let Some(old) = old {
                    went.take(old, &place)?;
                }
                if let Some(new) = new {
                    done(came.take(new, &place)?);
                }
                Ok(())
            },
        )?;
        went.flush(&place)?;
        done(came.flush(&place)?);
        let gone = going.end_copy_in().map_err(failed)?;
        let came = coming.end_copy_in().map_err(failed)?;
        coming.execute("COMMIT").map_err(failed)?;
        let moved = Moved { came, gone };
        beside.exchange(&mut coming, relation, rows, moved)?;
        Ok(moved)
    }
}

/// Rows on their way into a table beside.
struct Masking<'a> {
    to: &'a mut Wire,
    rows: &'a Reading,
    /// Only these of the written values; none: all.
    of_key: Option<&'a [usize]>,
    lines: Vec<u8>,
}

impl Masking<'_> {
    fn take(&mut self, row: &Row, table: &str) -> Result<Counts, Failure> {
        self.lines.extend_from_slice(row.columns());
        if self.lines.len() < CHUNK_BYTES { Ok(Counts::default()) } else { self.flush(table) }
    }

    fn flush(&mut self, table: &str) -> Result<Counts, Failure> {
        let mut out = Vec::with_capacity(self.lines.len() * 9 / 8);
        let masked = self.rows.rows.mask(&self.lines, &mut out);
        let counts = masked.map_err(|fault| fault.into_failure(table))?;
        self.lines.clear();
        if let Some(of_key) = self.of_key {
            out = keys(&out, of_key);
        }
        if !out.is_empty() {
            self.to.send_rows(&out).map_err(|refusal| refusal.into_failure(table))?;
        }
        Ok(counts)
    }
}

/// These values of each row.
fn keys(rows: &[u8], of_key: &[usize]) -> Vec<u8> {
    let mut keys = Vec::new();
    for row in rows.split_inclusive(|byte| *byte == b'\n') {
        let row = row.strip_suffix(b"\n").unwrap_or(row);
        let fields: Vec<&[u8]> = row.split(|byte| *byte == b'\t').collect();
        let values: Vec<&[u8]> = of_key.iter().filter_map(|at| fields.get(*at).copied()).collect();
        keys.extend_from_slice(&values.join(&b'\t'));
        keys.push(b'\n');
    }
    keys
}

/// The tables beside one.
struct Beside {
    /// Rows that came.
    came: String,
    /// Keys of rows that went.
    gone: String,
    key: Vec<String>,
}

impl Beside {
    fn new(schema: &str, relation: &Relation, key: &[String]) -> Beside {
        let gone = quote_identifier(&format!("g{}", relation.oid));
        Beside {
            came: rewrite::stage_name(schema, relation),
            gone: format!("{}.{gone}", quote_identifier(schema)),
            key: key.to_vec(),
        }
    }

    fn gone_sql(&self, relation: &Relation) -> String {
        let (key, table) = (self.key.join(", "), relation.quoted());
        format!("CREATE TABLE {} AS SELECT {key} FROM ONLY {table} WITH NO DATA", self.gone)
    }

    /// Exchanges the rows, all of them or none.
    fn exchange(
        &self,
        wire: &mut Wire,
        relation: &Relation,
        rows: &Rows,
        moved: Moved,
    ) -> Result<(), Failure> {
        let failed = |refusal: Refusal| refusal.into_failure(&relation.name());
        let table = relation.quoted();
        let same = self.key.iter().zip(&rows.operators);
        let same: Vec<String> =
            same.map(|(name, operator)| format!("t.{name} {operator} g.{name}")).collect();
        let columns = rewrite::written_columns(relation);
        wire.execute(&format!("ANALYZE {}; ANALYZE {}", self.gone, self.came)).map_err(failed)?;
        // Rows that went lie together, and so do their places in the key's index: it is quicker than a scan of the table.
        wire.execute("BEGIN; SET LOCAL random_page_cost = 0.2").map_err(failed)?;
        let removed = format!(
            "WITH gone AS (DELETE FROM ONLY {table} AS t USING {} AS g WHERE {} RETURNING 1) \
             SELECT pg_catalog.count(*) FROM gone",
            self.gone,
            same.join(" AND ")
        );
        let written = format!(
            "WITH came AS (INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE \
               SELECT {columns} FROM {} RETURNING 1) SELECT pg_catalog.count(*) FROM came",
            self.came
        );
        for (sql, expected) in [(removed, moved.gone), (written, moved.came)] {
            let rows = wire.column(&sql).map_err(failed)?;
            if rows.first().and_then(|rows| rows.parse().ok()) != Some(expected) {
                return Err(Failure::internal(format!(
                    "the masked image has other rows of {} than it should",
                    relation.name()
                )));
            }
        }
        wire.execute("COMMIT").map_err(failed)?;
        wire.execute(&format!("DROP TABLE {}", self.gone)).map_err(failed)
    }
}
