//! Who may connect: `pg_hba.conf` and `pg_ident.conf` of the servers the engine starts.
//!
//! The Unix socket lies in a directory of mode 0700 that belongs to the server's operating-system
//! user, so only that user and root reach it: there `trust` lets nobody in who could not read the
//! data files anyway. TCP is for a VDB's users, on loopback, by SCRAM password.

use offshoot_types::Failure;

use crate::data_dir::DataDir;

/// Rules that let in only the engine, by the private socket: staging and image preparation.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn write_private(dir: &dyn DataDir) -> Result<(), Failure> {
    let _ = dir;
    todo!()
}

/// Rules of a VDB: the private socket, and password logins on loopback. With `source_logins`,
/// passwords that the source stored as MD5 are accepted as well.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn write_vdb(dir: &dyn DataDir, source_logins: bool) -> Result<(), Failure> {
    let _ = (dir, source_logins);
    todo!()
}
