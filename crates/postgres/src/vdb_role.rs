//! The role that a VDB's user logs in as, and its password.
//!
//! It is no superuser unless that was asked for. It owns what superusers of the source owned
//! ([`crate::handover`]), is a member of every other role with the right to grant it, reads and writes
//! all data, ends sessions and resets statistics. It runs no programs and reads no files of the server,
//! and cannot give itself the right to.

use std::time::Duration;

use offshoot_types::Failure;
use sha2::{Digest, Sha256};

use crate::session::{Session, ensure_role_sql, quote_identifier, quote_text, quote_texts};

/// The role that a VDB's user logs in as.
pub const VDB_ROLE: &str = "offshoot";

const TIMEOUT: Duration = Duration::from_secs(30);

/// Roles of PostgreSQL that lead out of the database: to programs, files and other hosts.
const LEADING_OUT: [&str; 4] = [
    "pg_execute_server_program",
    "pg_read_server_files",
    "pg_write_server_files",
    "pg_create_subscription",
];

/// Roles of PostgreSQL that the owner of a database may well have; each exists from some version on.
const GIVEN: [&str; 7] = [
    "pg_read_all_data",
    "pg_write_all_data",
    "pg_monitor",
    "pg_signal_backend",
    "pg_signal_autovacuum_worker",
    "pg_checkpoint",
    "pg_maintain",
];

/// Settings for superusers that harm nobody but the session that changes them (from 15 on).
const SETTABLE: &str = "session_replication_role, deadlock_timeout, log_statement, \
    log_min_error_statement, log_min_duration_statement, log_duration, log_lock_waits, log_temp_files, track_activities, \
    track_counts, track_functions, track_io_timing";

/// A new password: 32 letters and digits, safe in a URI. A secret: do not log it.
pub fn new_password() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let bytes = offshoot_os::random_bytes::<32>();
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

/// Creates or alters the VDB role with this password. Only the SCRAM verifier is sent, so the password
/// appears in no log. The same password always gives the same one: a gateway logs its clients in again by it, also on what a
/// refresh has opened.
///
/// # Errors
/// `Internal` with the server's words.
pub fn admit(session: &mut Session, password: &str, superuser: bool) -> Result<(), Failure> {
    let verifier = offshoot_gateway::verifier(password, &salt_of(password));
    let mut sql = ensure_sql(Some(&verifier), superuser);
    if !superuser {
        sql += &rights_sql();
    }
    session.execute(&sql, TIMEOUT)
}

/// A password is random, so nobody learns anything from a salt that follows from it.
fn salt_of(password: &str) -> [u8; 16] {
    let mut salt = [0; 16];
    let digest = Sha256::new().chain_update("offshoot VDB role").chain_update(password).finalize();
    salt.copy_from_slice(&digest[..16]);
    salt
}

/// Statements that create the VDB role. Without a verifier it has no password, so it cannot log in over
/// TCP.
pub(crate) fn ensure_sql(verifier: Option<&str>, superuser: bool) -> String {
    let kind = if superuser { "SUPERUSER REPLICATION" } else { "NOSUPERUSER NOREPLICATION" };
    ensure_role_sql(VDB_ROLE, kind, verifier)
}

/// What the VDB role may, and what nobody but a superuser may.
fn rights_sql() -> String {
    let role = quote_identifier(VDB_ROLE);
    let (leading_out, given) = (quote_texts(LEADING_OUT), quote_texts(GIVEN));
    format!(
        "DO $do$ DECLARE \
           one record; \
           version integer := pg_catalog.current_setting('server_version_num'); \
         BEGIN \
           FOR one IN SELECT r.rolname AS role, m.rolname AS member, g.rolname AS grantor \
               FROM pg_catalog.pg_auth_members a JOIN pg_catalog.pg_authid r ON r.oid = a.roleid \
               JOIN pg_catalog.pg_authid m ON m.oid = a.member \
               LEFT JOIN pg_catalog.pg_authid g ON g.oid = a.grantor \
               WHERE NOT m.rolsuper AND (r.rolsuper OR r.rolname IN ({leading_out})) LOOP \
             IF version >= 160000 THEN \
               EXECUTE pg_catalog.format('REVOKE %I FROM %I GRANTED BY %I CASCADE', \
                 one.role, one.member, one.grantor); \
             ELSE \
               EXECUTE pg_catalog.format('REVOKE %I FROM %I', one.role, one.member); \
             END IF; \
           END LOOP; \
           IF version >= 160000 THEN \
             ALTER ROLE {role} SET createrole_self_grant = 'set, inherit'; \
           ELSE \
             /* Whoever may create roles grants membership in any that is no superuser. */ \
             DELETE FROM pg_catalog.pg_authid WHERE rolname IN ({leading_out}); \
           END IF; \
           ALTER ROLE {role} SET lo_compat_privileges = on; \
           FOR one IN SELECT rolname FROM pg_catalog.pg_roles WHERE rolname IN ({given}) LOOP \
             EXECUTE pg_catalog.format('GRANT %I TO {role}', one.rolname); \
           END LOOP; \
           FOR one IN SELECT rolname FROM pg_catalog.pg_roles \
               WHERE NOT rolsuper AND oid >= 16384 AND rolname <> {name} LOOP \
             BEGIN \
               EXECUTE pg_catalog.format('GRANT %I TO {role} WITH ADMIN OPTION', one.rolname); \
             EXCEPTION WHEN invalid_grant_operation THEN \
               NULL; /* It is a member of the VDB role, which therefore has no need of it. */ \
             END; \
           END LOOP; \
           IF version >= 150000 THEN \
             EXECUTE 'GRANT SET ON PARAMETER {SETTABLE} TO {role}'; \
           END IF; \
         END $do$;",
        name = quote_text(VDB_ROLE),
    )
}

/// The URI that opens a database of a VDB in psql as it is. It holds the password.
pub fn uri(port: u16, password: &str, database: &str) -> String {
    let mut uri = format!("postgresql://{VDB_ROLE}:{password}@127.0.0.1:{port}/");
    for byte in database.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            byte => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

/// The database a VDB's URI should name: `preferred` (the one the source was linked by) if it
/// exists, otherwise the oldest that is neither a template nor `postgres`, otherwise `postgres`.
///
/// # Errors
/// `Internal` with the server's words.
pub fn main_database(session: &mut Session, preferred: Option<&str>) -> Result<String, Failure> {
    let sql = format!(
        "SELECT datname FROM pg_catalog.pg_database \
         WHERE datallowconn AND datconnlimit <> -2 AND NOT datistemplate \
         ORDER BY datname = {} DESC, datname = 'postgres', oid LIMIT 1",
        quote_text(preferred.unwrap_or_default())
    );
    let names = session.query_column(&sql, TIMEOUT)?;
    Ok(names.into_iter().next().unwrap_or_else(|| "template1".to_owned()))
}
