//! Heaps and B-tree indexes, by the server's own `amcheck`.

use std::ops::Range;
use std::time::Duration;

use offshoot_os::{Clock, SystemClock};
use offshoot_types::Failure;

use super::scope::{Scope, bytes_in};
use super::{Findings, Tick};
use crate::databases::DATABASES;
use crate::server::Server;
use crate::session::{Session, quote_identifier, quote_text};

/// Ranges of pages per query.
const QUERY_RANGES: usize = 4096;

/// Verifies heaps and B-tree indexes of all databases of a running, settled server that takes writes:
/// of heaps the pages in `scope`, and all indexes with pages there. The extension it needs is
/// installed if missing, and removed afterwards.
///
/// # Errors
/// `Internal` if the server does not answer or `deadline` passes, and what `tick` returns.
pub fn check_running(
    server: &Server,
    scope: &Scope,
    deadline: Duration,
    tick: &mut Tick<'_>,
) -> Result<Findings, Failure> {
    let end = SystemClock.elapsed() + deadline;
    let mut findings = Findings::default();
    let short = Duration::from_secs(30);
    let mut session = server.connect()?;
    let databases = session.query_column(DATABASES, short)?;
    let closed = session.query_column(
        "SELECT datname FROM pg_catalog.pg_database WHERE NOT datallowconn \
         AND datname <> 'template0'",
        short,
    )?;
    for name in closed {
        findings.unchecked.push(format!("database {name} takes no connections"));
    }
    let available = session
        .query("SELECT FROM pg_catalog.pg_available_extensions WHERE name = 'amcheck'", short)?;
    if available.is_empty() {
        findings.unchecked.push("the extension amcheck is not installed on this host".to_owned());
        return Ok(findings);
    }
    drop(session);
    for database in databases {
        match server.connect_to(&database) {
            Ok(session) => {
                let findings = &mut findings;
                DatabaseCheck { session, database, scope, end, findings }.run(tick)?;
            }
            Err(failure) => {
                findings.unchecked.push(format!("database {database}: {}", failure.message));
            }
        }
    }
    Ok(findings)
}

/// The check of one database.
struct DatabaseCheck<'a> {
    session: Session,
    database: String,
    scope: &'a Scope,
    end: Duration,
    findings: &'a mut Findings,
}

