//! Shows what rules make of some rows, and changes nothing.

use super::facts::Relation;
use super::plan::{Plan, Reading};
use super::rows::{Change, unescape};
use super::{database_of, plans};
use crate::wire::Refusal;
use crate::wire::{Door, Wire};
use offshoot_connector::{Preview, PreviewColumn, PreviewValue};
use offshoot_domain::Secret;
use offshoot_masking::{MaskingKey, Ruleset};
use offshoot_types::{ErrorKind, Failure};

/// Masks up to `rows` rows of a table, whose schema is `public` where its name has none.
///
/// # Errors
/// As [`offshoot_connector::Masking::preview`].
pub fn preview(
    door: &Door,
    rules: &Ruleset,
    key: &Secret,
    table: &str,
    rows: u32,
) -> Result<Preview, Failure> {
    let key = MaskingKey::new(key.reveal().as_bytes());
    let (plans, problems) = plans(door, rules, &key)?;
    let (plan, relation, name) = find(&plans, table)?;
    let about =
        |line: &&String| line.strip_prefix(&name).is_some_and(|rest| rest.starts_with(['.', ':']));
    let problems: Vec<String> = problems.iter().filter(about).cloned().collect();
    if !problems.is_empty() {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("the rules do not fit: {}", problems.join("; ")),
            "correct the rules; `offshoot mask check` says what is wrong",
        ));
    }
    let masked = plan.masked(relation.oid);
    if plan.empties().contains(&relation.oid) || masked.is_empty() {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            match masked.is_empty() {
                true => format!("the rules mask no column of {name}"),
                false => format!("the rules empty {name}"),
            },
            "name a table whose columns they mask",
        ));
    }
    let names = relation.live().map(|column| column.name.clone());
    let names: Vec<String> = names.filter(|name| masked.contains(name)).collect();
    let mut shown = Vec::new();
    let mut wire = Wire::connect(door, &plan.facts.database)?;
    for leaf in plan.facts.tree(relation.oid).iter().filter(|one| !one.partitioned) {
        let wanted = (rows as usize).saturating_sub(shown.len());
        if wanted == 0 {
            break;
        }
        let Some(reading) = plan.reading(leaf.oid, leaf.oid) else { continue };
        shown.extend(masked_rows(&mut wire, &reading, leaf, wanted, &names)?);
    }
    let column = |name: String| {
        let algorithm = plan.algorithm(relation.oid, &name);
        PreviewColumn { name, algorithm }
    };
    Ok(Preview { table: name, columns: names.into_iter().map(column).collect(), rows: shown })
}

/// The table that a user names, and its name in full.
fn find<'a>(plans: &'a [Plan], table: &str) -> Result<(&'a Plan, &'a Relation, String), Failure> {
    let several = plans.iter().filter(|plan| !plan.facts.relations.is_empty()).count() > 1;
    let in_public = format!("public.{table}");
    for plan in plans {
        for relation in plan.facts.relations.values() {
            let name = relation.name();
            let full = format!("{}{name}", database_of(plan, several));
            if full == table || name == table || name == in_public {
                return Ok((plan, relation, full));
            }
        }
    }
    Err(Failure::new(
        ErrorKind::NotFound,
        format!("there is no table '{table}'"),
        "name it with its schema, as in public.customers",
    ))
}

/// Up to `wanted` rows of a relation, with the columns that are named.
fn masked_rows(
    wire: &mut Wire,
    reading: &Reading,
    relation: &Relation,
    wanted: usize,
    names: &[String],
) -> Result<Vec<Vec<PreviewValue>>, Failure> {
    let mut read = Vec::new();
    let copy = format!("COPY ({} LIMIT {wanted}) TO STDOUT", reading.query);
    let copied = wire.copy_out(&copy, &mut |row| {
        read.extend_from_slice(row);
        Ok(())
    });
    copied.map_err(|error| match error {
        Ok(refusal) => Refusal::into_failure(refusal, &relation.name()),
        Err(failure) => failure,
    })?;
    let mut written = Vec::new();
    reading.rows.mask(&read, &mut written).map_err(|fault| {
        let column = if fault.column.is_empty() { "" } else { "." };
        Failure::new(
            ErrorKind::InvalidInput,
            format!(
                "{}{column}{}, row {}: {}",
                relation.name(),
                fault.column,
                fault.row,
                fault.why
            ),
            "choose another algorithm for this column, or give its parameters",
        )
    })?;
    let unreadable = || Failure::internal("rows that were masked are no texts");
    let read = std::str::from_utf8(&read).map_err(|_| unreadable())?;
    let written = std::str::from_utf8(&written).map_err(|_| unreadable())?;
    let rows = read.split_terminator('\n').zip(written.split_terminator('\n'));
    Ok(rows.map(|(before, after)| values(reading, before, after, names)).collect())
}

fn values(reading: &Reading, before: &str, after: &str, names: &[String]) -> Vec<PreviewValue> {
    let before: Vec<&str> = before.split('\t').collect();
    let after: Vec<&str> = after.split('\t').collect();
    let value = |name: &String| {
        let at = reading.rows.written.iter().position(|one| one.column == *name)?;
        let written = reading.rows.written.get(at)?;
        let masked = match &written.change {
            Change::Kept => false,
            Change::Masked { group, .. } | Change::Computed { group, .. } => reading
                .rows
                .groups
                .get(*group)
                .is_some_and(|group| reading.rows.holds(group, &before)),
        };
        let text = |field: Option<&&str>| unescape(field?).map(|text| text.into_owned());
        Some(PreviewValue {
            before: text(before.get(written.field)),
            after: text(after.get(at)),
            masked,
        })
    };
    names.iter().filter_map(value).collect()
}
