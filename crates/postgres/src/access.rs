//! Who may connect: `pg_hba.conf` and `pg_ident.conf` of the servers the engine starts.
//!
//! The Unix socket is the engine's: the server asks the kernel who calls (`peer`), and lets the
//! operating-system user in that the engine runs as. The socket's directory has mode 0700 besides, and
//! no other server's cell contains it. TCP is for a VDB's users, by SCRAM password: on loopback, and by TLS from
//! the networks that may.

use offshoot_connector::DataDir;
use offshoot_domain::Exposure;
use offshoot_launcher::OWN_ACCOUNT;
use offshoot_os::process::User;
use offshoot_types::Failure;

use crate::engine_role::{ENGINE_ROLE, LOGINS};
use crate::files::write_file;
use crate::session::quote_identifier;
use crate::superuser;
use crate::vdb_role::VDB_ROLE;

const HEADER: &str = "# Written by Offshoot and rewritten whenever it starts this server.\n";
const PRIVATE_SOCKET: &str = "local all all peer map=engine\n";

/// Rules that admit only the engine, by the private socket: staging and image preparation.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn write_private(dir: &dyn DataDir) -> Result<(), Failure> {
    write(dir, &format!("{HEADER}{PRIVATE_SOCKET}host all all all reject\n"))
}

/// Rules of a VDB: the private socket, password logins on loopback, and from the networks of `exposure` those by
/// TLS and SCRAM. With `source_logins`, passwords that the source stored as MD5 are accepted on loopback as well.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn write_vdb(
    dir: &dyn DataDir,
    source_logins: bool,
    exposure: Option<&Exposure>,
) -> Result<(), Failure> {
    // The method called md5 uses SCRAM if the stored password is SCRAM.
    let method = if source_logins { "md5" } else { "scram-sha-256" };
    let mut rules = format!("{HEADER}{PRIVATE_SOCKET}");
    for address in ["127.0.0.1/32", "::1/128"] {
        rules += &format!("host all {ENGINE_ROLE} {address} reject\n");
        rules += &format!("host all {VDB_ROLE} {address} scram-sha-256\n");
        rules += &format!("host all all {address} {method}\n");
        rules += &format!("host replication all {address} {method}\n");
    }
    for network in exposure.iter().flat_map(|exposure| &exposure.allow) {
        rules += &format!("host all {ENGINE_ROLE} {network} reject\n");
        rules += &format!("hostssl all all {network} scram-sha-256\n");
    }
    write(dir, &rules)
}

fn write(dir: &dyn DataDir, rules: &str) -> Result<(), Failure> {
    write_file(dir, "pg_hba.conf", rules)?;
    write_file(dir, "pg_ident.conf", &format!("{HEADER}{}", engine_map(dir)))
}

/// The roles that the engine may log in as: its own, and on a copy that has none yet a superuser of the
/// source.
fn engine_map(dir: &dyn DataDir) -> String {
    let mut roles: Vec<String> =
        LOGINS.map(str::to_owned).into_iter().chain(superuser::candidates(dir)).collect();
    roles.retain(|role| !role.chars().any(char::is_control));
    roles.sort();
    roles.dedup();
    let callers = match User::own_is_root() {
        true => vec!["root".to_owned()],
        false => User::own_name().into_iter().chain([OWN_ACCOUNT.to_owned()]).collect(),
    };
    let mut map = String::new();
    for (caller, role) in callers.iter().flat_map(|one| roles.iter().map(move |role| (one, role))) {
        map += &format!("engine {} {}\n", quote_identifier(caller), quote_identifier(role));
    }
    map
}
