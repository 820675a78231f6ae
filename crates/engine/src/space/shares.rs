//! What the VDBs of one user may take in the pool, together.

use crate::core::topic::Topic;
use crate::space::Space;
use crate::space::ledger::{self, Deletion};
use offshoot_domain::{Timeflow, User, Vdb, format_size};
use offshoot_types::{DatasetId, ErrorKind, Failure, UserId};
use parking_lot::Mutex;
use std::collections::HashMap;

/// What a VDB writes when it is made, and more: with less left than that, none is.
const LEAST_BYTES: u64 = 4 << 20;

/// Whether users have used up what they may take, as last seen: their VDBs have a fault then.
#[derive(Default)]
pub struct Exhausted {
    users: Mutex<HashMap<UserId, bool>>,
}

/// Tells the store what users may take. What their VDBs share with others does not count, nor what is of others.
pub fn set(space: &Space) -> Result<(), Failure> {
    let users = space.catalog.all::<User>()?;
    let limited =
        |id: UserId| users.iter().any(|user| user.id == id && user.space_bytes_max.is_some());
    for vdb in space.catalog.all::<Vdb>()?.iter().filter(|vdb| !vdb.owner.is_some_and(limited)) {
        let present: Vec<DatasetId> = vdb.dataset.into_iter().collect();
        let lifted = space.store.set_common_quota(&present, &[], None, 0);
        lifted.map_err(|error| error.failure())?;
    }
    for user in users.iter() {
        let used_up = is_used_up(space, user)?;
        // The first look clears what an earlier engine has raised.
        let before = space.exhausted.users.lock().insert(user.id, used_up);
        if used_up || before != Some(false) {
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

/// Whether a user's VDBs have used up what they may take, or all but a little; their files do not grow beyond that.
fn is_used_up(space: &Space, user: &User) -> Result<bool, Failure> {
    let Some(limit) = user.space_bytes_max else { return Ok(false) };
    let (mut present, mut members) = (Vec::new(), Vec::new());
    for vdb in of(space, user)? {
        present.extend(vdb.dataset);
        let timeflows = space.catalog.list_of::<Timeflow>(vdb.id)?;
        members.extend(timeflows.into_iter().filter_map(|one| one.dataset));
    }
    if present.is_empty() {
        return Ok(false);
    }
    match space.store.set_common_quota(&present, &members, Some(limit), LEAST_BYTES) {
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

/// What is left of a user that is removed: its VDBs are not its own any more.
pub fn forget(space: &Space, user: &User) -> Result<(), Failure> {
    space.exhausted.users.lock().remove(&user.id);
    mark(space, user, false)
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
        format!(
            "the VDBs of '{name}' have used up the {} that they may take, or all but {}",
            format_size(limit),
            format_size(LEAST_BYTES)
        ),
        format!(
            "delete VDBs or snapshots of it, or allow more: offshoot user set {name} --space SIZE"
        ),
    )
}
