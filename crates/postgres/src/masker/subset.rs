//! Which rows stay where rules keep a subset (`keep_rows`), by foreign keys too.
//!
//! Rows for which the condition of their table does not hold go, and so do rows that refer to rows that go, at last. All
//! conditions are asked of the copy as it was; what they read may go itself. Rows that go are noted by their places,
//! and left out when tables are written anew. Nothing is deleted: no trigger acts, and no dead row is left.

use super::facts::{ForeignKey, Oid, Relation};
use super::plan::{Job, Plan};
use super::verify;
use super::watch::Watch;
use crate::session::quote_identifier;
use crate::wire::{Refusal, Wire};
use offshoot_types::Failure;
use std::collections::{BTreeMap, BTreeSet};

/// Rows that go.
#[derive(Default)]
pub(super) struct Subset {
    /// The table that notes their places, as SQL names it.
    gone: String,
    /// How many of each relation that loses any.
    counts: BTreeMap<Oid, u64>,
}

impl Subset {
    /// Finds the rows that go.
    pub(super) fn find(
        wire: &mut Wire,
        plan: &Plan,
        schema: &str,
        watch: &Watch,
    ) -> Result<Subset, Failure> {
        let gone = format!("{}.gone", quote_identifier(schema));
        let mut subset = Subset { gone, counts: BTreeMap::new() };
        if plan.keeps.is_empty() {
            return Ok(subset);
        }
        let place = format!("database {}", plan.facts.database);
        let create =
            format!("CREATE TABLE {} (rel pg_catalog.oid, place pg_catalog.tid)", subset.gone);
        wire.execute(&create).map_err(|refusal| refusal.into_failure(&place))?;
        let emptied = plan.empties();
        let mut changed = BTreeSet::new();
        for (oid, keep) in plan.keeps.iter().filter(|(oid, _)| !emptied.contains(oid)) {
            let Some(relation) = plan.facts.relations.get(oid) else { continue };
            watch.go_on()?;
            let rows = format!(
                "SELECT {alias}.tableoid, {alias}.ctid FROM ONLY {} AS {alias} WHERE ({}) IS NOT TRUE",
                relation.quoted(),
                keep.condition,
                alias = keep.alias,
            );
            changed.extend(subset.add(wire, &rows, &relation.name())?);
        }
        while !changed.is_empty() {
            watch.go_on()?;
            let analyze = format!("ANALYZE {}", subset.gone);
            wire.execute(&analyze).map_err(|refusal| refusal.into_failure(&place))?;
            changed = subset.follow(wire, plan, &changed)?;
        }
        Ok(subset)
    }

    /// Notes rows; returns the relations that have some of them.
    fn add(&mut self, wire: &mut Wire, rows: &str, place: &str) -> Result<Vec<Oid>, Failure> {
        let sql = format!(
            "WITH added AS (INSERT INTO {} {rows} RETURNING rel) \
             SELECT rel, pg_catalog.count(*) FROM added GROUP BY rel",
            self.gone
        );
        let mut changed = Vec::new();
        for row in wire.rows(&sql).map_err(|refusal| refusal.into_failure(place))? {
            let [Some(oid), Some(count)] = &row[..] else { continue };
            let (Ok(oid), Ok(count)) = (oid.parse::<Oid>(), count.parse::<u64>()) else { continue };
            *self.counts.entry(oid).or_default() += count;
            changed.push(oid);
        }
        Ok(changed)
    }

    /// Notes rows that refer to rows of these relations which go.
    fn follow(
        &mut self,
        wire: &mut Wire,
        plan: &Plan,
        shrunk: &BTreeSet<Oid>,
    ) -> Result<BTreeSet<Oid>, Failure> {
        let (emptied, mut changed) = (plan.empties(), BTreeSet::new());
        for key in plan.facts.keys.iter().filter(|key| key.validated && !key.temporal) {
            let relations = &plan.facts.relations;
            let (Some(from), Some(to)) = (relations.get(&key.from), relations.get(&key.to)) else {
                continue;
            };
            let loses = plan.facts.tree(key.to).iter().any(|one| shrunk.contains(&one.oid));
            if !loses || emptied.contains(&key.from) {
                continue;
            }
            let rows = self.referring_sql(key, from, to);
            changed.extend(self.add(
                wire,
                &rows,
                &format!("{}, foreign key {}", from.name(), key.name),
            )?);
        }
        Ok(changed)
    }

