//! The VDB's own superuser and password.

use offshoot_types::Failure;

use crate::data_dir::DataDir;
use crate::server::Server;

/// A new password: 32 letters and digits, safe in a URI. A secret: do not log it.
pub fn new_password() -> String {
    todo!()
}

/// Creates or alters the VDB role (superuser, may log in, no expiry, no own settings) with this
/// password. Only the SCRAM verifier is sent, so the password appears in no log.
///
/// # Errors
/// `Internal` with the server's words.
pub fn set_password(server: &Server, password: &str) -> Result<(), Failure> {
    let _ = (server, password);
    todo!()
}

/// Lets the source's roles log in again that settling disabled.
///
/// # Errors
/// `Internal` with the server's words.
pub fn restore_source_logins(server: &Server, dir: &dyn DataDir) -> Result<(), Failure> {
    let _ = (server, dir);
    todo!()
}

/// The URI that opens a database of a VDB with psql as it stands. Holds the password.
pub fn uri(port: u16, password: &str, database: &str) -> String {
    let _ = (port, password, database);
    todo!()
}

/// The database a VDB's URI should name: the largest that users may connect to and that is no
/// template, `postgres` when there is no other.
///
/// # Errors
/// `Internal` with the server's words.
pub fn main_database(server: &Server) -> Result<String, Failure> {
    let _ = server;
    todo!()
}
