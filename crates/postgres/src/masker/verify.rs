//! What constraints ask of masked rows.
//!
//! Uniqueness is what indexes have that are built anew, domains are checked as rows are written. CHECK constraints and
//! foreign keys are asked for here: whoever breaks one is named by its row's key.

use super::facts::{ForeignKey, Relation};
use super::plan::Plan;
use crate::session::quote_identifier;
use crate::wire::Refusal;
use crate::wire::{IN_ORDER, Wire};
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeSet;

const HINT: &str = "choose another algorithm for this column, or give its parameters";

fn broken(relation: &Relation, row: Option<String>, why: &str) -> Failure {
    let row = row.map(|row| format!(", row {row}")).unwrap_or_default();
    let message = format!("{}{row}: {why}", relation.name());
    Failure::new(ErrorKind::InvalidInput, message, HINT)
}

/// The CHECK constraints of a table that was masked.
pub(super) fn checks(
    wire: &mut Wire,
    relation: &Relation,
    masked: &BTreeSet<String>,
) -> Result<(), Failure> {
    let failed = |refusal: Refusal| refusal.into_failure(&relation.name());
    // What is computed from masked columns changes with them.
    let changes = relation
        .live()
        .filter(|column| masked.contains(&column.name) || column.generated.is_some());
    // Zero stands for the whole row.
    let numbers = std::iter::once(0).chain(changes.map(|column| column.number));
    let changed: Vec<String> = numbers.map(|number| number.to_string()).collect();
    let constraints = wire
        .rows(&format!(
            "SELECT conname, pg_catalog.pg_get_expr(conbin, conrelid) FROM pg_catalog.pg_constraint \
             WHERE conrelid = {} AND contype = 'c' AND convalidated \
               AND (conkey IS NULL OR conkey && ARRAY[{}]::pg_catalog.int2[]) ORDER BY conname",
            relation.oid,
            changed.join(", ")
        ))
        .map_err(failed)?;
    for row in constraints {
        let [Some(name), Some(expression)] = &row[..] else { continue };
        let sql = format!(
            "SELECT {} FROM ONLY {} WHERE NOT ({expression}) LIMIT 1",
            relation.key_sql(masked),
            relation.quoted()
        );
        let found = wire.column(&sql).map_err(failed)?;
        if let Some(row) = found.into_iter().next() {
            let why = format!("its masks break the CHECK constraint {name}");
            return Err(broken(relation, Some(row), &why));
        }
    }
    Ok(())
}

/// Two rows that a unique index cannot tell apart, as an error that names it.
pub(super) fn duplicate(
    wire: &mut Wire,
    relation: &Relation,
    masked: &BTreeSet<String>,
    (index, name): (&str, &str),
    refusal: Refusal,
) -> Failure {
    let why = format!("the index {name} cannot be built: {}", refusal.said());
    if !refusal.is_of_uniqueness() {
        return refusal.into_failure(&format!("{}, index {name}", relation.name()));
    }
    let index = crate::session::quote_text(index);
    let parts = wire.rows(&format!(
        "SELECT pg_catalog.pg_get_indexdef(indexrelid, at, false), \
           pg_catalog.pg_get_expr(indpred, indrelid) \
         FROM pg_catalog.pg_index, pg_catalog.generate_series(1, indnkeyatts) AS at \
         WHERE indexrelid = {index}::pg_catalog.regclass AND indisunique ORDER BY at"
    ));
    let parts = parts.unwrap_or_default();
    let keys: Vec<String> = parts
        .iter()
        .filter_map(|row| row.first().cloned().flatten())
        .map(|key| format!("({key})"))
        .collect();
    let mut conditions: Vec<String> = keys.iter().map(|key| format!("{key} IS NOT NULL")).collect();
    let predicate = parts.first().and_then(|row| row.get(1).cloned().flatten());
    conditions.extend(predicate.map(|predicate| format!("({predicate})")));
    let rows = format!(
        "SELECT pg_catalog.array_to_string((pg_catalog.array_agg({}))[1:2], ' and ') \
         FROM ONLY {} WHERE {} GROUP BY {} HAVING pg_catalog.count(*) > 1 LIMIT 1",
        relation.key_sql(masked),
        relation.quoted(),
        conditions.join(" AND "),
        keys.join(", ")
    );
    // No index of the table can be read as yet.
    let sql = format!("{IN_ORDER} {rows}");
    let row = wire.column(&sql).ok().and_then(|found| found.into_iter().next());
    broken(relation, row, &why)
}

