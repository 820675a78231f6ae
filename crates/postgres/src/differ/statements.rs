//! Statements that make tables of one copy what they are in the other.

use super::facts::{Reference, Table};
use super::merge::{Found, Row};
use crate::session::{quote_identifier, quote_text};
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Rows of one statement.
const ROWS_TOGETHER: usize = 500;

/// Values are read as they were written; nothing acts on rows but what the tables have themselves.
const BEGIN: &str = "BEGIN;\n\
    SET LOCAL client_encoding = 'UTF8';\n\
    SET LOCAL standard_conforming_strings = on;\n\
    SET LOCAL \"DateStyle\" = 'ISO, YMD';\n\
    SET LOCAL \"IntervalStyle\" = postgres;\n\
    SET LOCAL \"TimeZone\" = 'UTC';\n\
    SET LOCAL bytea_output = hex;\n\
    SET LOCAL extra_float_digits = 3;\n\
    SET LOCAL xmloption = content;\n\
    SET CONSTRAINTS ALL DEFERRED;\n";

/// What is done to one table.
pub(super) struct OfTable<'a> {
    /// As the first copy has it; as the second does if the first has none.
    table: &'a Table,
    columns: &'a [String],
    key: &'a [String],
    deleted: Vec<String>,
    updated: Vec<String>,
    inserted: Vec<String>,
    /// Columns whose values were changed.
    changed: BTreeSet<String>,
    bytes: usize,
}

impl<'a> OfTable<'a> {
    pub(super) fn new(table: &'a Table, columns: &'a [String], key: &'a [String]) -> OfTable<'a> {
        let (deleted, updated, inserted) = (Vec::new(), Vec::new(), Vec::new());
        OfTable {
            table,
            columns,
            key,
            deleted,
            updated,
            inserted,
            changed: BTreeSet::new(),
            bytes: 0,
        }
    }

    /// How much it holds.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn take(&mut self, found: &Found<'_>) {
        match found {
            Found::Added(row) => {
                let written =
                    self.written().map(|(at, _)| literal(row.values().get(at))).collect::<Vec<_>>();
                self.inserted.push(format!("({})", written.join(", ")));
                self.bytes += self.inserted.last().map_or(0, String::len);
            }
            Found::Removed(row) => {
                let told = self.told_by(row);
                self.bytes += told.len();
                self.deleted.push(told);
            }
            Found::Changed(before, after) => self.update(before, after),
        }
    }

    fn update(&mut self, before: &Row, after: &Row) {
        let (old, new) = (before.values(), after.values());
        let mut set = Vec::new();
        let mut changed = Vec::new();
        for (at, name) in self.written() {
            if old.get(at) != new.get(at) {
                set.push(format!("{} = {}", quote_identifier(name), literal(new.get(at))));
                changed.push(name.clone());
            }
        }
        if set.is_empty() {
            return;
        }
        self.changed.extend(changed);
        let statement = format!(
            "UPDATE ONLY {} SET {} WHERE {};\n",
            self.table.quoted(),
            set.join(", "),
            self.condition(&self.told_by(before))
        );
        self.bytes += statement.len();
        self.updated.push(statement);
    }

    /// The columns that are given values, and where they are in a row.
    fn written(&self) -> impl Iterator<Item = (usize, &String)> {
        let is_written =
            |name: &String| self.table.column(name).is_some_and(|one| one.is_written());
        self.columns.iter().enumerate().filter(move |(_, name)| is_written(name))
    }

    /// What names a row: the values of its key, or all of it.
    fn told_by(&self, row: &Row) -> String {
        if self.key.is_empty() {
            return quote_text(&row.key_text());
        }
        let values = row.values();
        let of = |name: &String| {
            let at = self.columns.iter().position(|one| one == name);
            literal(at.and_then(|at| values.get(at)))
        };
        let all: Vec<String> = self.key.iter().map(of).collect();
        if all.len() == 1 { all.concat() } else { format!("({})", all.join(", ")) }
    }

    fn key_names(&self) -> String {
        let all: Vec<String> = self.key.iter().map(|name| quote_identifier(name)).collect();
        if all.len() == 1 { all.concat() } else { format!("({})", all.join(", ")) }
    }

