//! The Unix socket in the pool directory.

use offshoot_api::rendezvous::SOCKET_FILE;
use offshoot_os::local_socket::LocalListener;
use offshoot_os::process::lookup_group;
use offshoot_types::{ErrorKind, Failure};
use std::path::{Path, PathBuf};

/// The socket of a pool, for clients of the same host. Only the engine that holds the pool's lock makes it, so no two
/// engines ever share one, and what is in its place is left from an engine that was killed.
#[derive(Debug, Clone)]
pub struct LocalSocket {
    path: PathBuf,
    group: Option<u32>,
}

impl LocalSocket {
    /// That of a pool: mode 0600, or 0660 for a group of this name.
    ///
    /// # Errors
    /// `invalid_input` for a group that is not there.
    pub fn of_pool(pool: &Path, group: Option<&str>) -> Result<LocalSocket, Failure> {
        let group = group.map(find_group).transpose()?;
        Ok(LocalSocket { path: pool.join(SOCKET_FILE), group })
    }

    pub(crate) fn bind(&self) -> Result<LocalListener, Failure> {
        let mode = if self.group.is_some() { 0o660 } else { 0o600 };
        LocalListener::bind(&self.path, mode, self.group).map_err(|error| {
            let hint = match (error.kind(), self.group) {
                (std::io::ErrorKind::PermissionDenied, Some(_)) => {
                    "only root and members of the group can give the socket to it (--socket-group)"
                }
                _ => "run the engine as the user who owns the pool directory",
            };
            Failure::new(
                ErrorKind::HostUnprepared,
                format!("cannot listen on the socket {}: {error}", self.path.display()),
                hint,
            )
        })
    }
}

fn find_group(name: &str) -> Result<u32, Failure> {
    let number = name.parse::<u32>().ok();
    match (number, lookup_group(name)) {
        (_, Ok(Some(group))) | (Some(group), Ok(None)) => Ok(group),
        (None, Ok(None)) => Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("there is no group '{name}' on this host"),
            "make it with groupadd, or name another one with --socket-group",
        )),
        (_, Err(error)) => Err(Failure::new(
            ErrorKind::HostUnprepared,
            format!("the groups of this host cannot be read: {error}"),
            "name the group by its number",
        )),
    }
}