/// The rows of a relation, as SQL names them.
pub(super) fn rows(relation: &Relation) -> String {
    let only = if relation.partitioned { "" } else { "ONLY " };
    format!("{only}{}", relation.quoted())
}

/// How many rows these relations have.
pub(super) fn counted(
    wire: &mut Wire,
    relations: &[&Relation],
    place: &str,
) -> Result<u64, Failure> {
    let each = relations.iter();
    let each: Vec<String> =
        each.map(|one| format!("(SELECT pg_catalog.count(*) FROM {})", rows(one))).collect();
    let sql = format!("SELECT {}", if each.is_empty() { "0".to_owned() } else { each.join(" + ") });
    let rows = wire.column(&sql).map_err(|refusal| refusal.into_failure(place))?;
    Ok(rows.first().and_then(|rows| rows.parse().ok()).unwrap_or_default())
}

/// The foreign keys of a database that masks have to do with. `places` says where the rows of one are that are looked
/// at, as SQL names them.
pub(super) fn foreign_keys(
    wire: &mut Wire,
    plan: &Plan,
    places: &dyn Fn(&ForeignKey, &Relation) -> Vec<String>,
) -> Result<(), Failure> {
    let emptied = plan.empties();
    for key in plan.facts.keys.iter().filter(|key| key.validated && !key.temporal) {
        let relations = &plan.facts.relations;
        let (Some(from), Some(to)) = (relations.get(&key.from), relations.get(&key.to)) else {
            continue;
        };
        let is_masked = |relation: &Relation, columns: &[i16]| {
            let masked = plan.masked(relation.oid);
            columns.iter().any(|at| relation.column(*at).is_some_and(|name| masked.contains(name)))
        };
        let touched = is_masked(from, &key.from_columns) || is_masked(to, &key.to_columns);
        if !touched || emptied.contains(&key.from) {
            continue;
        }
        let failed = |refusal: Refusal| {
            refusal.into_failure(&format!("{}, foreign key {}", from.name(), key.name))
        };
        for place in places(key, from) {
            let sql = orphan_sql(key, (from, &place), to, &plan.masked(from.oid));
            if let Some(row) = wire.column(&sql).map_err(failed)?.into_iter().next() {
                let why = format!("it refers to no row of {} any more ({})", to.name(), key.name);
                return Err(broken(from, Some(row), &why));
            }
        }
    }
    Ok(())
}

/// A condition that a row refers to another one, and one that it is this.
pub(super) fn referring(key: &ForeignKey, from: &Relation, to: &Relation) -> (String, String) {
    let quoted =
        |relation: &Relation, at: &i16| quote_identifier(relation.column(*at).unwrap_or_default());
    let ours: Vec<String> = key.from_columns.iter().map(|at| quoted(from, at)).collect();
    let theirs: Vec<String> = key.to_columns.iter().map(|at| quoted(to, at)).collect();
    let same: Vec<String> = theirs
        .iter()
        .zip(&ours)
        .zip(&key.operators)
        .map(|((theirs, ours), operator)| {
            format!("referenced.{theirs} {operator} referring.{ours}")
        })
        .collect();
    let set: Vec<String> =
        ours.iter().map(|column| format!("referring.{column} IS NOT NULL")).collect();
    (set.join(if key.matches_full { " OR " } else { " AND " }), same.join(" AND "))
}

/// A query for a row that refers to none.
fn orphan_sql(
    key: &ForeignKey,
    (from, place): (&Relation, &str),
    to: &Relation,
    masked: &BTreeSet<String>,
) -> String {
    let (set, same) = referring(key, from, to);
    // The key is told by the row alone: its columns' names are those of the table within the inner query.
    format!(
        "SELECT offshoot_key FROM (SELECT *, {} AS offshoot_key FROM {place}) AS referring WHERE ({set}) \
         AND NOT EXISTS (SELECT FROM {} AS referenced WHERE {same}) LIMIT 1",
        from.key_sql(masked),
        rows(to),
    )
}