    fn condition(&self, told_by: &str) -> String {
        format!("{} = {told_by}", self.key_names())
    }

    fn deletes(&self, sql: &mut String) {
        let table = self.table.quoted();
        if self.key.is_empty() {
            let all: Vec<String> = self.columns.iter().map(|one| quote_identifier(one)).collect();
            for row in &self.deleted {
                // One of several that are equal.
                let _ = writeln!(
                    sql,
                    "DELETE FROM ONLY {table} WHERE ctid = (SELECT ctid FROM ONLY {table} \
                     WHERE ROW({})::text = {row} LIMIT 1);",
                    all.join(", ")
                );
            }
            return;
        }
        for rows in self.deleted.chunks(ROWS_TOGETHER) {
            let names = self.key_names();
            let _ =
                writeln!(sql, "DELETE FROM ONLY {table} WHERE {names} IN ({});", rows.join(", "));
        }
    }

    fn inserts(&self, sql: &mut String) {
        let names: Vec<String> = self.written().map(|(_, name)| quote_identifier(name)).collect();
        let always = self.table.columns.iter().any(|one| one.always_identity);
        let overriding = if always { " OVERRIDING SYSTEM VALUE" } else { "" };
        for rows in self.inserted.chunks(ROWS_TOGETHER) {
            let _ = writeln!(
                sql,
                "INSERT INTO {} ({}){overriding} VALUES\n  {};",
                self.table.quoted(),
                names.join(", "),
                rows.join(",\n  ")
            );
        }
    }
}

fn literal(value: Option<&Option<String>>) -> String {
    value.cloned().flatten().map_or_else(|| "NULL".to_owned(), |text| quote_text(&text))
}

/// More statements than are kept.
pub(super) fn too_many(bytes_max: usize) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        format!("the statements would have more than {} MiB", bytes_max >> 20),
        "name fewer tables: --table NAME",
    )
}

/// All statements, in one transaction.
///
/// Rows are deleted first, children before parents, then inserted, parents before children, then updated: so values
/// that must be unique are free when they are given again. Where an updated row lets go of a parent that goes, this
/// order would be refused, or would take the row with its parent. There rows are inserted first and deleted last.
pub(super) fn written(database: &str, tables: &[OfTable<'_>], references: &[Reference]) -> String {
    let mut sql = format!("-- database {}\n{BEGIN}", database.replace('\n', " "));
    let order = parents_first(tables, references);
    let inserts = |sql: &mut String| order.iter().for_each(|one| one.inserts(sql));
    let deletes = |sql: &mut String| order.iter().rev().for_each(|one| one.deletes(sql));
    let updates = |sql: &mut String| {
        order.iter().flat_map(|one| &one.updated).for_each(|one| sql.push_str(one));
    };
    if lets_go(tables, references) {
        inserts(&mut sql);
        updates(&mut sql);
        deletes(&mut sql);
    } else {
        deletes(&mut sql);
        inserts(&mut sql);
        updates(&mut sql);
    }
    sql.push_str("COMMIT;\n");
    sql
}

/// Whether an updated row may refer to a row that is deleted, before it is updated.
fn lets_go(tables: &[OfTable<'_>], references: &[Reference]) -> bool {
    let named = |name: &str| tables.iter().find(|one| one.table.full_name() == name);
    references.iter().any(|one| {
        let refers = named(&one.from).is_some_and(|from| !from.changed.is_disjoint(&one.columns));
        refers && named(&one.to).is_some_and(|to| !to.deleted.is_empty())
    })
}

/// Each table behind those that it refers to, as far as they do not refer to each other.
fn parents_first<'t, 'a>(
    tables: &'t [OfTable<'a>],
    references: &[Reference],
) -> Vec<&'t OfTable<'a>> {
    let mut waiting: Vec<&OfTable<'_>> = tables.iter().collect();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let names: BTreeSet<String> = waiting.iter().map(|one| one.table.full_name()).collect();
        let free = |one: &&OfTable<'_>| {
            let name = one.table.full_name();
            !references
                .iter()
                .any(|two| two.from == name && two.to != name && names.contains(&two.to))
        };
        // In a circle any of them is the first.
        let next = waiting.iter().position(free).unwrap_or_default();
        order.push(waiting.remove(next));
    }
    order
}
