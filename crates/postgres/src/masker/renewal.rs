//! Masks again only what has changed since a copy was masked.
//!
//! There are three copies: *before*, which the masked one was made from; *now*, whose masks are wanted; and the masked one,
//! which becomes what a full run over *now* would give, row by row.
//!
//! 1. [`catalogs`]: both states of the source must have the same schema, roles and settings.
//! 2. [`tables`]: what is done with each table. Nothing, if no page of it differs; its rows that differ, by the pages that
//!    do ([`crate::differ`]); or all of it, written anew as by a full run ([`super::run`]).
//! 3. [`exchange`]: rows that went are removed by their masked keys, rows that came are written masked.
//! 4. [`sequences`] are set, materialized views made anew, what was removed is vacuumed.
//!
//! Why the result is that of a full run: a mask depends on the key and its row alone, so a row that did not change has the
//! mask that it had. Where an expression in a rule may look at something else, its table is written anew.
//!
//! The masked copy has no byte of an unmasked row at any time: what is removed from it was masked.

mod catalogs;
mod exchange;
mod sequences;
mod tables;

use super::facts::{Oid, Relation};
use super::plan::{Job, Plan};
use super::run::{Rewriting, Run, free_schema};
use super::subset::Subset;
use super::{database_of, idle, plans, remains, several, unruled, verify};
use crate::differ::{ancestor, reading::Known};
use crate::wire::{Door, Refusal, Wire};
use exchange::Exchange;
use offshoot_connector::{DataDir, Differing, Masked, MaskingTick, NextAncestor, Renewed};
use offshoot_domain::{MaskFacts, Secret};
use offshoot_masking::{MaskingKey, Ruleset};
use offshoot_types::Failure;
use std::collections::{BTreeMap, BTreeSet};
use tables::{Doing, Todo};

/// Of fewer rows it makes no difference how they are masked.
const FEW_ROWS: u64 = 500_000;

/// Where the servers of the copies are reached.
#[derive(Debug, Clone, Copy)]
pub struct Doors<'a> {
    /// That of the masked copy, and its files.
    pub masked: &'a Door,
    /// That of the state that it was masked from.
    pub before: &'a Door,
    /// That of the state that it shall show.
    pub now: &'a Door,
}

/// What the store knows of both states of the source: see [`offshoot_connector::Compared`].
pub struct States<'a, 'b> {
    /// The files of the state before, and of the state now.
    pub files: (&'a dyn DataDir, &'a dyn DataDir),
    /// Their blocks that may differ.
    pub differing: &'a Differing<'b>,
    /// States that both come from.
    pub ancestors: &'a mut NextAncestor<'b>,
}

