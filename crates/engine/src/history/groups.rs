//! The records of groups and of the VDBs that were made of them.

use crate::core::{Core, missing};
use offshoot_domain::{Group, Vdb, VdbGroup};
use offshoot_types::{DsourceId, ErrorKind, Failure};

/// A group of dSources by name or id.
pub fn group(core: &Core, name: &str) -> Result<Group, Failure> {
    let found = match name.parse() {
        Ok(id) => core.catalog.find::<Group>(id)?,
        Err(_) => core.catalog.find_named(name)?,
    };
    found.ok_or_else(|| missing("group", name, "list them: offshoot group list"))
}

/// A VDB group by name or id.
pub fn vdb_group(core: &Core, name: &str) -> Result<VdbGroup, Failure> {
    let found = match name.parse() {
        Ok(id) => core.catalog.find::<VdbGroup>(id)?,
        Err(_) => core.catalog.find_named(name)?,
    };
    found.ok_or_else(|| missing("VDB group", name, "list them: offshoot group list"))
}

/// The VDB group that a VDB belongs to.
pub fn group_of(core: &Core, vdb: &Vdb) -> Result<Option<VdbGroup>, Failure> {
    let groups = core.catalog.all::<VdbGroup>()?;
    Ok(groups.iter().find(|group| group.vdbs.contains(&vdb.id)).cloned())
}

/// Refuses to take a VDB out of its VDB group, which would be no whole any more.
pub fn check_alone(core: &Core, vdb: &Vdb) -> Result<(), Failure> {
    let Some(group) = group_of(core, vdb)? else { return Ok(()) };
    Err(Failure::new(
        ErrorKind::WrongState,
        format!("'{}' belongs to the VDB group '{}'", vdb.name, group.name),
        format!("delete all of it: offshoot group delete {}", group.name),
    ))
}

/// Refuses to remove a dSource that groups name.
pub fn check_no_member(core: &Core, id: DsourceId, name: &str) -> Result<(), Failure> {
    let groups = core.catalog.all::<Group>()?;
    let Some(group) = groups.iter().find(|group| group.members.contains(&id)) else {
        return Ok(());
    };
    Err(Failure::new(
        ErrorKind::WrongState,
        format!("'{name}' is a member of the group '{}'", group.name),
        format!("delete the group first, its VDBs stay: offshoot group delete {}", group.name),
    ))
}
