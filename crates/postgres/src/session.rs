//! SQL over a server's private socket, blocking.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use offshoot_types::Failure;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// Rows of text; `None` is NULL.
pub type Rows = Vec<Vec<Option<String>>>;

/// Overrides what a role or a database of the source has set (those settings apply before the ones
/// a session asks for): libraries this host may not have, triggers, limits, and logging that would
/// record what the engine does. Damaged pages are never skipped.
pub(crate) const OVERRIDES: &[&str] = &[
    "ignore_checksum_failure=off",
    "zero_damaged_pages=off",
    "session_preload_libraries=",
    "local_preload_libraries=",
    "session_replication_role=replica",
    "role=none",
    "default_transaction_read_only=off",
    "default_transaction_isolation=read\\ committed",
    "synchronous_commit=local",
    "statement_timeout=0",
    "lock_timeout=0",
    "idle_in_transaction_session_timeout=0",
    "search_path=pg_catalog",
    "client_min_messages=error",
    "standard_conforming_strings=on",
    "log_statement=none",
    "log_min_duration_statement=-1",
    "log_min_error_statement=panic",
];

/// Why no session could be opened.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// Nobody listens (yet).
    NotListening,
    /// The server is starting up, recovering or shutting down.
    NotYet,
    /// The role does not exist or may not log in.
    RoleRefused(String),
    /// The database does not exist or takes no connections.
    DatabaseRefused(String),
    /// Anything else, in the server's words.
    Other(String),
}

impl std::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConnectError::NotListening => f.write_str("nobody listens on its socket"),
            ConnectError::NotYet => f.write_str("it takes no connections yet"),
            ConnectError::RoleRefused(text)
            | ConnectError::DatabaseRefused(text)
            | ConnectError::Other(text) => f.write_str(text),
        }
    }
}

/// One connection as a superuser. Dropping it closes it.
pub struct Session {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("closed", &self.client.is_closed()).finish_non_exhaustive()
    }
}

impl Session {
    /// Connects by the socket in `socket_dir`. Settings of the role and of the database that could
    /// interfere (preload libraries, timeouts, triggers, statement logging) are overridden.
    ///
    /// # Errors
    /// `Internal` with the server's words.
    pub fn connect(
        socket_dir: &Path,
        port: u16,
        role: &str,
        database: &str,
        timeout: Duration,
    ) -> Result<Session, Failure> {
        Session::try_connect(socket_dir, port, role, database, timeout).map_err(|error| {
            Failure::internal(format!("cannot connect to database {database} as {role}: {error}"))
        })
    }

    pub(crate) fn try_connect(
        socket_dir: &Path,
        port: u16,
        role: &str,
        database: &str,
        timeout: Duration,
    ) -> Result<Session, ConnectError> {
        let other = |error: &dyn std::fmt::Display| ConnectError::Other(error.to_string());
        let mut config = Config::new();
        let options: Vec<String> = OVERRIDES.iter().map(|item| format!("-c {item}")).collect();
        config
            .host_path(socket_dir)
            .port(port)
            .user(role)
            .dbname(database)
            .application_name("offshoot")
            .options(options.join(" "))
            .connect_timeout(timeout);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| other(&error))?;
        let connected =
            runtime.block_on(async { tokio::time::timeout(timeout, config.connect(NoTls)).await });
        let (client, connection) = match connected {
            Err(_) => return Err(ConnectError::Other("no answer in time".to_owned())),
            Ok(Err(error)) => return Err(classify(&error)),
            Ok(Ok(pair)) => pair,
        };
        runtime.spawn(async move {
            let _ = connection.await;
        });
        Ok(Session { runtime, client })
    }

    /// Runs statements (several separated by `;` run as one transaction).
    ///
    /// # Errors
    /// `Internal` with the server's words; also if `timeout` passes (the session is then useless).
    pub fn execute(&mut self, sql: &str, timeout: Duration) -> Result<(), Failure> {
        within(&self.runtime, timeout, self.client.batch_execute(sql))
    }

    /// Runs a query and returns all rows as text.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn query(&mut self, sql: &str, timeout: Duration) -> Result<Rows, Failure> {
        let messages = within(&self.runtime, timeout, self.client.simple_query(sql))?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    /// The first column of all rows, without NULLs.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn query_column(&mut self, sql: &str, timeout: Duration) -> Result<Vec<String>, Failure> {
        let rows = self.query(sql, timeout)?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
    }
}

fn within<T>(
    runtime: &tokio::runtime::Runtime,
    timeout: Duration,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    match runtime.block_on(async { tokio::time::timeout(timeout, work).await }) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            Err(Failure::internal(format!("the database refused a statement: {}", words(&error))))
        }
        Err(_) => Err(Failure::internal(format!(
            "the database did not answer a statement within {} ms",
            timeout.as_millis()
        ))),
    }
}

fn words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => match db.detail() {
            Some(detail) => format!("{} ({detail})", db.message()),
            None => db.message().to_owned(),
        },
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

fn classify(error: &tokio_postgres::Error) -> ConnectError {
    let text = words(error);
    match error.code().map(|code| code.code()) {
        Some("57P03") => ConnectError::NotYet,
        Some("28000" | "28P01") => ConnectError::RoleRefused(text),
        Some("3D000" | "55000") => ConnectError::DatabaseRefused(text),
        Some(_) => ConnectError::Other(text),
        None => {
            let io = std::error::Error::source(error)
                .and_then(|source| source.downcast_ref::<std::io::Error>())
                .map(std::io::Error::kind);
            match io {
                Some(std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused) => {
                    ConnectError::NotListening
                }
                // The postmaster closes sessions that it accepted while it was starting or
                // stopping.
                Some(
                    std::io::ErrorKind::ConnectionReset
                    | std::io::ErrorKind::BrokenPipe
                    | std::io::ErrorKind::UnexpectedEof,
                ) => ConnectError::NotYet,
                _ if error.is_closed() => ConnectError::NotYet,
                _ => ConnectError::Other(text),
            }
        }
    }
}

/// Quotes an identifier for SQL.
pub(crate) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a text for SQL (with `standard_conforming_strings`).
pub(crate) fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A list of quoted texts.
pub(crate) fn quote_texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| quote_text(text.as_ref())).collect();
    quoted.join(", ")
}

/// Statements that create a role that may log in, or make the one that is there so: no expiry, no
/// settings of its own. Without a verifier it has no password.
pub(crate) fn ensure_role_sql(role: &str, kind: &str, verifier: Option<&str>) -> String {
    let (name, role) = (quote_text(role), quote_identifier(role));
    let password = verifier.map_or("NULL".to_owned(), quote_text);
    format!(
        "DO $do$ BEGIN \
           IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {name}) THEN \
             CREATE ROLE {role}; \
           END IF; \
         END $do$; \
         ALTER ROLE {role} WITH {kind} INHERIT CREATEROLE CREATEDB LOGIN BYPASSRLS \
           CONNECTION LIMIT -1 VALID UNTIL 'infinity' PASSWORD {password}; \
         DELETE FROM pg_catalog.pg_db_role_setting WHERE setrole = \
           (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = {name});"
    )
}
