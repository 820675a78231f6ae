//! Everything but rows: what the catalogs say.

mod queries;

use super::names::Wanted;
use crate::wire::{Refusal, Wire};
use offshoot_connector::ObjectChange;
use offshoot_types::Failure;
use queries::{OF_CLUSTER, OF_DATABASE, Query};
use std::collections::BTreeMap;

/// Objects that differ and are told.
const OBJECTS_MAX: usize = 5000;

/// By what it is, in the order of the queries, and by its name: its definition.
type Objects = BTreeMap<(usize, String), String>;

/// What differs in the cluster as a whole: databases and roles.
///
/// # Errors
/// When a server cannot be asked.
pub(super) fn of_cluster(left: &mut Wire, right: &mut Wire) -> Result<Vec<ObjectChange>, Failure> {
    let all = Wanted(&[]);
    let (left, right) = (read(left, OF_CLUSTER, "", all)?, read(right, OF_CLUSTER, "", all)?);
    Ok(changes(None, OF_CLUSTER, left, right))
}

/// What differs in a database; where tables are named, of these alone.
///
/// # Errors
/// When a server cannot be asked.
pub(super) fn of_database(
    left: &mut Wire,
    right: &mut Wire,
    database: &str,
    wanted: Wanted<'_>,
) -> Result<Vec<ObjectChange>, Failure> {
    let left = read(left, OF_DATABASE, database, wanted)?;
    let right = read(right, OF_DATABASE, database, wanted)?;
    Ok(changes(Some(database), OF_DATABASE, left, right))
}

/// Keeps as many as are told; how many are left out.
pub(super) fn bounded(objects: &mut Vec<ObjectChange>) -> usize {
    let left_out = objects.len().saturating_sub(OBJECTS_MAX);
    objects.truncate(OBJECTS_MAX);
    left_out
}

fn read(
    wire: &mut Wire,
    queries: &[Query],
    database: &str,
    wanted: Wanted<'_>,
) -> Result<Objects, Failure> {
    let mut objects = Objects::new();
    for (at, query) in queries.iter().enumerate() {
        let failed = |refusal: Refusal| refusal.of_reading(query.kind);
        for row in wire.rows(query.sql).map_err(failed)? {
            let [Some(name), schema, table, definition] = &row[..] else { continue };
            let of_wanted = match (schema, table) {
                (Some(schema), Some(table)) => wanted.table(database, schema, table),
                _ => wanted.all(),
            };
            if of_wanted {
                objects.insert((at, name.clone()), definition.clone().unwrap_or_default());
            }
        }
    }
    Ok(objects)
}

fn changes(
    database: Option<&str>,
    queries: &[Query],
    mut left: Objects,
    right: Objects,
) -> Vec<ObjectChange> {
    let mut changes = BTreeMap::new();
    for (key, after) in right {
        let before = left.remove(&key);
        if before.as_ref() != Some(&after) {
            changes.insert(key, (before, Some(after)));
        }
    }
    changes.extend(left.into_iter().map(|(key, before)| (key, (Some(before), None))));
    let change = |((at, name), (before, after))| ObjectChange {
        database: database.map(str::to_owned),
        kind: queries.get(at).map(|query: &Query| query.kind.to_owned()).unwrap_or_default(),
        name,
        before,
        after,
    };
    changes.into_iter().map(change).collect()
}

#[cfg(test)]
mod tests;
