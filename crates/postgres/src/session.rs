//! SQL over a server's private socket, blocking.

use std::path::Path;
use std::time::Duration;

use offshoot_types::Failure;

/// One connection as a superuser. Dropping it closes it.
pub struct Session {}

/// Rows of text; `None` is NULL.
pub type Rows = Vec<Vec<Option<String>>>;

impl Session {
    /// Connects by the socket in `socket_dir`. Settings of the role and of the database that could
    /// hinder (preload libraries, timeouts, triggers, statement logging) are overridden.
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
        let _ = (socket_dir, port, role, database, timeout);
        todo!()
    }

    /// Runs statements (several separated by `;` run as one transaction).
    ///
    /// # Errors
    /// `Internal` with the server's words; also when `timeout` passes (the session is then dead).
    pub fn execute(&mut self, sql: &str, timeout: Duration) -> Result<(), Failure> {
        let _ = (sql, timeout);
        todo!()
    }

    /// Runs a query and returns all rows as text.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn query(&mut self, sql: &str, timeout: Duration) -> Result<Rows, Failure> {
        let _ = (sql, timeout);
        todo!()
    }
}
