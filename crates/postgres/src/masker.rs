//! Masks copies: every value that a rule names is replaced, and no byte of the old ones is left.
//!
//! 1. [`facts`] reads what tables there are; [`plan`] holds the rules against them.
//! 2. Each table with masked columns is written anew: [`flow`] takes its rows through threads of the engine, which mask
//!    them ([`rows`]), into a stage, whose file becomes the table's ([`rewrite`]). Constraints are checked
//!    afterwards ([`verify`]).
//!    [`subset`] says which rows stay, where that is not all of them.
//! 3. [`remains`] removes what else shows values: materialized views are made anew, statistics, comments and large
//!    objects removed, and files that no table has.
//! 4. [`renewal`] does the same for what has changed since a copy was masked, on that masked copy.
//! 5. When the server has stopped, [`finish`] removes the log of before and whatever the server does not need.
//!
//! Invariants
//! 1. No value of a row is in an error or in a log ([`refusal`]); of a row its key is told, if no mask is in it, or its
//!    place.
//! 2. A table is never held in memory.
//! 3. No trigger, rule or policy of the source acts, and nothing of the table but its rows changes: it keeps its oid.
//! 4. Nobody else uses the server. Whatever fails leaves a copy that nobody may get.

use offshoot_connector::{Masked, MaskingTick, RulesChecked};
use offshoot_domain::Secret;
use offshoot_masking::{MaskingKey, Ruleset};
use offshoot_types::{ErrorKind, Failure};

mod discover;
mod facts;
mod finish;
mod flow;
mod plan;
mod preview;
mod remains;
mod renewal;
mod report;
mod rewrite;
mod rows;
mod run;
mod subset;
mod verify;
mod watch;

pub use discover::discover;
pub use finish::finish;
pub use preview::preview;
pub use renewal::{Doors, States, renew};

use crate::databases::DATABASES;
use crate::wire::{Door, Refusal, Wire};
use offshoot_connector::DataDir;
use plan::Plan;
use run::Run;

/// Holds rules against a copy.
///
/// # Errors
/// When its server does not answer.
pub fn check(door: &Door, rules: &Ruleset) -> Result<RulesChecked, Failure> {
    // Whether rules fit does not depend on the key.
    let (plans, mut problems) = plans(door, rules, &MaskingKey::new(b"check"))?;
    for plan in &plans {
        problems.extend(run::misunderstood(door, plan)?);
    }
    Ok(RulesChecked { problems, idle: idle(&plans), unruled: unruled(&plans) })
}

/// Masks a copy. Its large objects are removed, as no rule can name them, and so are comments.
///
/// # Errors
/// As [`offshoot_connector::Masking::mask`].
pub fn mask(
    door: &Door,
    files: &dyn DataDir,
    rules: &Ruleset,
    key: &Secret,
    tick: &mut MaskingTick<'_>,
) -> Result<Masked, Failure> {
    let key = MaskingKey::new(key.reveal().as_bytes());
    let (plans, problems) = plans(door, rules, &key)?;
    if !problems.is_empty() {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("the rules do not fit the copy: {}", problems.join("; ")),
            "correct the rules; `offshoot mask check` says what is wrong",
        ));
    }
    let (idle, unruled) = (idle(&plans), unruled(&plans));
    let run = Run::new((door, door), files, plans);
    run.watched(|| run.all(), tick)?;
    let facts = run.facts(rules.k())?;
    Ok(Masked { values: run.values(), tables: run.tables(), idle, unruled, facts })
}

/// A plan for each database that has tables, and what keeps all from being done.
fn plans(
    door: &Door,
    rules: &Ruleset,
    key: &MaskingKey,
) -> Result<(Vec<Plan>, Vec<String>), Failure> {
    let failed = |refusal: Refusal| refusal.into_failure("the server");
    let mut wire = Wire::connect_any(door)?;
    let mut problems = Vec::new();
    for count in wire.column(remains::PREPARED).map_err(failed)? {
        problems.push(format!(
            "{count} prepared transactions hold rows that cannot be masked: end them at the source, \
             and take a new snapshot"
        ));
    }
    for name in wire.column(remains::CLOSED).map_err(failed)? {
        problems.push(format!(
            "database {name} takes no connections, so nothing in it can be masked: \
             drop it at the source, or let it take connections"
        ));
    }
    let mut plans = Vec::new();
    for name in wire.column(DATABASES).map_err(failed)? {
        let facts = facts::Facts::read(&mut Wire::connect(door, &name)?, &name)?;
        plans.push(Plan::new(facts, rules, key));
    }
    let several = several(&plans);
    for plan in &plans {
        let place = database_of(plan, several);
        problems.extend(plan.problems.iter().map(|line| format!("{place}{line}")));
    }
    Ok((plans, problems))
}

/// Whether several databases have tables.
fn several(plans: &[Plan]) -> bool {
    plans.iter().filter(|plan| !plan.facts.relations.is_empty()).count() > 1
}

/// What comes before the name of a table where several databases have some.
fn database_of(plan: &Plan, several: bool) -> String {
    if several { format!("{}.", plan.facts.database) } else { String::new() }
}

/// Rules that meet nothing in any database.
fn idle(plans: &[Plan]) -> Vec<String> {
    const NO_TABLE: &str = ": no such table";
    let is_idle = |plan: &Plan, line: &str| {
        plan.idle.iter().any(|idle| {
            let table = idle.strip_suffix(NO_TABLE);
            idle == line || table.is_some_and(|table| line.starts_with(&format!("{table}.")))
        })
    };
    let mut lines: Vec<String> = plans.iter().flat_map(|plan| plan.idle.clone()).collect();
    lines.sort();
    lines.dedup();
    lines.retain(|line| plans.iter().all(|plan| is_idle(plan, line)));
    lines
}

fn unruled(plans: &[Plan]) -> Vec<String> {
    let several = several(plans);
    let lines = |plan: &Plan| {
        let place = database_of(plan, several);
        plan.unruled.iter().map(|line| format!("{place}{line}")).collect::<Vec<_>>()
    };
    plans.iter().flat_map(lines).collect()
}
