//! Proof that an image is sound: page checksums, heap and index structure.

use std::path::Path;
use std::time::Duration;

use offshoot_os::process::{Spec, User, run};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure};

use crate::control::{self, ClusterState};
use crate::server::Server;
use crate::session::{Session, quote_text};

/// Most lines kept of what is wrong: a damaged image is damaged.
const DAMAGE_LINES_MAX: usize = 50;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Damage, one line each; empty: sound.
    pub damage: Vec<String>,
    /// What could not be checked and why (no `amcheck` here, no page checksums …).
    pub unchecked: Vec<String>,
}

impl Findings {
    /// Whether nothing wrong was found.
    pub fn sound(&self) -> bool {
        self.damage.is_empty()
    }

    fn add_damage(&mut self, line: String) {
        if self.damage.len() < DAMAGE_LINES_MAX {
            self.damage.push(line);
        }
    }
}

/// Verifies the page checksums of a cleanly stopped image.
///
/// # Errors
/// `WrongState` when it was not stopped cleanly, `HostUnprepared` when the tool is missing,
/// `Internal` when it does not end within `deadline`.
pub fn check_stopped(
    bin_dir: &Path,
    data_dir: &Path,
    user: Option<&User>,
    deadline: Duration,
) -> Result<Findings, Failure> {
    let mut findings = Findings::default();
    let control = control::read(bin_dir, data_dir, user)?;
    if !matches!(control.state, ClusterState::ShutDown | ClusterState::ShutDownInRecovery) {
        return Err(Failure::new(
            ErrorKind::WrongState,
            "the image was not stopped cleanly",
            "start it and stop it again",
        ));
    }
    if !control.data_checksums {
        findings.unchecked.push("the source has no page checksums".to_owned());
        return Ok(findings);
    }
    let spec = Spec::new(bin_dir.join("pg_checksums"))
        .args(["--check", "-D"])
        .arg(data_dir)
        .clear_env()
        .env("LC_ALL", "C")
        .cwd("/")
        .user(user.cloned());
    let output = run(&spec, deadline).map_err(|error| {
        let kind = match error {
            offshoot_os::process::ProcessError::Spawn { .. } => ErrorKind::HostUnprepared,
            _ => ErrorKind::Internal,
        };
        Failure::new(kind, error.to_string(), "install the server programs completely")
    })?;
    if !output.success() {
        let lines = output.stderr_text();
        let found = lines.lines().filter(|line| !line.trim().is_empty());
        found.for_each(|line| findings.add_damage(line.trim().to_owned()));
        if findings.damage.is_empty() {
            findings.add_damage("pg_checksums found damage without a word".to_owned());
        }
    }
    Ok(findings)
}

/// Verifies heaps and B-tree indexes of all databases of a running, settled server that takes
/// writes. The extension it needs is installed where missing and removed afterwards.
///
/// # Errors
/// `Internal` when the server does not answer or `deadline` passes.
pub fn check_running(server: &Server, deadline: Duration) -> Result<Findings, Failure> {
    let end = SystemClock.elapsed() + deadline;
    let mut findings = Findings::default();
    let short = Duration::from_secs(30);
    let mut session = server.connect()?;
    let databases = session.query_column(
        "SELECT datname FROM pg_catalog.pg_database WHERE datallowconn ORDER BY oid",
        short,
    )?;
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
        let mut session = match server.connect_to(&database) {
            Ok(session) => session,
            Err(failure) => {
                findings.unchecked.push(format!("database {database}: {}", failure.message));
                continue;
            }
        };
        check_database(&mut session, &database, end, &mut findings)?;
    }
    Ok(findings)
}

/// What is left until `end`, for one statement.
fn left(end: Duration) -> Result<Duration, Failure> {
    let left = end.saturating_sub(SystemClock.elapsed());
    if left.is_zero() {
        return Err(Failure::internal("the image could not be checked in the time given"));
    }
    Ok(left)
}

fn check_database(
    session: &mut Session,
    database: &str,
    end: Duration,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let schema = session.query_column(
        "SELECT nspname FROM pg_catalog.pg_extension e \
         JOIN pg_catalog.pg_namespace n ON n.oid = extnamespace WHERE extname = 'amcheck'",
        left(end)?,
    )?;
    let installed_here = schema.is_empty();
    let schema = schema.into_iter().next().unwrap_or_else(|| "offshoot_amcheck".to_owned());
    if installed_here {
        let sql = format!("CREATE SCHEMA {schema}; CREATE EXTENSION amcheck SCHEMA {schema}");
        if let Err(failure) = session.execute(&sql, left(end)?) {
            findings.unchecked.push(format!("database {database}: {}", failure.message));
            return Ok(());
        }
    }
    let checked = check_relations(session, database, &schema, end, findings);
    if installed_here {
        let sql = format!("DROP EXTENSION amcheck; DROP SCHEMA {schema}");
        session.execute(&sql, Duration::from_secs(60))?;
    }
    checked
}

fn check_relations(
    session: &mut Session,
    database: &str,
    schema: &str,
    end: Duration,
    findings: &mut Findings,
) -> Result<(), Failure> {
    // Relations of other sessions' temporary schemas cannot be read; unlogged ones are empty.
    let rows = session.query(
        "SELECT c.oid, c.relkind IN ('r', 'm', 't') AND coalesce(a.amname = 'heap', true), \
                c.oid::regclass::text \
         FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam \
         LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid \
         WHERE c.relpersistence = 'p' AND ((c.relkind IN ('r', 'm', 't') AND a.amname = 'heap') \
            OR (c.relkind = 'i' AND a.amname = 'btree' AND i.indisvalid AND i.indisready)) \
         ORDER BY 2 DESC, 1",
        left(end)?,
    )?;
    let heap_check = session.query(
        &format!(
            "SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n \
             ON n.oid = pronamespace WHERE proname = 'verify_heapam' AND nspname = {}",
            quote_text(schema)
        ),
        left(end)?,
    )?;
    if heap_check.is_empty() {
        findings
            .unchecked
            .push(format!("database {database}: tables (this version checks indexes only)"));
    }
    let schema = crate::session::quote_identifier(schema);
    for row in rows {
        let [Some(oid), Some(is_heap), Some(name)] = row.as_slice() else { continue };
        if is_heap == "t" && heap_check.is_empty() {
            continue;
        }
        let sql = if is_heap == "t" {
            format!(
                "SELECT 'block ' || blkno || coalesce(' item ' || offnum, '') || ': ' || msg \
                 FROM {schema}.verify_heapam({oid}, check_toast := false) LIMIT 5"
            )
        } else {
            format!("SELECT NULL FROM {schema}.bt_index_check({oid}, false)")
        };
        match session.query_column(&sql, left(end)?) {
            Ok(lines) => {
                let lines = lines.into_iter().map(|line| format!("{database}: {name}: {line}"));
                lines.for_each(|line| findings.add_damage(line));
            }
            Err(failure) => {
                left(end)?;
                findings.add_damage(format!("{database}: {name}: {}", failure.message));
            }
        }
    }
    Ok(())
}
