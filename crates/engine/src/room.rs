//! What the engine does as the pool fills up, and when there is room again.
//!
//! | left                    | what stops                                         | what goes on      |
//! |-------------------------|----------------------------------------------------|-------------------|
//! | little above the reserve| links, syncs, snapshots, provisions, refreshes, …  | everything that runs |
//! | the reserve             | files of VDBs do not grow; staging is not fed      | reads, changes in place, LogSync |
//! | three quarters of it    | content of VDBs is not replaced                    | their logs, LogSync |
//! | half of it              | VDBs' logs: their servers end and wait for room    | LogSync           |
//! | a quarter of it         | LogSync waits; the source keeps its log            | deletions         |
//!
//! The store enforces the lower rows by itself ([`Purpose`]); it is told here which files matter how
//! much. Nothing here is remembered: as soon as there is room everything goes on.

use crate::core::{Core, vdb_key};
use crate::paths::DATA_DIR;
use jiff::Timestamp;
use offshoot_catalog::Fault;
use offshoot_dataset::{Purpose, Store};
use offshoot_domain::{Dsource, Owner, Timeflow, Vdb, VdbState};
use offshoot_fs::FileSystem;
use offshoot_postgres::server::Server;
use offshoot_types::{DatasetId, ErrorKind, Failure, VdbId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What mends a full pool.
const MEND: &str = "delete what is no longer needed (offshoot snapshot delete ID, offshoot vdb delete \
                    NAME), or give the pool's file system more room; what was stopped goes on by itself";
/// Directories of a server's data without which it cannot go on: its own, that of its control file, its
/// log, what it knows of transactions, and what it writes at each checkpoint.
const VITAL: &[&str] = &[
    "",
    "global",
    "pg_logical",
    "pg_notify",
    "pg_replslot",
    "pg_stat",
    "pg_twophase",
    "pg_wal",
    "pg_xact",
    "pg_subtrans",
    "pg_commit_ts",
    "pg_multixact/members",
    "pg_multixact/offsets",
];
/// Room on the device below which nothing can be written with certainty, in bytes.
const DEVICE_MIN: u64 = 4 << 20;
/// How often a VDB is asked to give back the room of its log.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);
/// How long that may take.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(300);
/// How long what is under way waits for room.
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

/// What was seen of the pool's room.
#[derive(Default)]
pub struct Seen {
    /// The level that is not roomy, and since when.
    since: Mutex<Option<(Level, Timestamp)>>,
    checkpoints: Mutex<HashMap<VdbId, Duration>>,
    /// The quotas that the store was told, by name.
    quotas: Mutex<HashMap<String, Option<u64>>>,
}

pub(crate) fn level(core: &Core) -> Level {
    let pool = core.store.pool();
    match core.store.growth_room() {
        // A write of the largest size asks for this much.
        left if left < pool.reserve() / 32 => Level::Full,
        left if left < pool.reserve() / 4 => Level::Tight,
        _ => Level::Roomy,
    }
}

/// Whether new links, snapshots, VDBs are taken on.
pub fn takes_on(core: &Core) -> bool {
    level(core) == Level::Roomy
}

/// Refuses what would make the pool hold more.
pub fn check_takes_on(core: &Core, what: &str) -> Result<(), Failure> {
    if takes_on(core) { Ok(()) } else { Err(full(core, &format!("{what} is refused"))) }
}

fn full(core: &Core, consequence: &str) -> Failure {
    let pool = core.store.pool();
    let (left, reserve) = (pool.available(Purpose::Freeing) >> 20, pool.reserve() >> 20);
    let message = format!(
        "the pool is full: {left} MiB are left, of which {reserve} MiB are its reserve; {consequence}"
    );
    Failure::new(ErrorKind::PoolFull, message, MEND)
}

/// Whether files of servers can grow, with something to spare.
pub fn can_grow(core: &Core) -> bool {
    core.store.growth_room() > core.store.pool().reserve() / 8
}

/// A wait that lasts as long as there is no room, and not for ever.
#[derive(Default)]
pub struct Shortage {
    since: Option<Duration>,
}

impl Shortage {
    /// Ends the wait with `PoolFull` when it has been `short` for too long without a break.
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

/// Gives up some of the ballast where the device is so full that what is to come, a deletion perhaps,
/// could not be recorded in the catalog.
pub fn make_way(store: &Store) {
    if store.pool().device_free() < DEVICE_MIN {
        store.pool().release_ballast();
    }
}

/// Tells the store which files of a server's data matter most.
pub fn favour_vital(files: &FileSystem) -> Result<(), Failure> {
    for directory in VITAL {
        let path = Path::new(DATA_DIR).join(directory);
        if files.exists(&path)? {
            let ino = files.stat(&path)?.ino;
            files.dataset().favour_directory(ino).map_err(|error| error.failure())?;
        }
    }
    Ok(())
}

/// The fault of a full pool, while it is. Kept in memory: the catalog may have no room for it.
pub fn fault(core: &Core) -> Option<Fault> {
    let (level, time) = look(core)?;
    let consequence = match level {
        Level::Full => {
            "VDBs cannot grow, and nothing new is taken on; LogSync goes on as long as it can"
        }
        _ => "new links, syncs, snapshots, VDBs and refreshes are refused",
    };
    let Failure { message, hint, .. } = full(core, consequence);
    Some(Fault { object: "pool".into(), topic: "room".into(), time, message, hint })
}

/// Looks how full the pool is; what changed is logged.
fn look(core: &Core) -> Option<(Level, Timestamp)> {
    let now = level(core);
    let mut since = core.room.since.lock();
    let before = since.map_or(Level::Roomy, |(level, _)| level);
    if now != before {
        let left = core.store.pool().available(Purpose::Freeing);
        match now {
            Level::Roomy => tracing::info!(left, "the pool has room again"),
            _ if before == Level::Roomy => {
                tracing::warn!(left, ?now, "the pool runs out of room");
            }
            _ => tracing::debug!(left, ?now, "the pool is short of room"),
        }
        *since = (now != Level::Roomy)
            .then(|| (now, since.map_or_else(|| core.now(), |(_, since)| since)));
    }
    *since
}

/// Tells the store the quotas that policies say. A VDB's covers the states it can go back to, too.
pub fn set_quotas(core: &Core) -> Result<(), Failure> {
    for vdb in core.catalog.all::<Vdb>()?.iter() {
        let Some(present) = vdb.dataset else { continue };
        let mut members = Vec::new();
        if vdb.policy.quota_bytes.is_some() {
            let timeflows = core.catalog.list_of::<Timeflow>(vdb.id)?;
            members.extend(timeflows.into_iter().filter_map(|one| one.dataset));
        }
        set_quota(core, &vdb.name, vdb.policy.quota_bytes, present, &members)?;
    }
    for dsource in core.catalog.all::<Dsource>()?.iter() {
        if let (Some(log), Some(staging)) = (dsource.log_dataset, dsource.staging_dataset) {
            set_quota(core, &dsource.name, dsource.policy.quota_bytes, log, &[log, staging])?;
        }
    }
    Ok(())
}

fn set_quota(
    core: &Core,
    name: &str,
    limit: Option<u64>,
    limited: DatasetId,
    members: &[DatasetId],
) -> Result<(), Failure> {
    match core.store.set_quota(limited, members, limit) {
        // It is being removed, or refused as it is.
        Err(offshoot_dataset::Error::NoDataset(_) | offshoot_dataset::Error::Lost(_)) => {
            return Ok(());
        }
        other => other.map_err(|error| error.failure())?,
    }
    if limit.is_some() && core.store.quota_used_up(limited) {
        core.raise(name, "quota", &quota_used_up(name));
    } else if core.room.quotas.lock().insert(name.to_owned(), limit) != Some(None) {
        core.clear(name, "quota");
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

/// Looks after a full pool: VDBs are asked to give back the room of logs they no longer need.
pub fn look_after(core: &Arc<Core>) -> Result<(), Failure> {
    let now = core.clock.elapsed();
    if look(core).is_none_or(|(level, _)| level < Level::Full) {
        return Ok(());
    }
    if !core.catalog.unsettled_jobs()?.is_empty() {
        make_way(&core.store);
    }
    for vdb in core.catalog.list::<Vdb>()? {
        let mut checkpoints = core.room.checkpoints.lock();
        let due = checkpoints.get(&vdb.id).is_none_or(|last| now >= *last + CHECKPOINT_EVERY);
        if vdb.state != VdbState::Running || !due {
            continue;
        }
        // Not again before this one has ended.
        checkpoints.insert(vdb.id, now + CHECKPOINT_TIMEOUT);
        let core = core.clone();
        let checkpoint = move || {
            if let Err(failure) = checkpoint(&core, vdb.id) {
                tracing::info!(vdb = %vdb.name, %failure, "no checkpoint in a full pool");
            }
            core.room.checkpoints.lock().insert(vdb.id, core.clock.elapsed());
        };
        let started = std::thread::Builder::new().name("checkpoint".to_owned()).spawn(checkpoint);
        if let Err(error) = started {
            tracing::warn!(%error, "no thread for a checkpoint");
        }
    }
    Ok(())
}

fn checkpoint(core: &Core, vdb: VdbId) -> Result<(), Failure> {
    let Some(server) = core.servers.get(&vdb_key(vdb)) else { return Ok(()) };
    let mut session = Server::connect(&server.lock())?;
    session.query("CHECKPOINT", CHECKPOINT_TIMEOUT).map(drop)
}
