//! What a report tells of a masked copy: names and counts.

use super::facts::Relation;
use super::plan::Plan;
use super::run::Run;
use super::watch::Watch;
use super::{database_of, several};
use crate::session::quote_identifier;
use crate::wire::Refusal;
use crate::wire::{Door, Wire};
use offshoot_domain::{Anonymity, MaskFacts, MaskedColumnFacts, MaskedTableFacts, Removed};
use offshoot_types::Failure;

/// What [`super::finish`] and the way in which tables are written leave behind, without counting it.
const UNCOUNTED: [&str; 4] = [
    "rows, indexes and large values as they were, with dead ones, in the files of masked and emptied tables",
    "log of before, server logs, statistics files, replication slots, temporary files and settings that no server needs",
    "statistics of the planner on masked and emptied tables and on catalogs, which were made anew",
    "passwords of roles",
];

impl Run<'_> {
    /// What was done. Nothing that it returns tells a value.
    pub(super) fn facts(&self, k: u64) -> Result<MaskFacts, Failure> {
        let mut facts = MaskFacts::default();
        let several = several(&self.plans);
        for (plan, first) in self.plans.iter().zip(&self.first) {
            let place = database_of(plan, several);
            describe(plan, &place, (*first, &self.watch), &mut facts);
            facts.anonymity.extend(anonymity(self.door, plan, &place, k)?);
        }
        let counted = self.watch.all_removed().into_iter();
        facts.removed = counted.map(|(what, count)| Removed { what, count: Some(count) }).collect();
        facts.removed.extend(UNCOUNTED.map(|what| Removed { what: what.into(), count: None }));
        Ok(facts)
    }
}

fn describe(plan: &Plan, place: &str, (first, watch): (usize, &Watch), facts: &mut MaskFacts) {
    let named = |oid| plan.facts.relations.get(oid).map(Relation::name).unwrap_or_default();
    for (at, oid) in plan.named.iter().enumerate() {
        let (rows_before, rows_after) = watch.counts(first + at);
        let mut applied = plan.algorithms.iter().filter(|((table, _), _)| table == oid);
        facts.tables.push(MaskedTableFacts {
            name: format!("{place}{}", named(oid)),
            rows_before,
            rows_after,
            emptied: plan.emptied.contains(oid),
            conditional: applied.any(|(_, applied)| applied.conditional),
        });
    }
    for ((table, column), applied) in &plan.algorithms {
        facts.columns.push(MaskedColumnFacts {
            table: format!("{place}{}", named(table)),
            column: column.clone(),
            algorithm: applied.algorithm.clone(),
            uniqueness: applied.uniqueness.to_owned(),
            learned: applied.learned.clone(),
        });
    }
    facts.kept.extend(plan.kept.iter().map(|column| format!("{place}{column}")));
    let empties = plan.empties();
    for relation in plan.facts.named().filter(|one| !empties.contains(&one.oid)) {
        let masked = plan.masked(relation.oid);
        let left = relation.live().filter(|column| !masked.contains(&column.name));
        let name = relation.name();
        facts.unmasked.extend(left.map(|column| format!("{place}{name}.{}", column.name)));
    }
}

/// Counts how many rows share each combination of quasi-identifiers.
fn anonymity(door: &Door, plan: &Plan, place: &str, k: u64) -> Result<Vec<Anonymity>, Failure> {
    if plan.quasi_identifiers.is_empty() {
        return Ok(Vec::new());
    }
    let mut wire = Wire::connect(door, &plan.facts.database)?;
    let mut all = Vec::new();
    for (oid, columns) in &plan.quasi_identifiers {
        let Some(relation) = plan.facts.relations.get(oid) else { continue };
        let table = relation.name();
        let failed = |refusal: Refusal| refusal.into_failure(&table);
        let rows = wire.rows(&groups_sql(relation, columns, k)).map_err(failed)?;
        let numbers = rows.first().into_iter().flatten().flatten();
        let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
        let [rows, combinations, unique, smallest, rows_below] = numbers[..] else {
            return Err(failed(Refusal::unexpected()));
        };
        all.push(Anonymity {
            table: format!("{place}{table}"),
            columns: columns.clone(),
            rows,
            combinations,
            unique,
            smallest,
            k,
            rows_below,
        });
    }
    Ok(all)
}

/// Values are compared as texts: every type has one, and two that are written differently count as different.
fn groups_sql(relation: &Relation, columns: &[String], k: u64) -> String {
    let columns: Vec<String> =
        columns.iter().map(|name| format!("{}::pg_catalog.text", quote_identifier(name))).collect();
    format!(
        "SELECT COALESCE(pg_catalog.sum(n), 0), pg_catalog.count(*), \
           pg_catalog.count(*) FILTER (WHERE n = 1), COALESCE(pg_catalog.min(n), 0), \
           COALESCE(pg_catalog.sum(n) FILTER (WHERE n < {k}), 0) \
         FROM (SELECT pg_catalog.count(*) AS n FROM {} GROUP BY {}) AS groups",
        relation.quoted(),
        columns.join(", ")
    )
}
