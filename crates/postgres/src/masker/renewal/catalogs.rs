//! Whether two states of a cluster have the same schema: all that the catalogs say, but for what a server notes on its
//! own, and what a masked copy does not have.

use crate::differ::reading::{Known, file_differs};
use crate::wire::{Refusal, Wire};
use offshoot_types::Failure;

/// Catalogs of a database that tell nothing of its schema. Comments and large objects are removed from masked copies.
const OTHERS: [&str; 6] = [
    "pg_statistic",
    "pg_statistic_ext_data",
    "pg_description",
    "pg_largeobject",
    "pg_largeobject_metadata",
    "pg_subscription_rel",
];

/// Catalogs of the cluster that make a difference.
const SHARED: [&str; 7] = [
    "pg_authid",
    "pg_auth_members",
    "pg_database",
    "pg_db_role_setting",
    "pg_parameter_acl",
    "pg_shseclabel",
    "pg_tablespace",
];

/// What a server notes on its own, and passwords, which copies have none of.
const VOLATILE: [(&str, &[&str]); 5] = [
    (
        "pg_class",
        &[
            "relfilenode",
            "relpages",
            "reltuples",
            "relallvisible",
            "relallfrozen",
            "reltoastrelid",
            "relhasindex",
            "relhasrules",
            "relhastriggers",
            "relhassubclass",
            "relrewrite",
            "relfrozenxid",
            "relminmxid",
        ],
    ),
    ("pg_attribute", &["atthasmissing", "attmissingval", "attcacheoff"]),
    ("pg_index", &["indcheckxmin"]),
    ("pg_database", &["datfrozenxid", "datminmxid"]),
    ("pg_authid", &["rolpassword"]),
];

/// Relations that no schema has: temporary ones, and tables of large values.
const HIDDEN: &str = "SELECT c.oid FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relpersistence = 't' OR n.nspname ~ '^pg_(toast|temp)'";

/// Which relation a row of a catalog belongs to.
const OF_RELATION: [(&str, &str); 10] = [
    ("pg_class", "oid"),
    ("pg_attribute", "attrelid"),
    ("pg_attrdef", "adrelid"),
    ("pg_constraint", "conrelid"),
    ("pg_index", "indrelid"),
    ("pg_inherits", "inhrelid"),
    ("pg_rewrite", "ev_class"),
    ("pg_sequence", "seqrelid"),
    ("pg_statistic_ext", "stxrelid"),
    ("pg_trigger", "tgrelid"),
];

/// The catalogs, with the file and the pages of each.
const CATALOGS: &str = "SELECT relname, pg_catalog.pg_relation_filepath(oid), \
      pg_catalog.pg_relation_size(oid) / 8192, relisshared \
    FROM pg_catalog.pg_class WHERE relkind = 'r' \
      AND relnamespace = 'pg_catalog'::pg_catalog.regnamespace ORDER BY relname";

const LARGE_OBJECTS: &str = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_largeobject_metadata \
    HAVING pg_catalog.count(*) > 0";

/// The catalog of the cluster that differs, if one does.
///
/// # Errors
/// When a server cannot be asked.
pub(super) fn shared_differs(
    before: &mut Wire,
    now: &mut Wire,
    known: &Known<'_>,
) -> Result<Option<String>, Failure> {
    let counts = |name: &str, shared: bool| shared && SHARED.contains(&name);
    first_that_differs((before, now), known, counts, "the server")
}

/// The catalog of a database that differs, if one does. Where no rule meets anything, comments and large objects stay; so
/// they count.
///
/// # Errors
/// When a server cannot be asked.
pub(super) fn differs(
    (before, now): (&mut Wire, &mut Wire),
    known: &Known<'_>,
    database: &str,
    is_ruled: bool,
) -> Result<Option<String>, Failure> {
    let place = format!("database {database}");
    let large = now.column(LARGE_OBJECTS).map_err(|refusal| refusal.of_reading(&place))?;
    if !is_ruled && !large.is_empty() {
        return Ok(Some("pg_largeobject".to_owned()));
    }
    let counts = |name: &str, shared: bool| match name {
        _ if shared => false,
        "pg_description" => !is_ruled,
        name => !OTHERS.contains(&name),
    };
    first_that_differs((before, now), known, counts, &place)
}

/// Only catalogs are read of which a page differs: few, if any.
fn first_that_differs(
    (before, now): (&mut Wire, &mut Wire),
    known: &Known<'_>,
    counts: impl Fn(&str, bool) -> bool,
    place: &str,
) -> Result<Option<String>, Failure> {
    let failed = |refusal: Refusal| refusal.of_reading(place);
    let (of_before, of_now) =
        (before.rows(CATALOGS).map_err(failed)?, now.rows(CATALOGS).map_err(failed)?);
    let mut queries = Vec::new();
    for row in &of_now {
        let [Some(name), file, pages, shared] = &row[..] else { continue };
        if !counts(name, shared.as_deref() == Some("t")) {
            continue;
        }
        let pages = pages.as_ref().and_then(|pages| pages.parse().ok()).unwrap_or_default();
        let is_same = match file {
            Some(file) => of_before.contains(row) && !file_differs(file, pages, known)?,
            None => false,
        };
        queries.extend((!is_same).then(|| digest_sql(name)));
    }
    if queries.is_empty() {
        return Ok(None);
    }
    let sql = queries.join(" UNION ALL ");
    let (a, b) = (before.rows(&sql).map_err(failed)?, now.rows(&sql).map_err(failed)?);
    let other = a.iter().zip(&b).find(|(one, other)| one != other);
    Ok(other.and_then(|(one, _)| one.first().cloned().flatten()))
}

/// A query for the name of a catalog and a digest of all its rows.
fn digest_sql(name: &str) -> String {
    let volatile = VOLATILE.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, names)| names);
    let volatile: Vec<String> = volatile.iter().map(|name| format!("'{name}'")).collect();
    format!(
        "SELECT '{name}', pg_catalog.md5(COALESCE(pg_catalog.string_agg(d, '' ORDER BY d COLLATE \"C\"), '')) \
         FROM (SELECT pg_catalog.md5((pg_catalog.to_jsonb(t) - ARRAY[{}]::pg_catalog.text[])::pg_catalog.text) AS d \
           FROM pg_catalog.{name} t WHERE {}) AS rows",
        volatile.join(", "),
        condition(name)
    )
}

/// Which rows of a catalog are the schema's.
fn condition(name: &str) -> String {
    if let Some((_, column)) = OF_RELATION.iter().find(|(of, _)| *of == name) {
        return format!("t.{column} NOT IN ({HIDDEN})");
    }
    match name {
        "pg_namespace" => "t.nspname !~ '^pg_(toast|temp)'".to_owned(),
        "pg_type" => "t.typnamespace NOT IN (SELECT oid FROM pg_catalog.pg_namespace \
                      WHERE nspname ~ '^pg_(toast|temp)')"
            .to_owned(),
        // Only what nothing else says: members of extensions, and which column a sequence belongs to.
        "pg_depend" => format!(
            "t.deptype IN ('a', 'e', 'x') AND t.objid NOT IN ({HIDDEN}) AND t.refobjid NOT IN ({HIDDEN})"
        ),
        _ => "true".to_owned(),
    }
}
