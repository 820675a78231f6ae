//! A comparison from its beginning to its end.

use super::ancestor;
use super::facts::{Facts, Table};
use super::merge::{Found, by_key, merge};
use super::names::Wanted;
use super::objects;
use super::reading::{self, BY_NUMBERS, Known, Reading, Selected, by_key_sql};
use super::statements::{OfTable, too_many, written};
use crate::session::{quote_identifier, quote_text};
use crate::wire::{Door, Refusal, Wire};
use offshoot_connector::{
    Compared, DiffTick, DiffWanted, Differences, RowChange, TableChanges, TableRead,
};
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeSet;

/// Databases that can be looked into.
const DATABASES: &str = "SELECT datname FROM pg_catalog.pg_database \
    WHERE datallowconn AND datconnlimit <> -2 ORDER BY datname";
/// Transactions that were prepared and have not ended, by their databases. They hold locks, and what they did is not
/// visible.
const PREPARED: &str = "SELECT database, gid FROM pg_catalog.pg_prepared_xacts";
const AS_USUAL: &str = "RESET enable_seqscan";

/// Compares two copies, each by its server.
///
/// # Errors
/// As [`offshoot_connector::Differ::diff`].
pub fn diff(
    (left, right): (&Door, &Door),
    compared: &mut Compared<'_>,
    wanted: &DiffWanted,
    tick: &mut DiffTick<'_>,
) -> Result<Differences, Failure> {
    let mut differences = Differences::default();
    for door in [left, right] {
        end_prepared(door)?;
    }
    let (mut any_left, mut any_right) = (Wire::connect_any(left)?, Wire::connect_any(right)?);
    if wanted.tables.is_empty() {
        differences.objects = objects::of_cluster(&mut any_left, &mut any_right)?;
    }
    let files = (&*compared.left.files, &*compared.right.files);
    let common = ancestor::find(files, compared.differing, compared.ancestors)?;
    let mut known = Known { files, differing: compared.differing, common, renamed: false };
    let failed = |refusal: Refusal| refusal.of_reading("the server");
    let others: BTreeSet<String> =
        any_right.column(DATABASES).map_err(failed)?.into_iter().collect();
    let mut run = Run { wanted, tick, done: 0, total: 0, kept: 0, differences };
    for database in any_left.column(DATABASES).map_err(failed)? {
        if others.contains(&database) {
            run.database((left, right), &database, &mut known)?;
        }
    }
    run.ended()
}

/// What queries call a table.
const ALIAS: &str = "t";

/// Columns, as queries name them.
fn fields(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("{ALIAS}.{}", quote_identifier(name))).collect()
}

fn end_prepared(door: &Door) -> Result<(), Failure> {
    let failed = |refusal: Refusal| refusal.of_reading("a prepared transaction");
    for row in Wire::connect_any(door)?.rows(PREPARED).map_err(failed)? {
        if let [Some(database), Some(gid)] = &row[..] {
            let sql = format!("ROLLBACK PREPARED {}", quote_text(gid));
            Wire::connect(door, database)?.execute(&sql).map_err(failed)?;
        }
    }
    Ok(())
}

/// A comparison under way.
struct Run<'a, 't> {
    wanted: &'a DiffWanted,
    tick: &'a mut DiffTick<'t>,
    /// Pages that were read, and that will be.
    done: u64,
    total: u64,
    /// Bytes of rows and statements that are kept.
    kept: usize,
    differences: Differences,
}

/// A table as both have it, or one alone.
struct Pair<'a> {
    left: Option<&'a Table>,
    right: Option<&'a Table>,
    reading: Reading,
    columns: Vec<String>,
    key: Vec<String>,
}

impl<'a> Pair<'a> {
    /// Either of them.
    fn table(&self) -> Option<&'a Table> {
        self.left.or(self.right)
    }

    fn pages(&self) -> u64 {
        [self.left, self.right].into_iter().flatten().map(|one| one.pages).max().unwrap_or_default()
    }
}

