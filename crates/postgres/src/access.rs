//! Who may connect: `pg_hba.conf` and `pg_ident.conf` of the servers the engine starts.
//!
//! The Unix socket is in a directory of mode 0700 that belongs to the server's operating-system
//! user, so only that user and root reach it: `trust` there admits nobody who could not read the
//! data files anyway. TCP is for a VDB's users, on loopback, by SCRAM password.

use offshoot_types::Failure;

use crate::files::write_file;
use offshoot_connector::DataDir;

const HEADER: &str = "# Written by Offshoot and rewritten whenever it starts this server.\n";
const PRIVATE_SOCKET: &str = "local all all trust\n";

/// Rules that admit only the engine, by the private socket: staging and image preparation.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn write_private(dir: &dyn DataDir) -> Result<(), Failure> {
    write(dir, &format!("{HEADER}{PRIVATE_SOCKET}host all all all reject\n"))
}

/// Rules of a VDB: the private socket, and password logins on loopback. With `source_logins`,
/// passwords that the source stored as MD5 are accepted as well.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn write_vdb(dir: &dyn DataDir, source_logins: bool) -> Result<(), Failure> {
    // The method called md5 uses SCRAM if the stored password is SCRAM.
    let method = if source_logins { "md5" } else { "scram-sha-256" };
    let mut rules = format!("{HEADER}{PRIVATE_SOCKET}");
    for address in ["127.0.0.1/32", "::1/128"] {
        rules += &format!("host all {} {address} scram-sha-256\n", crate::vdb_role::VDB_ROLE);
        rules += &format!("host all all {address} {method}\n");
        rules += &format!("host replication all {address} {method}\n");
    }
    write(dir, &rules)
}

fn write(dir: &dyn DataDir, rules: &str) -> Result<(), Failure> {
    write_file(dir, "pg_hba.conf", rules)?;
    write_file(dir, "pg_ident.conf", HEADER)
}
