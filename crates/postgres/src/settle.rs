//! Cuts a promoted copy's ties with its source.
//!
//! Afterwards nothing in the image connects to production or waits for anything there: subscriptions
//! are disabled, detached from their slots and without the address and password of their publisher,
//! replication slots dropped, jobs of schedulers gone. The source's logins are disabled (and remembered,
//! so that a VDB can have them back); the engine's role and the VDB role exist, and the latter owns what
//! superusers owned. Schedulers never ran in the copy: [`crate::config::adopt`] leaves their libraries
//! out. What a VDB may keep by choice is cut when it is given to its user: [`crate::secrets`].

use std::time::Duration;

use offshoot_types::Failure;

use crate::databases;
use crate::engine_role::{self, ENGINE_ROLE};
use crate::handover;
use crate::secrets::{self, Secrets};
use crate::server::Server;
use crate::session::{Session, quote_identifier, quote_text, quote_texts};
use crate::settled;
use crate::vdb_role;
use offshoot_connector::DataDir;

pub use crate::vdb_role::VDB_ROLE;

const TIMEOUT: Duration = Duration::from_secs(60);
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(600);

/// What a bootstrap superuser is called that has the name of the VDB role: it cannot be anything less.
const RENAMED: &str = "offshoot_source";

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettleReport {
    /// Roles whose login was disabled.
    pub disabled_logins: Vec<String>,
    /// Subscriptions disabled, as `database.subscription`.
    pub disabled_subscriptions: Vec<String>,
    /// Replication slots dropped.
    pub dropped_slots: Vec<String>,
    /// Databases whose scheduler's jobs were deleted.
    pub unscheduled: Vec<String>,
    /// What the user should know although the image is sound, one sentence each.
    pub warnings: Vec<String>,
}

/// Makes the engine's role, and uses it from now on.
pub(crate) fn take_engine_role(server: &Server) -> Result<(), Failure> {
    become_engine(server, &mut server.connect()?)
}

fn become_engine(server: &Server, session: &mut Session) -> Result<(), Failure> {
    session.execute(&engine_role::ensure_sql(), TIMEOUT)?;
    server.prefer_role(ENGINE_ROLE);
    Ok(())
}

/// Settles a promoted server that was started by [`crate::recovery::run`] (which runs none of the
/// source's background workers). Safe to repeat. Ends with a checkpoint.
///
/// # Errors
/// `Internal` with the server's words; `SourceRefused` when no superuser of the source may log in.
pub fn settle(server: &mut Server, dir: &dyn DataDir) -> Result<SettleReport, Failure> {
    let mut first = server.connect()?;
    settled::note(&mut first, dir)?;
    become_engine(server, &mut first)?;
    drop(first);
    let mut session = server.connect()?;
    make_vdb_role(&mut session)?;
    let mut report = SettleReport {
        disabled_logins: session.query_column(
            &format!(
                "SELECT rolname FROM pg_catalog.pg_roles WHERE {} ORDER BY rolname",
                source_logins()
            ),
            TIMEOUT,
        )?,
        disabled_subscriptions: session.query_column(
            "SELECT datname || '.' || subname FROM pg_catalog.pg_subscription \
             JOIN pg_catalog.pg_database d ON d.oid = subdbid \
             WHERE subenabled OR subslotname IS NOT NULL OR subconninfo <> '' ORDER BY 1",
            TIMEOUT,
        )?,
        warnings: prepared_transactions(&mut session)?,
        ..SettleReport::default()
    };
    let passwords = "SELECT rolname FROM pg_catalog.pg_authid WHERE rolpassword IS NOT NULL";
    let slots = "SELECT slot_name FROM pg_catalog.pg_replication_slots WHERE NOT active";
    let mut found = Secrets {
        logins: report.disabled_logins.clone(),
        passwords: session.query_column(passwords, TIMEOUT)?,
        subscriptions: report.disabled_subscriptions.clone(),
        slots: session.query_column(slots, TIMEOUT)?,
        ..Secrets::default()
    };
    report.warnings.extend(handover::hand_over_databases(&mut session)?);
    for (database, inside) in databases::in_each(server, &mut session, settle_inside)? {
        report.warnings.extend(inside.warnings);
        if inside.unscheduled {
            report.unscheduled.push(database.clone());
        }
        if inside.foreign {
            found.foreign.push(database);
        }
    }
    (found.unscheduled, found.warnings) = (report.unscheduled.clone(), report.warnings.clone());
    // Written before the logins are disabled, so that a repeated run never forgets what the first
    // one found.
    secrets::remember(dir, found)?;
    cut(&mut session)?;
    report.dropped_slots = session.query_column(
        "SELECT slot_name FROM pg_catalog.pg_replication_slots s, \
         LATERAL pg_catalog.pg_drop_replication_slot(slot_name) WHERE NOT active",
        TIMEOUT,
    )?;
    session.execute("CHECKPOINT", CHECKPOINT_TIMEOUT)?;
    Ok(report)
}