/// Why it is not done so.
enum Stop {
    /// Everything has to be masked, for this reason.
    InFull(String),
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

/// Brings a masked copy up to date.
///
/// # Errors
/// As [`offshoot_connector::Masking::renew`].
pub fn renew(
    doors: Doors<'_>,
    files: &dyn DataDir,
    (states, earlier): (States<'_, '_>, &MaskFacts),
    (rules, key): (&Ruleset, &Secret),
    tick: &mut MaskingTick<'_>,
) -> Result<Renewed, Failure> {
    let key = MaskingKey::new(key.reveal().as_bytes());
    let (plans, problems) = plans(doors.now, rules, &key)?;
    if !problems.is_empty() {
        return Ok(Renewed::InFull("the rules do not fit any more".to_owned()));
    }
    let run = Run::new((doors.masked, doors.now), files, plans);
    let found = todo(doors, states, &run.plans, &mut run.ticking(tick));
    let all = match found {
        Ok(all) => all,
        Err(Stop::InFull(why)) => return Ok(Renewed::InFull(why)),
        Err(Stop::Failed(failure)) => return Err(failure),
    };
    let (idle, unruled) = (idle(&run.plans), unruled(&run.plans));
    let renewing = Renewing { run: &run, doors, earlier, all };
    renewing.expect();
    run.watched(|| renewing.run(), tick)?;
    let facts = run.facts(rules.k())?;
    let (values, tables) = (run.values(), run.tables());
    Ok(Renewed::Done(Masked { values, tables, idle, unruled, facts }))
}

/// What is to be done in each database.
fn todo(
    doors: Doors<'_>,
    states: States<'_, '_>,
    plans: &[Plan],
    waiting: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<Vec<Todo>, Stop> {
    if plans.iter().any(|plan| !plan.keeps.is_empty()) {
        return Err(Stop::InFull("the rules keep a subset of the rows".to_owned()));
    }
    let States { files, differing, ancestors } = states;
    let common = ancestor::find(files, differing, ancestors)?;
    let common = common.map_err(|why| Stop::InFull(why.to_owned()))?;
    let mut known = Known { files, differing, common: Ok(common), renamed: false };
    let mut wires = (Wire::connect_any(doors.before)?, Wire::connect_any(doors.now)?);
    if let Some(catalog) = catalogs::shared_differs(&mut wires.0, &mut wires.1, &known)? {
        return Err(Stop::InFull(format!("what all databases share has changed ({catalog})")));
    }
    let all = plans.iter().map(|plan| tables::todo(doors, plan, &mut known, waiting));
    let all = all.collect::<Result<Vec<Todo>, Stop>>()?;
    if is_most(plans, &all) {
        return Err(Stop::InFull("most of the tables have changed in large part".to_owned()));
    }
    Ok(all)
}

/// Whether so much is to be masked that masking everything takes no longer.
fn is_most(plans: &[Plan], all: &[Todo]) -> bool {
    let (mut total, mut written) = (0, 0);
    for (plan, todo) in plans.iter().zip(all) {
        for relation in plan.facts.relations.values().filter(|one| plan.named_of(one.oid).is_some())
        {
            total += relation.leaf_rows();
            let doing = todo.tables.get(&relation.oid);
            written += doing.map_or(0, |doing| doing.rows(relation.leaf_rows()));
        }
    }
    total >= FEW_ROWS && written > total / 2
}

/// A renewal under way.
struct Renewing<'a> {
    run: &'a Run<'a>,
    doors: Doors<'a>,
    /// What the report of the masked copy tells.
    earlier: &'a MaskFacts,
    /// By database, as the plans of the run.
    all: Vec<Todo>,
}

/// Rows that came and went.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    came: u64,
    gone: u64,
}

impl Moved {
    fn rows(self) -> u64 {
        self.came + self.gone
    }
}

