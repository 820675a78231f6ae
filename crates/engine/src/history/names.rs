//! Names of dSources and VDBs, which share one namespace with the groups of both.

use crate::core::{Core, missing};
use offshoot_domain::{Dsource, DsourceState, Group, ObjectName, Owner, Snapshot, Vdb, VdbGroup};
use offshoot_types::{ErrorKind, Failure};

/// Which kind of object a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// A dSource.
    Dsource,
    /// A VDB.
    Vdb,
}

impl From<Owner> for ObjectKind {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Dsource(_) => ObjectKind::Dsource,
            Owner::Vdb(_) => ObjectKind::Vdb,
        }
    }
}

/// A dSource or VDB by name or id.
pub fn find(core: &Core, name: &str) -> Result<Owner, Failure> {
    let found = match name.parse() {
        Ok(id) => by_id(core, id)?,
        Err(_) => core.catalog.find_owner(name)?,
    };
    found.ok_or_else(|| {
        missing("dSource or VDB", name, "list them: offshoot dsource list; offshoot vdb list")
    })
}

/// Refuses a name that something has.
pub fn check_free(core: &Core, name: &ObjectName) -> Result<(), Failure> {
    let by = match core.catalog.find_owner(name)? {
        Some(Owner::Dsource(_)) => "a dSource",
        Some(Owner::Vdb(_)) => "a VDB",
        None if core.catalog.find_named::<Group>(name)?.is_some() => "a group",
        None if core.catalog.find_named::<VdbGroup>(name)?.is_some() => "a VDB group",
        None => return Ok(()),
    };
    let message = format!("the name '{name}' is taken by {by}");
    Err(Failure::new(ErrorKind::AlreadyExists, message, "choose another name"))
}

/// Refuses to open a moment of a dSource whose first copy is still on its way.
pub fn check_linked(core: &Core, owner: Owner) -> Result<(), Failure> {
    let Owner::Dsource(id) = owner else { return Ok(()) };
    let dsource: Dsource = core.catalog.get(id)?;
    let is_first =
        dsource.state == DsourceState::Linking && core.catalog.list_of::<Snapshot>(id)?.is_empty();
    if !is_first {
        return Ok(());
    }
    let name = &dsource.name;
    let message = format!("'{name}' is being linked: it has no moment to open as yet");
    let hint = format!("wait for it: offshoot job list --on {name} --state running");
    Err(Failure::new(ErrorKind::WrongState, message, hint))
}

fn by_id(core: &Core, id: Owner) -> Result<Option<Owner>, Failure> {
    let there = match id {
        Owner::Dsource(id) => core.catalog.find::<Dsource>(id)?.is_some(),
        Owner::Vdb(id) => core.catalog.find::<Vdb>(id)?.is_some(),
    };
    Ok(there.then_some(id))
}

/// The name of a dSource or VDB; if it is gone, its id.
pub fn of(core: &Core, owner: Owner) -> Result<String, Failure> {
    let name = match owner {
        Owner::Dsource(id) => core.catalog.find::<Dsource>(id)?.map(|one| one.name),
        Owner::Vdb(id) => core.catalog.find::<Vdb>(id)?.map(|one| one.name),
    };
    Ok(name.map_or_else(|| owner.to_string(), |name| name.to_string()))
}
