//! What the engine does as the pool fills up, and when there is room again.
//!
//! | left                    | what stops                                         | what continues    |
//! |-------------------------|----------------------------------------------------|-------------------|
//! | little above the reserve| links, syncs, snapshots, provisions, refreshes, …  | everything that runs |
//! | the reserve             | files of VDBs do not grow; staging is not fed      | reads, changes in place, LogSync |
//! | three quarters of it    | content of VDBs is not replaced                    | their logs, LogSync |
//! | half of it              | VDBs' logs: their servers end and wait for room    | LogSync           |
//! | a quarter of it         | LogSync waits; the source keeps its log            | deletions         |
//!
//! The store itself enforces the lower rows ([`Purpose`]); this module tells it which files matter
//! how much. Nothing here is stored: as soon as there is room, everything continues.

use crate::core::Core;
use crate::core::keys::vdb_key;
use crate::core::topic::Topic;
use crate::space::Space;
use jiff::Timestamp;
use offshoot_catalog::{Fault, Subject};
use offshoot_dataset::{Purpose, Store};
use offshoot_domain::{Dsource, ObjectName, Owner, Timeflow, Vdb};
use offshoot_os::bounded_log;
use offshoot_replication::lacking::Estimate;
use offshoot_types::{DatasetId, ErrorKind, Failure};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

/// How to fix a full pool.
const MEND: &str = "delete what is no longer needed (offshoot snapshot delete ID, offshoot vdb delete \
                    NAME), or give the pool's file system more room; what was stopped then continues";
/// Room on the device below which nothing can be written with certainty, in bytes.
const DEVICE_MIN: u64 = 4 << 20;
/// Bytes in which the log of a VDB's server counts.
const LOG_STEP_BYTES: u64 = 1 << 20;
/// How long running work waits for room.
const PATIENCE: Duration = Duration::from_secs(10);

/// How full the pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// There is room.
    Roomy,
    /// Nothing new is taken on.
    Tight,
    /// The reserve is being used.
    Full,
}

/// The last state seen of the pool's room.
#[derive(Default)]
pub struct Seen {
    /// The present level if it is not roomy, and since when.
    since: Mutex<Option<(Level, Timestamp)>>,
    /// The quotas that the store was told, by name.
    quotas: Mutex<HashMap<ObjectName, Option<u64>>>,
}

pub(crate) fn level(core: &Core) -> Level {
    let pool = core.store.pool();
    match core.store.growth_room() {
        // The largest write needs this much.
        left if left < pool.reserve() / 32 => Level::Full,
        left if left < pool.reserve() / 4 => Level::Tight,
        _ => Level::Roomy,
    }
}

/// Whether new links, snapshots and VDBs are accepted.
pub fn takes_on(core: &Core) -> bool {
    level(core) == Level::Roomy
}

/// Refuses what would make the pool hold more.
pub fn check_takes_on(core: &Core, what: &str) -> Result<(), Failure> {
    if takes_on(core) { Ok(()) } else { Err(full(core, &format!("{what} is refused"))) }
}

fn full(core: &Core, consequence: &str) -> Failure {
    let pool = core.store.pool();
    // As the pool's status has them.
    let (free, reserve) = (core.store.growth_room() >> 20, pool.reserve() >> 20);
    let message = format!(
        "the pool is full: {free} MiB are free beside its reserve of {reserve} MiB; {consequence}"
    );
    Failure::new(ErrorKind::PoolFull, message, MEND)
}

/// Bytes that what is new may take, once what was deleted is given back.
pub fn left(core: &Core) -> u64 {
    let pool = core.store.stats();
    pool.capacity.saturating_sub(pool.reserve.saturating_add(pool.live))
}

/// Refuses what another engine sends and there is no room for. `room` is what there was before any of it came.
pub fn check_fits(name: &str, lacking: Estimate, room: u64) -> Result<(), Failure> {
    if !lacking.exceeds(room) {
        return Ok(());
    }
    let how = if lacking.whole { "about" } else { "at least" };
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let message = format!(
        "'{name}' takes {how} {} MiB, and the pool that takes it in has room for {} MiB",
        mib(lacking.bytes),
        room >> 20
    );
    let hint = "delete what is no longer needed there (offshoot pool ledger), or give that pool more room; \
                then run it again";
    Err(Failure::new(ErrorKind::PoolFull, message, hint))
}

/// Whether files of servers can grow, with some margin.
pub fn can_grow(core: &Core) -> bool {
    core.store.growth_room() > core.store.pool().reserve() / 8
}

/// A wait for room, but not for ever.
#[derive(Default)]
pub struct Shortage {
    since: Option<Duration>,
}

impl Shortage {
    /// Ends the wait with `PoolFull` if it has been `short` for too long without a break.
    pub fn check(&mut self, core: &Core, short: bool, consequence: &str) -> Result<(), Failure> {
        let now = core.clock.elapsed();
        let since = *self.since.get_or_insert(now);
        if !short {
            self.since = None;
        } else if now.saturating_sub(since) >= PATIENCE {
            return Err(full(core, consequence));
        }
        Ok(())
    }
}

