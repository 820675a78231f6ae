//! Cuts a promoted copy's ties with its source.
//!
//! Afterwards nothing in the image connects to production or waits for anything there:
//! subscriptions are disabled and detached from their slots, replication slots dropped; the
//! source's logins are disabled (and remembered, so that a VDB can have them back); the VDB role
//! exists. Schedulers never ran in the copy: [`crate::config::adopt`] leaves their libraries out.

use std::time::Duration;

use offshoot_types::Failure;

use crate::files::write_file;
use crate::server::Server;
use crate::session::quote_text;
use crate::vdb_role::{SOURCE_LOGINS_FILE, ensure_role_sql, login_sql, remembered_logins};
use offshoot_connector::DataDir;

pub use crate::vdb_role::VDB_ROLE;

const TIMEOUT: Duration = Duration::from_secs(60);
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(600);

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettleReport {
    /// Roles whose login was disabled.
    pub disabled_logins: Vec<String>,
    /// Subscriptions disabled, as `database.subscription`.
    pub disabled_subscriptions: Vec<String>,
    /// Replication slots dropped.
    pub dropped_slots: Vec<String>,
    /// What the user should know although the image is sound, one sentence each.
    pub warnings: Vec<String>,
}

/// Settles a promoted server that was started by [`crate::recovery::run`] (which runs none of the
/// source's background workers). Safe to repeat. Ends with a checkpoint.
///
/// # Errors
/// `Internal` with the server's words; `SourceRefused` when no superuser of the source may log in.
pub fn settle(server: &mut Server, dir: &dyn DataDir) -> Result<SettleReport, Failure> {
    let mut session = server.connect()?;
    let mut report = SettleReport {
        disabled_logins: session.query_column(
            &format!(
                "SELECT rolname FROM pg_catalog.pg_roles WHERE rolcanlogin AND rolname <> {} \
                 ORDER BY rolname",
                quote_text(VDB_ROLE)
            ),
            TIMEOUT,
        )?,
        disabled_subscriptions: session.query_column(
            "SELECT datname || '.' || subname FROM pg_catalog.pg_subscription \
             JOIN pg_catalog.pg_database d ON d.oid = subdbid \
             WHERE subenabled OR subslotname IS NOT NULL ORDER BY 1",
            TIMEOUT,
        )?,
        ..SettleReport::default()
    };
    // Written before the logins are disabled, so that a repeated run never forgets what the first
    // one found.
    remember_logins(dir, &report.disabled_logins)?;
    // The catalog is changed directly: subscriptions belong to databases, and opening a session in
    // each of them (some take none) would cost more than everything else together.
    let mut sql = ensure_role_sql(None);
    sql += &login_sql(&format!("rolcanlogin AND rolname <> {}", quote_text(VDB_ROLE)), "NOLOGIN");
    sql += "UPDATE pg_catalog.pg_subscription SET subenabled = false, subslotname = NULL \
            WHERE subenabled OR subslotname IS NOT NULL;";
    session.execute(&sql, TIMEOUT)?;
    report.dropped_slots = session.query_column(
        "SELECT slot_name FROM pg_catalog.pg_replication_slots s, \
         LATERAL pg_catalog.pg_drop_replication_slot(slot_name) WHERE NOT active",
        TIMEOUT,
    )?;
    let prepared = session.query_column("SELECT gid FROM pg_catalog.pg_prepared_xacts", TIMEOUT)?;
    if !prepared.is_empty() {
        report.warnings.push(format!(
            "{} prepared transaction(s) of the source are open and hold their locks: {}",
            prepared.len(),
            prepared.join(", ")
        ));
    }
    session.execute("CHECKPOINT", CHECKPOINT_TIMEOUT)?;
    server.prefer_role(VDB_ROLE);
    Ok(report)
}

fn remember_logins(dir: &dyn DataDir, found: &[String]) -> Result<(), Failure> {
    let mut names = remembered_logins(dir)?;
    names.extend(found.iter().cloned());
    names.sort();
    names.dedup();
    let text = serde_json::to_string(&names)
        .map_err(|error| Failure::internal(format!("cannot remember the logins: {error}")))?;
    write_file(dir, SOURCE_LOGINS_FILE, &text)
}