/// Roles that log in, but for those of Offshoot.
fn source_logins() -> String {
    format!("rolcanlogin AND rolname NOT IN ({})", quote_texts([VDB_ROLE, ENGINE_ROLE]))
}

fn make_vdb_role(session: &mut Session) -> Result<(), Failure> {
    let (role, renamed) = (quote_identifier(VDB_ROLE), quote_identifier(RENAMED));
    let rename = format!(
        "DO $do$ BEGIN \
           IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE oid = 10 AND rolname = {}) THEN \
             ALTER ROLE {role} RENAME TO {renamed}; \
           END IF; \
         END $do$;",
        quote_text(VDB_ROLE)
    );
    session.execute(&(rename + &vdb_role::ensure_sql(None, false)), TIMEOUT)
}

/// The catalog is changed directly: subscriptions belong to databases, and it would take a session in
/// each of them.
fn cut(session: &mut Session) -> Result<(), Failure> {
    let sql = secrets::login_sql(&source_logins(), "NOLOGIN")
        + "UPDATE pg_catalog.pg_subscription SET subenabled = false, subslotname = NULL, \
           subconninfo = '' WHERE subenabled OR subslotname IS NOT NULL OR subconninfo <> '';";
    session.execute(&sql, TIMEOUT)
}

/// What was found and done inside a database.
#[derive(Debug, Default)]
struct Inside {
    /// A scheduler's jobs were deleted.
    unscheduled: bool,
    /// It has foreign servers with an address, or passwords for them.
    foreign: bool,
    warnings: Vec<String>,
}

fn settle_inside(session: &mut Session, database: &str) -> Result<Inside, Failure> {
    let mut inside = Inside::default();
    unschedule(session, database, &mut inside)?;
    inside.warnings.extend(handover::hand_over_inside(session, database)?);
    inside.foreign = !session.query_column(secrets::FOREIGN, TIMEOUT)?.is_empty();
    Ok(inside)
}

/// Deletes the jobs of pg_cron, and of pgAgent, whose steps may hold the address and password of any
/// database.
fn unschedule(session: &mut Session, database: &str, done: &mut Inside) -> Result<(), Failure> {
    let there = "SELECT pg_catalog.to_regclass(name) \
                 FROM pg_catalog.unnest(ARRAY['cron.job', 'pgagent.pga_job']) AS name";
    for table in session.query_column(there, TIMEOUT)? {
        let delete =
            format!("WITH gone AS (DELETE FROM {table} RETURNING 1) SELECT count(*) FROM gone");
        match session.query_column(&delete, TIMEOUT) {
            Ok(count) if count == ["0"] => {}
            Ok(_) => done.unscheduled = true,
            Err(failure) => done.warnings.push(format!(
                "the jobs in {table} of database {database} could not be deleted: {}",
                failure.message
            )),
        }
    }
    Ok(())
}

fn prepared_transactions(session: &mut Session) -> Result<Vec<String>, Failure> {
    let prepared = session.query_column("SELECT gid FROM pg_catalog.pg_prepared_xacts", TIMEOUT)?;
    if prepared.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "{} prepared transaction(s) of the source are open and hold their locks: {}",
        prepared.len(),
        prepared.join(", ")
    )])
}
