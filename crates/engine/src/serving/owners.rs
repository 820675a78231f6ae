//! Whose files servers see, and so which user of the host each server runs as.
//!
//! As root, a server runs as a user that no other server has: a VDB's user who got out of the database, and
//! even out of the cell, would be nobody on this host. The user has no name and no entry anywhere; it is a number
//! from a range that nothing else takes. Datasets keep one user for all files, so that clones share them;
//! the delivery shows them as the server's own.

use crate::ground::paths::Paths;
use offshoot_connector::Registry;
use offshoot_delivery::{Ids, Owner};
use offshoot_os::process::User;
use offshoot_types::{DatasetId, ErrorKind, Failure};

/// The first user and group of servers. Up to 2,147,352,575 these belong to nobody, by the list of ranges
/// in systemd's "Users, Groups, UIDs and GIDs on systemd Systems".
const FIRST: u32 = 1_879_048_192;
/// How many there are. Datasets that many apart would share one.
const COUNT: u32 = 65_536;

/// Whose the files of mounted datasets are.
#[derive(Debug, Clone)]
pub struct Owners {
    /// The user of files in datasets; none: the engine's own, an ordinary user, who cannot have others.
    kept: Option<Ids>,
    /// Why all servers run as that user, if they do.
    shared: Option<Failure>,
}

impl Owners {
    /// As this host allows.
    pub fn of(connectors: &Registry, paths: &Paths) -> Owners {
        let user = connectors.all().iter().find_map(|kind| kind.server_user());
        let kept = user.map(|user| Ids { uid: user.uid, gid: user.gid });
        let shared = user.and_then(|user| why_shared(user, paths));
        Owners { kept, shared }
    }

    /// Whether servers run as other users than the engine.
    pub fn others(&self) -> bool {
        self.kept.is_some()
    }

    /// Whether each server runs as a user that no other has.
    pub fn separate(&self) -> bool {
        self.kept.is_some() && self.shared.is_none()
    }

    /// Whose the files of a dataset are while it is mounted; none: as it says itself.
    pub fn owner_of(&self, dataset: DatasetId) -> Option<Owner> {
        let kept = self.kept?;
        let id = FIRST + (dataset.0 % u64::from(COUNT)) as u32;
        let shown = if self.shared.is_some() { kept } else { Ids { uid: id, gid: id } };
        Some(Owner { shown, kept })
    }

    /// What users of the engine should know.
    pub fn warning(&self) -> Option<Failure> {
        self.shared.clone()
    }
}

/// What keeps servers from having users of their own.
fn why_shared(user: &User, paths: &Paths) -> Option<Failure> {
    let shared = |why: String, hint: String| {
        let message = format!("all servers run as the user '{}': {why}", user.name);
        Failure::new(ErrorKind::HostUnprepared, message, hint)
    };
    for table in ["/proc/self/uid_map", "/proc/self/gid_map"] {
        let text = std::fs::read_to_string(table).unwrap_or_default();
        if !maps_all(&text) {
            return Some(shared(
                format!("this container has no users {FIRST} to {}", FIRST + COUNT - 1),
                "give the container these users, or run the engine outside of it".to_owned(),
            ));
        }
    }
    let dir = paths.closed_to_others()?;
    let dir = dir.display();
    Some(shared(
        format!("others cannot pass through {dir}"),
        format!("chmod o+x {dir}, then restart the engine"),
    ))
}

/// Whether a table of `user_namespaces(7)` (first inside, first outside, count) has all of the range.
fn maps_all(table: &str) -> bool {
    table.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        first <= u64::from(FIRST) && first + count >= u64::from(FIRST) + u64::from(COUNT)
    })
}

#[cfg(test)]
mod tests;
