//! Foreign keys under masks: both sides must get the same ones.

use super::{How, Plan};
use crate::masker::facts::{ForeignKey, Oid, Relation};
use offshoot_masking::{Outcome, Row};

/// Values that most masks take one of: equal masks of all of them are taken for the same algorithm.
const PROBES: [&str; 9] = [
    "1",
    "4711",
    "1000003",
    "offshoot probe",
    "probe.nine@example.com",
    "1984-05-17",
    "1984-05-17 10:11:12",
    "0d2c9f6e-3f0b-4a53-9f61-5b0d6f1f7a10",
    "4111111111111111",
];

pub(super) fn problems(plan: &Plan) -> Vec<String> {
    let mut problems = Vec::new();
    let emptied = plan.empties();
    for key in &plan.facts.keys {
        let relations = &plan.facts.relations;
        let (Some(from), Some(to)) = (relations.get(&key.from), relations.get(&key.to)) else {
            continue;
        };
        if emptied.contains(&key.from) {
            continue;
        }
        if emptied.contains(&key.to) {
            problems.push(format!(
                "{}: it is emptied, and {} refers to it ({}): empty that as well",
                to.name(),
                from.name(),
                key.name
            ));
            continue;
        }
        let keeps = |oid| plan.facts.tree(oid).iter().any(|one| plan.keeps.contains_key(&one.oid));
        if key.temporal && keeps(key.to) {
            problems.push(format!(
                "{}: the foreign key {} is over periods of time, which are not followed: leave `keep_rows` \
                 of {} out",
                from.name(),
                key.name,
                to.name()
            ));
        }
        problems.extend(sides(plan, key, from, to));
    }
    problems
}

fn sides(plan: &Plan, key: &ForeignKey, from: &Relation, to: &Relation) -> Vec<String> {
    let mut problems = Vec::new();
    for (ours, theirs) in key.from_columns.iter().zip(&key.to_columns) {
        let names = (from.column(*ours), to.column(*theirs));
        let (Some(ours), Some(theirs)) = names else { continue };
        let (one, other) = (format!("{}.{ours}", from.name()), format!("{}.{theirs}", to.name()));
        let how = |oid: Oid, column: &str| {
            plan.rules.get(&oid).into_iter().flatten().find_map(|rule| rule.masks.get(column))
        };
        let why = match (how(from.oid, ours), how(to.oid, theirs)) {
            (None, None) => continue,
            (Some(_), Some(_)) if key.temporal => "is over periods of time, which are not followed",
            (Some(one), Some(other)) if alike(plan, (from, one), (to, other)) => continue,
            (Some(_), Some(_)) => "is masked in two ways",
            (Some(_), None) => "is masked on one side: give the column it refers to the same rule",
            (None, Some(_)) => "refers to a masked column: give it the same rule",
        };
        problems.push(format!("{one}: the foreign key {} to {other} {why}", key.name));
    }
    problems
}

/// Whether two masks are the same, as far as can be seen.
fn alike(plan: &Plan, one: (&Relation, &How), other: (&Relation, &How)) -> bool {
    match (one.1, other.1) {
        (How::Sql(_), How::Sql(_)) => true,
        (How::Values(_), How::Values(_)) => {
            PROBES.iter().all(|probe| masked(plan, one, probe) == masked(plan, other, probe))
        }
        _ => false,
    }
}

/// The mask of a value in a row that has nothing else; none if it has none.
fn masked(plan: &Plan, (relation, how): (&Relation, &How), value: &str) -> Option<Option<String>> {
    let How::Values(mask) = how else { return None };
    // The row that it expects is that of the table whose rule it is.
    let rules = plan.rules.get(&relation.oid).into_iter().flatten();
    let widest = rules.filter_map(|rule| plan.facts.relations.get(&rule.table));
    let columns = widest.map(|table| table.live().count()).max().unwrap_or_default();
    let mut out = String::new();
    match mask.mask(value, &Row { values: &vec![None; columns] }, &mut out) {
        Ok(Outcome::Value) => Some(Some(out)),
        Ok(Outcome::Null) => Some(None),
        Err(_) => None,
    }
}