impl Renewing<'_> {
    fn databases(&self) -> impl Iterator<Item = (&Plan, &Todo, usize)> {
        let plans = self.run.plans.iter().zip(&self.all).zip(&self.run.first);
        plans.map(|((plan, todo), first)| (plan, todo, *first))
    }

    /// Says how much is to be done.
    fn expect(&self) {
        for (plan, todo, first) in self.databases() {
            let mut rows: BTreeMap<usize, u64> = BTreeMap::new();
            for (oid, doing) in &todo.tables {
                if let Some(named) = plan.named_of(*oid) {
                    let of_table = plan.facts.relations.get(oid).map_or(0, |one| one.rows);
                    *rows.entry(named).or_default() += doing.rows(of_table);
                }
            }
            for named in 0..plan.named.len() {
                let rows = rows.get(&named).copied().unwrap_or_default();
                self.run.watch.expect(first + named, rows);
            }
        }
    }

    fn run(&self) -> Result<(), Failure> {
        for (plan, todo, first) in self.databases() {
            self.database(plan, todo, first)?;
        }
        remains::count_shared(&mut Wire::connect_any(self.doors.now)?, &self.run.watch)?;
        self.run.end()
    }

    fn database(&self, plan: &Plan, todo: &Todo, first: usize) -> Result<(), Failure> {
        let (database, watch) = (&plan.facts.database, &self.run.watch);
        let failed = |refusal: Refusal| refusal.into_failure(&format!("database {database}"));
        let mut wire = self.run.connect(database)?;
        let mut now = Wire::connect(self.doors.now, database)?;
        let mut moved = BTreeMap::new();
        if todo.does_anything() {
            let schema = free_schema(&mut wire).map_err(failed)?;
            let quoted = crate::session::quote_identifier(&schema);
            wire.execute(&format!("CREATE SCHEMA {quoted}")).map_err(failed)?;
            for (oid, doing) in &todo.tables {
                let Doing::Rows(rows) = doing else { continue };
                let exchange = Exchange { run: self.run, doors: self.doors, plan, schema: &schema };
                let named = plan.named_of(*oid).map(|named| first + named);
                moved.insert(*oid, exchange.rows(*oid, rows, named)?);
            }
            let subset = Subset::default();
            let rewriting =
                Rewriting { run: self.run, plan, first, schema: &schema, subset: &subset };
            rewriting.all(todo.jobs(plan))?;
            self.verify(&mut wire, plan, todo, &schema)?;
            wire.execute(&format!("DROP SCHEMA {quoted} CASCADE")).map_err(failed)?;
            watch.go_on()?;
            if !plan.named.is_empty() {
                let views = remains::refresh_views(&mut wire, plan, &plan.changed())?;
                watch.removed("materialized views, which were made anew", views.len() as u64);
            }
            todo.settle(&mut wire, plan, &moved, watch)?;
        }
        sequences::set(&mut now, &mut wire, database)?;
        if !plan.named.is_empty() {
            remains::count(&mut now, database, watch)?;
        }
        self.count((&mut wire, &mut now), (plan, todo, first), &moved)?;
        (first..first + plan.named.len()).for_each(|table| watch.done(table));
        Ok(())
    }

    /// Rows that came refer to rows that are there. Of tables that were written anew all rows are looked at.
    fn verify(
        &self,
        wire: &mut Wire,
        plan: &Plan,
        todo: &Todo,
        schema: &str,
    ) -> Result<(), Failure> {
        verify::foreign_keys(wire, plan, &|key, from| {
            let doing = |root| {
                let below = plan.facts.tree(root).into_iter();
                below.filter_map(|one| Some((one, todo.tables.get(&one.oid)?))).collect::<Vec<_>>()
            };
            let sides = [doing(key.from), doing(key.to)];
            let is_whole = |(_, doing): &(_, &Doing)| matches!(doing, Doing::Whole(_));
            if sides.iter().flatten().any(is_whole) {
                return vec![verify::rows(from)];
            }
            let [of_from, _] = sides;
            of_from.iter().map(|(one, _)| super::rewrite::stage_name(schema, one)).collect()
        })
    }

    /// Counts the rows of named tables: by what the report said and what came and went, else by asking.
    fn count(
        &self,
        (masked, now): (&mut Wire, &mut Wire),
        (plan, todo, first): (&Plan, &Todo, usize),
        moved: &BTreeMap<Oid, Moved>,
    ) -> Result<(), Failure> {
        let place = database_of(plan, several(&self.run.plans));
        let emptied = plan.empties();
        for (at, oid) in plan.named.iter().enumerate() {
            let Some(table) = plan.facts.relations.get(oid) else { continue };
            let name = format!("{place}{}", table.name());
            let earlier = self.earlier.tables.iter().find(|one| one.name == name);
            let is_emptied = emptied.contains(oid);
            let parts: Vec<&Relation> = match is_emptied {
                true => plan.facts.tree(*oid),
                false => plan.facts.relations.values().collect(),
            };
            let is_part = |one: &&Relation| is_emptied || plan.named_of(one.oid) == Some(at);
            let parts = parts.into_iter().filter(|one| !one.partitioned).filter(is_part);
            let parts: Vec<&Relation> = parts.collect();
            let is_unknown = |one: &&Relation| {
                matches!(todo.tables.get(&one.oid), Some(Doing::Whole(_)))
                    || todo.emptied_differ.contains(&one.oid)
            };
            let known = earlier.filter(|_| !parts.iter().any(is_unknown));
            let (before, after) = match known {
                Some(earlier) => {
                    let moved = || parts.iter().filter_map(|one| moved.get(&one.oid));
                    let came: u64 = moved().map(|one| one.came).sum();
                    let gone: u64 = moved().map(|one| one.gone).sum();
                    let of = |rows: u64| (rows + came).saturating_sub(gone);
                    (of(earlier.rows_before), of(earlier.rows_after))
                }
                None if is_emptied => (verify::counted(now, &parts, &name)?, 0),
                None => {
                    let rows = verify::counted(masked, &parts, &name)?;
                    (rows, rows)
                }
            };
            self.run.watch.count(first + at, before, after);
        }
        Ok(())
    }
}

impl Todo {
    /// The tables that are written anew.
    fn jobs(&self, plan: &Plan) -> Vec<Job> {
        let is_whole = |oid: &Oid| matches!(self.tables.get(oid), Some(Doing::Whole(_)));
        let mut jobs: Vec<Job> =
            plan.jobs().into_iter().filter(|job| job.sources.iter().any(is_whole)).collect();
        let ruled: BTreeSet<Oid> = jobs.iter().flat_map(|job| job.sources.clone()).collect();
        let others = self.tables.keys().filter(|oid| is_whole(oid) && !ruled.contains(oid));
        jobs.extend(others.map(|oid| Job::unmasked(plan, *oid)));
        jobs
    }
}
