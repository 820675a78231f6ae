//! Memory from which servers read without asking; see `crates/direct`.
//!
//! Who is in a trust group can read all that the group holds, by mapped memory that no permission of a database guards.
//! So a group is the VDBs of one owner on one dSource, and a masked dSource is one of its own. Where servers are not kept
//! apart by users and cells there are no groups: a server could look for the memory of others.

use crate::core::kind;
use crate::serving::Serving;
use offshoot_direct::{Budget, CLIENT, Group, Table, VARIABLE};
use offshoot_domain::Vdb;
use offshoot_os::process::Preload;
use offshoot_types::{DatasetId, Failure};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// The file name of the library.
const LIBRARY: &str = "liboffshoot_direct.so";

/// The groups that there are, and what servers load.
pub struct Direct {
    /// Of all groups; none: servers do not read directly.
    budget: Option<Arc<Budget>>,
    library: PathBuf,
    groups: Mutex<HashMap<String, Weak<Group>>>,
}

/// What an earlier engine left of a server's direct reads.
pub struct Left {
    /// The server's dataset.
    pub dataset: DatasetId,
    /// Its trust group, where it is known.
    pub group: Option<String>,
    /// Its table.
    pub table: OwnedFd,
    /// The frames of its group.
    pub frames: OwnedFd,
}

/// The trust group of a VDB.
///
/// # Errors
/// The catalog's.
pub fn group_of(serving: &Serving, vdb: &Vdb) -> Result<String, Failure> {
    let source = kind::source_of(serving, vdb.parent.owner)?;
    let source = source.map_or_else(|| vdb.id.to_string(), |source| source.id.to_string());
    Ok(match vdb.owner {
        Some(owner) => format!("{source} {owner}"),
        None => source,
    })
}

impl Direct {
    /// With so many bytes for all groups (0: servers do not read directly); `dir` is where the library goes.
    pub fn new(size: u64, dir: &Path) -> Direct {
        let budget = (size > 0).then(|| Budget::new(size));
        Direct { budget, library: dir.join(LIBRARY), groups: Mutex::default() }
    }

    /// A table for a mount of a VDB of this group; none where servers do not read directly.
    ///
    /// # Errors
    /// The system's: there is no memory, or no room for the library.
    pub fn table(&self, name: &str) -> io::Result<Option<Arc<Table>>> {
        let Some(budget) = &self.budget else { return Ok(None) };
        let group = {
            // One at a time puts the library there, too.
            let mut groups = self.groups.lock();
            self.put_library()?;
            groups.retain(|_, group| group.strong_count() > 0);
            match groups.get(name).and_then(Weak::upgrade) {
                Some(group) => group,
                None => {
                    let group = Group::create(budget)?;
                    groups.insert(name.to_owned(), Arc::downgrade(&group));
                    group
                }
            }
        };
        Table::create(&group).map(Some)
    }

    /// Empties the tables of all servers that an earlier engine started, before any of their frames is used again: what one
    /// server gives up, another may still read by its own table (D4 of `crates/direct`). A server whose table could not be
    /// emptied (an error) MUST NOT go on: it would read what was. Then no frames are used again, and the others ask for all, as they
    /// do with an engine whose servers do not read directly.
    pub fn adopt(&self, left: Vec<Left>) -> BTreeMap<DatasetId, io::Result<Arc<Table>>> {
        let budget = self.budget.clone().unwrap_or_else(|| Budget::new(0));
        let mut groups: Vec<(Option<String>, Arc<Group>)> = Vec::new();
        let mut tables = BTreeMap::new();
        for Left { dataset, group, table, frames } in left {
            let known =
                groups.iter_mut().find(|(_, known)| known.is(frames.as_fd()).unwrap_or(false));
            let adopted = match known {
                Some((name, known)) => {
                    *name = name.take().or(group);
                    Table::adopt(known, table)
                }
                None => Group::adopt(frames, &budget).and_then(|adopted| {
                    groups.push((group, adopted.clone()));
                    Table::adopt(&adopted, table)
                }),
            };
            tables.insert(dataset, adopted);
        }
        if self.budget.is_none() || tables.values().any(Result::is_err) {
            tables.retain(|_, table| table.is_err());
            return tables;
        }
        let mut named = self.groups.lock();
        for (name, group) in groups {
            if let Err(error) = group.forget() {
                tracing::debug!(%error, "memory of an earlier engine stays until it is used again");
            }
            if let Some(name) = name {
                named.insert(name, Arc::downgrade(&group));
            }
        }
        tables
    }

    /// What a server loads that is to read by this table.
    ///
    /// # Errors
    /// The system's.
    pub fn preload(&self, table: &Table) -> io::Result<Preload> {
        let frames = table.group().read_only()?;
        let descriptors = vec![Arc::new(table.as_fd().try_clone_to_owned()?), Arc::new(frames)];
        Ok(Preload { library: self.library.clone(), variable: VARIABLE, descriptors })
    }

    /// Servers that have an earlier one loaded keep it.
    fn put_library(&self) -> io::Result<()> {
        if std::fs::read(&self.library).is_ok_and(|present| present == CLIENT) {
            return Ok(());
        }
        let dir = self.library.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(dir)?;
        offshoot_os::files::replace(&self.library, 0o644, |file| {
            // Whatever the umask says: servers are other users.
            file.set_permissions(Permissions::from_mode(0o644))?;
            file.write_all(CLIENT)
        })
    }
}

#[cfg(test)]
mod tests;
