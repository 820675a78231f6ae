//! What the VDBs of one user may take in the pool, together.

use crate::core::topic::Topic;
use crate::space::Space;
use crate::space::ledger::{self, Deletion};
use offshoot_domain::{Timeflow, User, Vdb, format_size};
use offshoot_types::{DatasetId, ErrorKind, Failure, UserId};
use parking_lot::Mutex;
use std::collections::HashSet;

/// What a VDB writes when it is made, and more: with less left than that, none is.
const LEAST_BYTES: u64 = 4 << 20;

/// Who has used up what it may take, as last seen: their VDBs have a fault.
#[derive(Default)]
pub struct Exhausted {
    users: Mutex<HashSet<UserId>>,
}

/// Tells the store what users may take. What their VDBs share with others does not count, nor what is of others.
pub fn set(space: &Space) -> Result<(), Failure> {
    let users = space.catalog.all::<User>()?;
    let limited =
        |id: UserId| users.iter().any(|user| user.id == id && user.space_bytes_max.is_some());
    for vdb in space.catalog.all::<Vdb>()?.iter().filter(|vdb| !vdb.owner.is_some_and(limited)) {
        let present: Vec<DatasetId> = vdb.dataset.into_iter().collect();
        lift(space, &present)?;
    }
    for user in users.iter() {
        let used_up = is_used_up(space, user)?;
        let mut exhausted = space.exhausted.users.lock();
        let before = if used_up { !exhausted.insert(user.id) } else { exhausted.remove(&user.id) };
        drop(exhausted);
        if before || used_up {
            mark(space, user, used_up)?;
        }
    }
    Ok(())
}

fn mark(space: &Space, user: &User, used_up: bool) -> Result<(), Failure> {
    for vdb in of(space, user)? {
        match used_up {
            true => space.raise(&vdb.name, Topic::Share, &exhausted(user)),
            false => space.clear(&vdb.name, Topic::Share),
        }
    }
    Ok(())
}

fn of(space: &Space, user: &User) -> Result<Vec<Vdb>, Failure> {
    let all = space.catalog.all::<Vdb>()?;
    Ok(all.iter().filter(|vdb| vdb.owner == Some(user.id)).cloned().collect())
}

fn lift(space: &Space, present: &[DatasetId]) -> Result<(), Failure> {
    space.store.set_common_quota(present, &[], None, 0).map(drop).map_err(|error| error.failure())
}

/// Whether a user's VDBs have used up what they may take, or all but a little; their files do not grow beyond that.
fn is_used_up(space: &Space, user: &User) -> Result<bool, Failure> {
    let (mut present, mut members) = (Vec::new(), Vec::new());
    for vdb in of(space, user)? {
        present.extend(vdb.dataset);
        let timeflows = space.catalog.list_of::<Timeflow>(vdb.id)?;
        members.extend(timeflows.into_iter().filter_map(|one| one.dataset));
    }
    let limit = user.space_bytes_max.filter(|_| !present.is_empty());
    match space.store.set_common_quota(&present, &members, limit, LEAST_BYTES) {
        // One is being removed, or lacks writes: the next look has another list.
        Err(offshoot_dataset::Error::NoDataset(_) | offshoot_dataset::Error::Lost(_)) => Ok(false),
        other => other.map_err(|error| error.failure()),
    }
}

/// Refuses what would add to what a user's VDBs take, where that is used up.
pub fn check(space: &Space, user: Option<UserId>) -> Result<(), Failure> {
    let Some(user) = user.map(|user| space.catalog.find::<User>(user)).transpose()?.flatten()
    else {
        return Ok(());
    };
    if is_used_up(space, &user)? { Err(exhausted(&user)) } else { Ok(()) }
}

/// What a user's VDBs take, in bytes.
pub fn used(space: &Space, user: &User) -> Result<u64, Failure> {
    let names: Vec<String> = of(space, user)?.iter().map(|vdb| vdb.name.to_string()).collect();
    let Deletion { freed_if_deleted_bytes, .. } = ledger::deletion(space, &names)?;
    Ok(freed_if_deleted_bytes)
}

fn exhausted(user: &User) -> Failure {
    let name = &user.name;
    let limit = user.space_bytes_max.unwrap_or_default();
    Failure::new(
        ErrorKind::PoolFull,
        format!("the VDBs of '{name}' have used up the {} that they may take", format_size(limit)),
        format!(
            "delete VDBs or snapshots of it, or allow more: offshoot user set {name} --space SIZE"
        ),
    )
}
