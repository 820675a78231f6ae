//! What else shows values of masked tables, or is there to be found although no table has it.

use super::facts::Oid;
use super::plan::Plan;
use super::watch::Watch;
use crate::wire::Refusal;
use crate::wire::Wire;
use offshoot_connector::DataDir;
use offshoot_types::{ErrorKind, Failure};
use std::collections::BTreeSet;

/// Prepared transactions hold rows that nobody can mask.
pub(super) const PREPARED: &str = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_xacts \
    HAVING pg_catalog.count(*) > 0";

/// Databases that cannot be looked into.
pub(super) const CLOSED: &str = "SELECT datname FROM pg_catalog.pg_database \
    WHERE (NOT datallowconn OR datconnlimit = -2) AND datname <> 'template0' ORDER BY oid";

/// Catalogs in which what was removed would stay in the file.
const WIPED: [&str; 6] = [
    "pg_statistic",
    "pg_statistic_ext_data",
    "pg_description",
    "pg_attribute",
    "pg_largeobject",
    "pg_largeobject_metadata",
];

/// What [`clean`] removes and reports count.
const REMOVED: [&str; 2] = ["comments", "large objects"];

/// How many of those a database has.
const COUNTED: &str = "SELECT \
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_description WHERE objoid >= 16384), \
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_largeobject_metadata)";

/// Materialized views, those first that others are made from: the name, whether it is (at last) made from one of these
/// relations, and whether from a foreign table.
fn views_sql(changed: &BTreeSet<Oid>) -> String {
    let changed: Vec<String> = changed.iter().map(Oid::to_string).collect();
    format!(
        "WITH RECURSIVE uses AS ( \
           SELECT DISTINCT w.ev_class AS view, d.refobjid AS used FROM pg_catalog.pg_rewrite w \
           JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass \
             AND d.objid = w.oid AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
           WHERE d.refobjid <> w.ev_class AND w.ev_type = '1'), \
         below AS ( \
           SELECT view, used, 1 AS depth FROM uses \
           UNION SELECT b.view, u.used, b.depth + 1 FROM below b JOIN uses u ON u.view = b.used \
           WHERE b.depth < 100) \
         SELECT pg_catalog.format('%I.%I', n.nspname, m.relname), n.nspname || '.' || m.relname, \
           EXISTS (SELECT FROM below b WHERE b.view = m.oid AND b.used IN ({changed})), \
           EXISTS (SELECT FROM below b JOIN pg_catalog.pg_class f ON f.oid = b.used \
             WHERE b.view = m.oid AND f.relkind = 'f'), m.oid \
         FROM pg_catalog.pg_class m JOIN pg_catalog.pg_namespace n ON n.oid = m.relnamespace \
         WHERE m.relkind = 'm' AND m.relispopulated \
         ORDER BY (SELECT COALESCE(pg_catalog.max(b.depth), 0) FROM below b WHERE b.view = m.oid), m.oid",
        changed = changed.join(", ")
    )
}

/// Makes materialized views anew, and empties those that hold rows of another host. What a function reads is in no
/// catalog, so all of them are made anew; one that cannot be, but is made of nothing that changed, stays.
/// Returns those whose rows changed.
pub(super) fn refresh_views(
    wire: &mut Wire,
    plan: &Plan,
    changed: &BTreeSet<Oid>,
) -> Result<Vec<Oid>, Failure> {
    let database = format!("database {}", plan.facts.database);
    let failed = |refusal: Refusal| refusal.into_failure(&database);
    let mut refreshed = Vec::new();
    for row in wire.rows(&views_sql(changed)).map_err(failed)? {
        let [Some(sql), Some(name), depends, foreign, Some(oid)] = &row[..] else { continue };
        let is = |flag: &Option<String>| flag.as_deref() == Some("t");
        let with = if is(foreign) { "WITH NO DATA" } else { "WITH DATA" };
        match wire.execute(&format!("REFRESH MATERIALIZED VIEW {sql} {with}")) {
            Ok(()) => refreshed.extend(oid.parse::<Oid>()),
            Err(refusal) if is(depends) => {
                let place = format!("the materialized view {name} cannot be made anew");
                return Err(refusal.into_failure(&place));
            }
            Err(_) => {}
        }
    }
    Ok(refreshed)
}

/// Counts what [`clean`] will remove of a database.
pub(super) fn count(wire: &mut Wire, database: &str, watch: &Watch) -> Result<(), Failure> {
    let failed = |refusal: Refusal| refusal.into_failure(&format!("database {database}"));
    let counts = wire.rows(COUNTED).map_err(failed)?;
    let counts = counts.first().into_iter().flatten().map(|count| count.as_ref()?.parse().ok());
    for (what, count) in REMOVED.into_iter().zip(counts) {
        watch.removed(what, count.unwrap_or_default());
    }
    Ok(())
}