impl Run<'_, '_> {
    fn database(
        &mut self,
        (left, right): (&Door, &Door),
        database: &str,
        known: &mut Known<'_>,
    ) -> Result<(), Failure> {
        let mut wires = (Wire::connect(left, database)?, Wire::connect(right, database)?);
        let wanted = Wanted(&self.wanted.tables);
        let objects = objects::of_database(&mut wires.0, &mut wires.1, database, wanted)?;
        self.differences.objects.extend(objects);
        let facts = (Facts::read(&mut wires.0, database)?, Facts::read(&mut wires.1, database)?);
        if facts.0.encoding != facts.1.encoding {
            let note =
                format!("the rows of database {database} are not compared: its encoding differs");
            self.differences.notes.push(note);
            return Ok(());
        }
        if facts.0.encoding == "SQL_ASCII" {
            let failed = |refusal: Refusal| refusal.of_reading(database);
            for wire in [&mut wires.0, &mut wires.1] {
                wire.execute("SET client_encoding = SQL_ASCII").map_err(failed)?;
            }
        }
        known.renamed = reading::renamed(&facts.0, &facts.1);
        let pairs = self.pairs(&facts, known)?;
        self.total += pairs.iter().map(|pair| pair.reading.pages_of(pair.pages())).sum::<u64>();
        let mut statements = Vec::new();
        for pair in &pairs {
            (self.tick)(self.done, self.total)?;
            if let Some(of_table) = self.table(&mut wires, &facts.0, pair)? {
                statements.push(of_table);
            }
        }
        (self.tick)(self.done, self.total)?;
        if self.wanted.sql && !statements.is_empty() {
            let sql = written(database, &statements, &facts.0.references);
            self.differences.sql.get_or_insert_default().push_str(&sql);
        }
        Ok(())
    }

