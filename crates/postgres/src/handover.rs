//! Gives the VDB role what superusers of the source owned.
//!
//! Extensions and what belongs to them, foreign servers, publications, subscriptions, event triggers
//! and the functions that these run stay with the superusers: they act with a superuser's rights, or
//! lead to other hosts. What ordinary roles own stays theirs; the VDB role is a member of them.

use std::time::Duration;

use offshoot_types::Failure;

use crate::databases;
use crate::engine_role::ENGINE_ROLE;
use crate::server::Server;
use crate::session::{Session, quote_identifier, quote_text};
use crate::vdb_role::VDB_ROLE;

const TIMEOUT: Duration = Duration::from_secs(600);

/// Nobody else uses the server: whoever holds a lock is a prepared transaction, and does not give it up.
const LOCK_TIMEOUT_MS: u32 = 200;

/// Statements in one transaction: each may lock a table with its indexes, and the server's table of locks
/// has an end.
const BATCH: usize = 200;

/// Each kind of object: its catalog, and a query for `oid`, `owner` and how `ALTER … OWNER` names it.
const KINDS: [(&str, &str); 8] = [
    (
        "pg_namespace",
        "SELECT oid, nspowner AS owner, pg_catalog.format('SCHEMA %I', nspname) AS object FROM pg_catalog.pg_namespace \
         WHERE oid >= 16384 OR nspname = 'public'",
    ),
    (
        "pg_class",
        "SELECT c.oid, relowner AS owner, pg_catalog.format('%s %s', CASE relkind WHEN 'v' THEN 'VIEW' \
           WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' \
           ELSE 'TABLE' END, c.oid::pg_catalog.regclass) AS object \
         FROM pg_catalog.pg_class c WHERE oid >= 16384 AND (relkind IN ('r', 'p', 'v', 'm', 'f') \
           OR relkind = 'S' AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d \
             WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid \
             AND d.refclassid = d.classid AND d.deptype IN ('a', 'i')))",
    ),
    (
        "pg_proc",
        "SELECT oid, proowner AS owner, pg_catalog.format('ROUTINE %s', oid::pg_catalog.regprocedure) AS object \
         FROM pg_catalog.pg_proc WHERE oid >= 16384 \
           AND oid NOT IN (SELECT evtfoid FROM pg_catalog.pg_event_trigger)",
    ),
    (
        "pg_type",
        "SELECT oid, typowner AS owner, pg_catalog.format('TYPE %s', oid::pg_catalog.regtype) AS object \
         FROM pg_catalog.pg_type t WHERE oid >= 16384 AND (typtype IN ('b', 'd', 'e', 'r') \
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_type e WHERE e.typarray = t.oid) \
           OR typtype = 'c' AND EXISTS (SELECT FROM pg_catalog.pg_class c \
             WHERE c.oid = typrelid AND relkind = 'c'))",
    ),
    (
        "pg_operator",
        "SELECT oid, oprowner AS owner, pg_catalog.format('OPERATOR %s', oid::pg_catalog.regoperator) AS object \
         FROM pg_catalog.pg_operator WHERE oid >= 16384",
    ),
    (
        "pg_ts_config",
        "SELECT oid, cfgowner AS owner, pg_catalog.format('TEXT SEARCH CONFIGURATION %s', \
           oid::pg_catalog.regconfig) AS object FROM pg_catalog.pg_ts_config WHERE oid >= 16384",
    ),
    (
        "pg_ts_dict",
        "SELECT oid, dictowner AS owner, pg_catalog.format('TEXT SEARCH DICTIONARY %s', \
           oid::pg_catalog.regdictionary) AS object FROM pg_catalog.pg_ts_dict WHERE oid >= 16384",
    ),
    (
        "pg_statistic_ext",
        "SELECT s.oid, stxowner AS owner, pg_catalog.format('STATISTICS %I.%I', nspname, stxname) AS object \
         FROM pg_catalog.pg_statistic_ext s JOIN pg_catalog.pg_namespace n ON n.oid = stxnamespace",
    ),
];

/// Gives away everything of every database. Returns what could not be given, one sentence each.
/// Safe to repeat.
///
/// # Errors
/// `Internal` with the server's words.
pub(crate) fn hand_over(server: &Server) -> Result<Vec<String>, Failure> {
    let mut session = server.connect()?;
    let mut refused = hand_over_databases(&mut session)?;
    for (_, inside) in databases::in_each(server, &mut session, hand_over_inside)? {
        refused.extend(inside);
    }
    Ok(refused)
}

/// Gives away the databases themselves.
///
/// # Errors
/// As [`hand_over`].
pub(crate) fn hand_over_databases(session: &mut Session) -> Result<Vec<String>, Failure> {
    let role = quote_identifier(VDB_ROLE);
    let own = format!(
        "SELECT pg_catalog.format('ALTER DATABASE %I OWNER TO {role}', datname) \
         FROM pg_catalog.pg_database JOIN pg_catalog.pg_authid a ON a.oid = datdba \
         WHERE rolsuper AND NOT datistemplate"
    );
    let statements = session.query_column(&own, TIMEOUT)?;
    run(session, &statements)
}

/// Gives away what is in the database that a session is in.
///
/// # Errors
/// As [`hand_over`].
pub(crate) fn hand_over_inside(
    session: &mut Session,
    database: &str,
) -> Result<Vec<String>, Failure> {
    let statements = session.query_column(&statements_of_database(), TIMEOUT)?;
    let refused = run(session, &statements)?;
    Ok(refused.into_iter().map(|line| format!("{database}: {line}")).collect())
}

fn statements_of_database() -> String {
    let role = quote_identifier(VDB_ROLE);
    let kinds: Vec<String> = KINDS
        .iter()
        .enumerate()
        .map(|(rank, (catalog, objects))| {
            format!(
                "SELECT {rank} AS rank, '{catalog}'::pg_catalog.regclass AS kind, o.* FROM ({objects}) o"
            )
        })
        .collect();
    // Whoever owns an extension's objects could replace what it runs as a superuser.
    format!(
        "SELECT statement FROM ( \
           SELECT rank, every.oid, pg_catalog.format('ALTER %s OWNER TO {role}', object) AS statement \
           FROM ({kinds}) AS every JOIN pg_catalog.pg_authid a ON a.oid = owner \
           WHERE rolsuper AND rolname <> {engine} AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d \
             WHERE d.classid = kind AND d.objid = every.oid AND d.deptype = 'e') \
           UNION ALL \
           SELECT 99, oid, pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO {role}', \
             oid::pg_catalog.regprocedure) FROM pg_catalog.pg_proc \
           WHERE proname ~ '^pg_stat_(statements_)?reset' \
         ) AS all_of_them ORDER BY rank, oid",
        kinds = kinds.join(" UNION ALL "),
        engine = quote_text(ENGINE_ROLE),
    )
}

/// Runs statements in batches; those of a batch that fails one by one. Returns the refusals.
fn run(session: &mut Session, statements: &[String]) -> Result<Vec<String>, Failure> {
    let mut refused = Vec::new();
    session.execute(&format!("SET lock_timeout = {LOCK_TIMEOUT_MS}"), TIMEOUT)?;
    for batch in statements.chunks(BATCH) {
        if session.execute(&batch.join("; "), TIMEOUT).is_ok() {
            continue;
        }
        for statement in batch {
            if let Err(failure) = session.execute(statement, TIMEOUT) {
                refused.push(format!("{statement}: {}", failure.message));
            }
        }
    }
    session.execute("SET lock_timeout = 0", TIMEOUT)?;
    Ok(refused)
}