impl DatabaseCheck<'_> {
    /// The remaining time, for one statement.
    fn left(&self) -> Result<Duration, Failure> {
        let left = self.end.saturating_sub(SystemClock.elapsed());
        if left.is_zero() {
            return Err(Failure::internal("the image could not be checked in the time given"));
        }
        Ok(left)
    }

    fn unchecked(&mut self, why: &str) {
        self.findings.unchecked.push(format!("database {}: {why}", self.database));
    }

    fn run(mut self, tick: &mut Tick<'_>) -> Result<(), Failure> {
        let left = self.left()?;
        let schema = self.session.query_column(
            "SELECT nspname FROM pg_catalog.pg_extension e \
             JOIN pg_catalog.pg_namespace n ON n.oid = extnamespace WHERE extname = 'amcheck'",
            left,
        )?;
        let installed_here = schema.is_empty();
        let schema = schema.into_iter().next().unwrap_or_else(|| "offshoot_amcheck".to_owned());
        if installed_here {
            let sql = format!("CREATE SCHEMA {schema}; CREATE EXTENSION amcheck SCHEMA {schema}");
            if let Err(failure) = self.session.execute(&sql, left) {
                self.unchecked(&failure.message);
                return Ok(());
            }
        }
        let checked = self.relations(&schema, tick);
        if installed_here {
            let sql = format!("DROP EXTENSION amcheck; DROP SCHEMA {schema}");
            self.session.execute(&sql, Duration::from_secs(60))?;
        }
        checked
    }

    fn relations(&mut self, schema: &str, tick: &mut Tick<'_>) -> Result<(), Failure> {
        let left = self.left()?;
        // Relations of other sessions' temporary schemas cannot be read; unlogged ones are empty.
        let rows = self.session.query(
            "SELECT c.oid, c.relkind <> 'i', c.oid::regclass::text, pg_relation_filepath(c.oid) \
             FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam \
             LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid \
             WHERE c.relpersistence = 'p' \
               AND ((c.relkind IN ('r', 'm', 't') AND a.amname = 'heap') \
                 OR (c.relkind = 'i' AND a.amname = 'btree' AND i.indisvalid AND i.indisready)) \
             ORDER BY 2 DESC, 1",
            left,
        )?;
        let heap_check = self.session.query(
            &format!(
                "SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n \
                 ON n.oid = pronamespace WHERE proname = 'verify_heapam' AND nspname = {}",
                quote_text(schema)
            ),
            left,
        )?;
        if heap_check.is_empty() {
            self.unchecked("tables (this version checks indexes only)");
        }
        let schema = quote_identifier(schema);
        for row in rows {
            let [Some(oid), Some(is_heap), Some(name), Some(path)] = row.as_slice() else {
                continue;
            };
            let pages = self.scope.of_relation(path);
            let unchanged = pages.as_ref().is_some_and(Vec::is_empty);
            if unchanged || (is_heap == "t" && heap_check.is_empty()) {
                continue;
            }
            let bytes = match (is_heap.as_str(), pages) {
                ("t", Some(pages)) => {
                    for pages in pages.chunks(QUERY_RANGES) {
                        self.relation(name, &pages_query(&schema, oid, pages))?;
                    }
                    self.findings.read.insert(path.clone());
                    bytes_in(pages.iter())
                }
                ("t", None) => {
                    self.relation(name, &heap_query(&schema, oid))?;
                    0
                }
                // It is read again for its checksums: this does not read pages that were deleted
                // from it.
                _ => {
                    let sql = format!("SELECT NULL FROM {schema}.bt_index_check({oid}, false)");
                    self.relation(name, &sql)?;
                    0
                }
            };
            tick(bytes)?;
        }
        Ok(())
    }

    /// Runs one query about a relation: each line of the answer is damage.
    fn relation(&mut self, name: &str, sql: &str) -> Result<(), Failure> {
        let left = self.left()?;
        let found = match self.session.query_column(sql, left) {
            Ok(lines) => lines,
            Err(failure) => {
                self.left()?;
                vec![failure.message]
            }
        };
        for line in found {
            self.findings.add_damage(format!("{}: {name}: {line}", self.database));
        }
        Ok(())
    }
}

/// How damage in a heap is described.
const WRONG: &str = "SELECT 'block ' || blkno || coalesce(' item ' || offnum, '') || ': ' || msg";

/// Queries damage in a heap.
fn heap_query(schema: &str, oid: &str) -> String {
    format!("{WRONG} FROM {schema}.verify_heapam({oid}, check_toast := false) LIMIT 5")
}

/// The same for some pages. The server may have truncated the heap since they were named.
fn pages_query(schema: &str, oid: &str, pages: &[Range<u64>]) -> String {
    let array = |numbers: Vec<String>| format!("'{{{}}}'::bigint[]", numbers.join(","));
    let firsts = array(pages.iter().map(|one| one.start.to_string()).collect());
    let lasts = array(pages.iter().map(|one| (one.end - 1).to_string()).collect());
    format!(
        "{WRONG} FROM (SELECT first, least(last, pages - 1) AS last \
           FROM unnest({firsts}, {lasts}) AS part (first, last), \
             (SELECT pg_relation_size({oid}) / current_setting('block_size')::int AS pages) heap \
           WHERE first < pages OFFSET 0) part, \
         {schema}.verify_heapam({oid}, check_toast := false, \
           startblock := part.first, endblock := part.last) LIMIT 5"
    )
}