    /// The tables that are wanted, with what to read of them. Those that are not compared are told at once.
    fn pairs<'f>(
        &mut self,
        (left, right): &'f (Facts, Facts),
        known: &Known<'_>,
    ) -> Result<Vec<Pair<'f>>, Failure> {
        let names: BTreeSet<&String> = left.tables.keys().chain(right.tables.keys()).collect();
        let mut pairs = Vec::new();
        for name in names {
            let (a, b) = (left.tables.get(name), right.tables.get(name));
            let Some(table) = a.or(b) else { continue };
            if !Wanted(&self.wanted.tables).table(&left.database, &table.schema, &table.name) {
                continue;
            }
            let skipped = [a, b].into_iter().flatten().find_map(why_skipped);
            let reading = match (a, b) {
                (Some(a), Some(b)) if skipped.is_none() => {
                    let version = left.version.min(right.version);
                    let (done, total, tick) = (self.done, self.total, &mut *self.tick);
                    reading::of_pair(a, b, version, known, &mut || tick(done, total))?
                }
                _ => Reading::Whole("only one of them has it"),
            };
            let columns: Vec<String> = match (a, b) {
                (Some(a), Some(b)) => {
                    reading::common(a, b).iter().map(|(one, _)| one.name.clone()).collect()
                }
                _ => table
                    .columns
                    .iter()
                    .filter(|one| !one.is_virtual)
                    .map(|one| one.name.clone())
                    .collect(),
            };
            let same_key = a.is_none_or(|a| b.is_none_or(|b| a.key == b.key));
            let key = if same_key { table.key.clone() } else { Vec::new() };
            let skipped = skipped.or(columns.is_empty().then_some("it has no column in common"));
            let pair = Pair { left: a, right: b, reading, columns, key };
            match skipped {
                Some(why) => {
                    let shown = self.changes(&left.database, table, &pair);
                    let (read, why) = (TableRead::Skipped, Some(why.to_owned()));
                    self.differences.tables.push(TableChanges { read, why, ..shown });
                }
                None => pairs.push(pair),
            }
        }
        Ok(pairs)
    }

    /// What is told of a table before its rows are read.
    fn changes(&self, database: &str, table: &Table, pair: &Pair<'_>) -> TableChanges {
        let (read, why) = match &pair.reading {
            Reading::Whole(why) => (TableRead::Whole, Some((*why).to_owned())),
            some if some.is_nothing() => (TableRead::Nothing, None),
            _ => (TableRead::Pages, None),
        };
        TableChanges {
            database: database.to_owned(),
            table: table.full_name(),
            key: pair.key.clone(),
            columns: pair.columns.clone(),
            read,
            why,
            pages: pair.pages(),
            pages_read: pair.reading.pages_of(pair.pages()),
            ..TableChanges::default()
        }
    }

    /// Compares the rows of a table.
    fn table<'p>(
        &mut self,
        (left, right): &mut (Wire, Wire),
        facts: &Facts,
        pair: &'p Pair<'_>,
    ) -> Result<Option<OfTable<'p>>, Failure> {
        let Some(table) = pair.table() else { return Ok(None) };
        let mut changes = self.changes(&facts.database, table, pair);
        let mut statements = OfTable::new(table, &pair.columns, &pair.key);
        if changes.read != TableRead::Nothing {
            let failed = |refusal: Refusal| refusal.of_reading("the server");
            let set = if changes.read == TableRead::Pages { BY_NUMBERS } else { AS_USUAL };
            left.execute(set).map_err(failed)?;
            right.execute(set).map_err(failed)?;
            let fields = self::fields(&pair.columns);
            let told_by = self::fields(if pair.key.is_empty() { &pair.columns } else { &pair.key });
            let selected = Selected { alias: ALIAS, fields: &fields };
            let query = |table: Option<&Table>| {
                let sql =
                    |one| by_key_sql((one, &pair.reading), &told_by, &selected, &facts.encoding);
                table.map(sql)
            };
            let (of_left, of_right) = (query(pair.left), query(pair.right));
            let (done, total, wanted) = (self.done, self.total, self.wanted);
            let (tick, kept) = (&mut *self.tick, &mut self.kept);
            merge(
                (left, of_left.as_deref()),
                (right, of_right.as_deref()),
                (by_key, &changes.table.clone()),
                &mut || tick(done, total),
                &mut |found| {
                    count(&mut changes, &found);
                    keep(&mut changes, &found, wanted, kept);
                    if wanted.sql {
                        let before = statements.bytes();
                        statements.take(&found);
                        *kept += statements.bytes() - before;
                        if *kept > wanted.bytes_max {
                            return Err(too_many(wanted.bytes_max));
                        }
                    }
                    Ok(())
                },
            )?;
            self.done += changes.pages_read;
        }
        let differs = changes.differs();
        self.differences.tables.push(changes);
        Ok(differs.then_some(statements))
    }

    fn ended(mut self) -> Result<Differences, Failure> {
        if self.differences.tables.is_empty() && !self.wanted.tables.is_empty() {
            let named: Vec<String> =
                self.wanted.tables.iter().map(|one| quote_identifier(one)).collect();
            return Err(Failure::new(
                ErrorKind::NotFound,
                format!("neither has a table named {}", named.join(" or ")),
                "name tables as in orders, public.orders or 'public.*'",
            ));
        }
        if self.wanted.sql {
            self.differences.sql.get_or_insert_default();
        }
        let left_out = objects::bounded(&mut self.differences.objects);
        if left_out > 0 {
            self.differences.notes.push(format!("{left_out} more objects differ"));
        }
        Ok(self.differences)
    }
}

/// Why the rows of a table cannot be compared.
fn why_skipped(table: &Table) -> Option<&'static str> {
    match (table.kind, table.persistence) {
        ('f', _) => Some("a foreign table: its rows are elsewhere"),
        ('m', _) => Some("a materialized view: its rows come from others"),
        (_, 'u') => Some("an unlogged table: it is empty after recovery"),
        _ => None,
    }
}

fn count(changes: &mut TableChanges, found: &Found<'_>) {
    match found {
        Found::Added(_) => changes.added += 1,
        Found::Removed(_) => changes.removed += 1,
        Found::Changed(..) => changes.changed += 1,
    }
}

/// Keeps a row if it is wanted and there is room.
fn keep(changes: &mut TableChanges, found: &Found<'_>, wanted: &DiffWanted, kept: &mut usize) {
    if changes.rows.len() >= wanted.rows || *kept > wanted.bytes_max {
        return;
    }
    let row = match found {
        Found::Added(row) => RowChange { before: None, after: Some(row.values()) },
        Found::Removed(row) => RowChange { before: Some(row.values()), after: None },
        Found::Changed(before, after) => {
            RowChange { before: Some(before.values()), after: Some(after.values()) }
        }
    };
    let both = row.before.iter().chain(&row.after).flatten();
    *kept += both.map(|value| value.as_ref().map_or(0, String::len) + 24).sum::<usize>();
    changes.rows.push(row);
}