/// Counts what [`clean_shared`] will remove.
pub(super) fn count_shared(wire: &mut Wire, watch: &Watch) -> Result<(), Failure> {
    let comments =
        "SELECT pg_catalog.count(*) FROM pg_catalog.pg_shdescription WHERE objoid >= 16384";
    let comments = wire.column(comments).map_err(|refusal| refusal.into_failure("the server"))?;
    watch
        .removed(REMOVED[0], comments.first().and_then(|one| one.parse().ok()).unwrap_or_default());
    Ok(())
}

/// Removes what the catalog of a database says of values: statistics, comments, and large objects, which no rule can
/// name. What was removed is in no file of it any more. Statistics of the catalog itself quote comments.
pub(super) fn clean(
    wire: &mut Wire,
    plan: &Plan,
    (changed, views): (&BTreeSet<Oid>, &[Oid]),
    watch: &Watch,
) -> Result<(), Failure> {
    let database = format!("database {}", plan.facts.database);
    let failed = |refusal: Refusal| refusal.into_failure(&database);
    // Tables above have statistics of all rows below.
    let mut changed = changed.clone();
    changed.extend(views);
    let mut above: Vec<Oid> = changed.iter().copied().collect();
    while let Some(oid) = above.pop() {
        let parents = plan.facts.relations.get(&oid).into_iter().flat_map(|one| &one.parents);
        above.extend(parents.filter(|parent| changed.insert(**parent)));
    }
    let list: Vec<String> = changed.iter().map(Oid::to_string).collect();
    let list = list.join(", ");
    watch.removed("materialized views, which were made anew", views.len() as u64);
    let sql = format!(
        "DELETE FROM pg_catalog.pg_statistic WHERE starelid < 16384 OR starelid IN ({list}) OR starelid IN \
           (SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid IN ({list})); \
         DELETE FROM pg_catalog.pg_statistic_ext_data WHERE stxoid IN \
           (SELECT oid FROM pg_catalog.pg_statistic_ext WHERE stxrelid IN ({list})); \
         DELETE FROM pg_catalog.pg_description WHERE objoid >= 16384; \
         DELETE FROM pg_catalog.pg_largeobject; \
         DELETE FROM pg_catalog.pg_largeobject_metadata; \
         DELETE FROM pg_catalog.pg_shdepend \
           WHERE classid = 'pg_catalog.pg_largeobject'::pg_catalog.regclass AND dbid = \
             (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())"
    );
    wire.execute(&sql).map_err(failed)?;
    for catalog in WIPED {
        wire.execute(&format!("VACUUM (FULL) pg_catalog.{catalog}")).map_err(failed)?;
    }
    let names = wire.column(&format!(
        "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid IN ({list}) ORDER BY c.oid"
    ));
    for name in names.map_err(failed)? {
        // Without statistics a database is slower, not wrong.
        let _ = wire.execute(&format!("ANALYZE {name}"));
    }
    Ok(())
}

/// Removes what the statistics of a database in which nothing is masked say of the catalogs that all databases share.
pub(super) fn forget_shared(wire: &mut Wire, database: &str) -> Result<(), Failure> {
    for sql in [
        "DELETE FROM pg_catalog.pg_statistic WHERE starelid < 16384",
        "VACUUM (FULL) pg_catalog.pg_statistic",
    ] {
        let place = || format!("database {database}");
        wire.execute(sql).map_err(|refusal| refusal.into_failure(&place()))?;
    }
    Ok(())
}

/// Removes what all databases share: comments on databases and roles. Then the log goes on in a file that has nothing
/// from before.
pub(super) fn clean_shared(wire: &mut Wire) -> Result<(), Failure> {
    for sql in [
        "DELETE FROM pg_catalog.pg_shdescription WHERE objoid >= 16384",
        "VACUUM (FULL) pg_catalog.pg_shdescription",
        "CHECKPOINT",
        "SELECT pg_catalog.pg_switch_wal()",
        "CHECKPOINT",
    ] {
        wire.execute(sql).map_err(|refusal| refusal.into_failure("the server"))?;
    }
    Ok(())
}

/// The files of relations that a database has; those that no relation has any more are left by a crash of the source.
pub(super) const FILES: &str = "SELECT pg_catalog.pg_relation_filenode(oid) FROM pg_catalog.pg_class \
    WHERE pg_catalog.pg_relation_filenode(oid) IS NOT NULL";

/// Removes files in a database's directories that no relation has, and nothing else. Nothing may work in it but idle
/// sessions.
pub(super) fn remove_orphans(
    files: &dyn DataDir,
    directory: &str,
    known: &BTreeSet<String>,
) -> Result<u64, Failure> {
    let mut removed = 0;
    let failed = |error: std::io::Error| {
        Failure::new(ErrorKind::Internal, format!("{directory} cannot be cleaned: {error}"), "")
    };
    for name in files.list(directory).map_err(failed)? {
        let number = name.split(['_', '.']).next().unwrap_or_default();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && !known.contains(number) {
            files.remove(&format!("{directory}/{name}")).map_err(failed)?;
            removed += 1;
        }
    }
    Ok(removed)
}