    /// A query for rows that stay so far, and refer to none that does.
    fn referring_sql(&self, key: &ForeignKey, from: &Relation, to: &Relation) -> String {
        let (set, same) = verify::referring(key, from, to);
        format!(
            "SELECT referring.tableoid, referring.ctid FROM {} AS referring WHERE ({set}) AND {} \
             AND NOT EXISTS (SELECT FROM {} AS referenced WHERE {same} AND {})",
            verify::rows(from),
            self.stays("referring"),
            verify::rows(to),
            self.stays("referenced"),
        )
    }

    /// The condition that a row stays.
    fn stays(&self, alias: &str) -> String {
        format!(
            "NOT EXISTS (SELECT FROM {} AS gone WHERE gone.rel = {alias}.tableoid AND gone.place = {alias}.ctid)",
            self.gone
        )
    }

    /// The condition that rows of a relation stay, if any goes.
    pub(super) fn of(&self, relation: Oid, alias: &str) -> Option<String> {
        self.counts.contains_key(&relation).then(|| self.stays(alias))
    }

    /// Relations that lose rows.
    pub(super) fn relations(&self) -> impl Iterator<Item = Oid> {
        self.counts.keys().copied()
    }

    /// Tables to write anew only because rows of them go.
    pub(super) fn jobs(&self, plan: &Plan, masked: &[Job]) -> Vec<Job> {
        let written: BTreeSet<Oid> = masked.iter().flat_map(|job| job.sources.clone()).collect();
        let others = self.relations().filter(|oid| !written.contains(oid));
        others.map(|oid| Job::unmasked(plan, oid)).collect()
    }

    /// Counts what goes, and the rows of tables that were asked for a subset and keep all of them. Then it is of no use any
    /// more.
    pub(super) fn end(
        self,
        wire: &mut Wire,
        plan: &Plan,
        first: usize,
        watch: &Watch,
    ) -> Result<(), Failure> {
        if plan.keeps.is_empty() {
            return Ok(());
        }
        for (oid, count) in &self.counts {
            let Some(relation) = plan.facts.relations.get(oid) else { continue };
            watch.removed(&format!("rows of {} that are not kept", relation.name()), *count);
            if let Some(named) = plan.named_of(*oid) {
                watch.counted(first + named, *count, 0);
            }
        }
        for oid in plan.keeps.keys().filter(|oid| !self.counts.contains_key(oid)) {
            let Some(relation) = plan.facts.relations.get(oid) else { continue };
            if let (Some(named), true) = (plan.named_of(*oid), plan.masked(*oid).is_empty()) {
                let rows = verify::counted(wire, &[relation], &relation.name())?;
                watch.counted(first + named, rows, rows);
            }
        }
        let failed =
            |refusal: Refusal| refusal.into_failure(&format!("database {}", plan.facts.database));
        wire.execute(&format!("DROP TABLE {}", self.gone)).map_err(failed)
    }
}

/// What conditions the database does not understand.
pub(super) fn misunderstood(wire: &mut Wire, plan: &Plan) -> Vec<String> {
    let mut problems = Vec::new();
    for (oid, keep) in &plan.keeps {
        let Some(relation) = plan.facts.relations.get(oid) else { continue };
        let (table, alias) = (relation.quoted(), &keep.alias);
        let sql =
            format!("SELECT FROM ONLY {table} AS {alias} WHERE ({}) IS NOT TRUE", keep.condition);
        if let Err(refusal) = wire.understands(&sql) {
            problems.push(format!("{}: `keep_rows`: {}", relation.name(), refusal.said()));
        }
    }
    problems
}
