//! The VDB's own superuser and password.

use std::time::Duration;

use offshoot_types::{ErrorKind, Failure};

use crate::session::{Session, quote_identifier, quote_text};
use offshoot_connector::DataDir;

/// The superuser role of a VDB.
pub const VDB_ROLE: &str = "offshoot";

/// File in the data directory that remembers which roles of the source could log in (JSON list).
pub(crate) const SOURCE_LOGINS_FILE: &str = "offshoot.source_logins.json";

const TIMEOUT: Duration = Duration::from_secs(30);

/// A new password: 32 letters and digits, safe in a URI. A secret: do not log it.
pub fn new_password() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let bytes = offshoot_os::random_bytes::<32>();
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

/// Creates or alters the VDB role (superuser, may log in, no expiry, no own settings) with this
/// password. Only the SCRAM verifier is sent, so the password appears in no log.
///
/// # Errors
/// `Internal` with the server's words.
pub fn set_password(session: &mut Session, password: &str) -> Result<(), Failure> {
    let verifier = postgres_protocol::password::scram_sha_256(password.as_bytes());
    session.execute(&ensure_role_sql(Some(&verifier)), TIMEOUT)
}

/// Statements that create the VDB role as it must be. Without a verifier it has no password, so it
/// cannot log in over TCP.
pub(crate) fn ensure_role_sql(verifier: Option<&str>) -> String {
    let role = quote_identifier(VDB_ROLE);
    let name = quote_text(VDB_ROLE);
    let password = verifier.map_or("NULL".to_owned(), quote_text);
    format!(
        "DO $do$ BEGIN \
           IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {name}) THEN \
             CREATE ROLE {role}; \
           END IF; \
         END $do$; \
         ALTER ROLE {role} WITH SUPERUSER INHERIT CREATEROLE CREATEDB LOGIN REPLICATION BYPASSRLS \
           CONNECTION LIMIT -1 VALID UNTIL 'infinity' PASSWORD {password}; \
         DELETE FROM pg_catalog.pg_db_role_setting WHERE setrole = \
           (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = {name});"
    )
}

/// Re-enables the logins of the source's roles that settling disabled.
///
/// # Errors
/// `Internal` with the server's words.
pub fn restore_source_logins(session: &mut Session, dir: &dyn DataDir) -> Result<(), Failure> {
    let names = remembered_logins(dir)?;
    if names.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = names.iter().map(|name| quote_text(name)).collect();
    session.execute(&login_sql(&format!("rolname IN ({})", list.join(", ")), "LOGIN"), TIMEOUT)
}

/// Statements that give or take the right to log in to or from the roles of a condition.
pub(crate) fn login_sql(condition: &str, attribute: &str) -> String {
    format!(
        "DO $do$ DECLARE name text; BEGIN \
           FOR name IN SELECT rolname FROM pg_catalog.pg_roles WHERE {condition} LOOP \
             EXECUTE pg_catalog.format('ALTER ROLE %I {attribute}', name); \
           END LOOP; \
         END $do$;"
    )
}

/// The roles that could log in when settling ran; none if it has not run.
pub(crate) fn remembered_logins(dir: &dyn DataDir) -> Result<Vec<String>, Failure> {
    let broken = |error: &dyn std::fmt::Display| {
        Failure::new(
            ErrorKind::DataDamaged,
            format!("{SOURCE_LOGINS_FILE} cannot be read: {error}"),
            "provision again from the dSource",
        )
    };
    match dir.read(SOURCE_LOGINS_FILE) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| broken(&error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(broken(&error)),
    }
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
        "SELECT datname FROM pg_catalog.pg_database WHERE datallowconn AND NOT datistemplate \
         ORDER BY datname = {} DESC, datname = 'postgres', oid LIMIT 1",
        quote_text(preferred.unwrap_or_default())
    );
    let names = session.query_column(&sql, TIMEOUT)?;
    Ok(names.into_iter().next().unwrap_or_else(|| "template1".to_owned()))
}