/// Why a server that has ended is not started yet.
pub fn waits_for_room(core: &Core) -> Failure {
    full(core, "its server has ended and is started when there is room")
}

/// Gives up some of the ballast if the device is so full that the catalog could not record what comes
/// next, perhaps a deletion.
pub fn make_way(store: &Store) {
    if store.pool().device_free() < DEVICE_MIN {
        store.pool().release_ballast();
    }
}

/// The fault of a full pool, while it is. Kept in memory: the catalog may have no room for it.
pub fn fault(space: &Space) -> Option<Fault> {
    let (level, time) = look(space)?;
    let consequence = match level {
        Level::Full => {
            "VDBs cannot grow, and nothing new is taken on; LogSync continues as long as it can"
        }
        _ => "new links, syncs, snapshots, VDBs and refreshes are refused",
    };
    let Failure { message, hint, .. } = full(space, consequence);
    let topic = Topic::Room.to_string();
    Some(Fault { subject: Subject::Pool, topic, time, message, hint })
}

/// Checks how full the pool is; logs changes.
pub fn look(space: &Space) -> Option<(Level, Timestamp)> {
    let now = level(space);
    let mut since = space.room.since.lock();
    let before = since.map_or(Level::Roomy, |(level, _)| level);
    if now != before {
        let left = space.store.pool().available(Purpose::Freeing);
        match now {
            Level::Roomy => tracing::info!(left, "the pool has room again"),
            _ if before == Level::Roomy => {
                tracing::warn!(left, ?now, "the pool runs out of room");
            }
            _ => tracing::debug!(left, ?now, "the pool is short of room"),
        }
        *since = (now != Level::Roomy)
            .then(|| (now, since.map_or_else(|| space.now(), |(_, since)| since)));
    }
    *since
}

/// The part of a VDB's quota that is left for the pool: the log of its server lies beside that. In steps, as each
/// other limit means another measurement.
fn quota_in_pool(space: &Space, vdb: &Vdb) -> Option<u64> {
    let log = bounded_log::bytes(&space.paths.log(&vdb_key(vdb.id)));
    let log = log - log % LOG_STEP_BYTES;
    vdb.policy.quota_bytes.map(|quota| quota.saturating_sub(log))
}

/// Tells the store the quotas of the policies. A VDB's also covers the states it can go back to.
pub fn set_quotas(space: &Space) -> Result<(), Failure> {
    for vdb in space.catalog.all::<Vdb>()?.iter() {
        let Some(present) = vdb.dataset else { continue };
        let mut members = Vec::new();
        if vdb.policy.quota_bytes.is_some() {
            let timeflows = space.catalog.list_of::<Timeflow>(vdb.id)?;
            members.extend(timeflows.into_iter().filter_map(|one| one.dataset));
        }
        set_quota(space, &vdb.name, quota_in_pool(space, vdb), present, &members)?;
    }
    for dsource in space.catalog.all::<Dsource>()?.iter() {
        if let (Some(log), Some(staging)) = (dsource.log_dataset, dsource.staging_dataset) {
            set_quota(space, &dsource.name, dsource.policy.quota_bytes, log, &[log, staging])?;
        }
    }
    Ok(())
}

fn set_quota(
    space: &Space,
    name: &ObjectName,
    limit: Option<u64>,
    limited: DatasetId,
    members: &[DatasetId],
) -> Result<(), Failure> {
    match space.store.set_quota(limited, members, limit) {
        // It is being removed, or it is refused anyway.
        Err(offshoot_dataset::Error::NoDataset(_) | offshoot_dataset::Error::Lost(_)) => {
            return Ok(());
        }
        other => other.map_err(|error| error.failure())?,
    }
    if limit.is_some() && space.store.quota_used_up(limited) {
        // So that a later look, without a quota, clears it.
        space.room.quotas.lock().insert(name.clone(), limit);
        space.raise(name, Topic::Quota, &quota_used_up(name));
    } else if space.room.quotas.lock().insert(name.clone(), limit) != Some(None) {
        space.clear(name, Topic::Quota);
    }
    Ok(())
}

/// Refuses what would add to an object whose quota is used up.
pub fn check_quota(core: &Core, owner: Owner) -> Result<(), Failure> {
    let (name, limited) = match owner {
        Owner::Vdb(id) => core.catalog.get::<Vdb>(id).map(|vdb| (vdb.name, vdb.dataset))?,
        Owner::Dsource(id) => {
            core.catalog.get::<Dsource>(id).map(|dsource| (dsource.name, dsource.log_dataset))?
        }
    };
    match limited {
        Some(limited) if core.store.quota_used_up(limited) => Err(quota_used_up(&name)),
        _ => Ok(()),
    }
}

fn quota_used_up(name: &str) -> Failure {
    Failure::new(
        ErrorKind::PoolFull,
        format!("'{name}' has used up its quota"),
        format!(
            "delete snapshots of it, or raise its quota: offshoot policy set {name} --quota SIZE"
        ),
    )
}
