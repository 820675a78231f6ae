//! What the engine shows of its objects.

use crate::bookmarks;
use crate::core::Core;
use crate::ledger::{self, LedgerFigures, LedgerKey};
use crate::provision::{database_key, password_key};
use jiff::Timestamp;
use offshoot_catalog::Fault;
use offshoot_dataset::Store;
use offshoot_domain::{Dsource, DsourceState, Owner, Position, Snapshot, Vdb};
use offshoot_pool::PoolStats;
use offshoot_postgres::receiver::ReceiverState;
use offshoot_postgres::vdb_role;
use offshoot_types::{DatasetId, ErrorKind, Failure};
use std::collections::HashMap;

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

/// How a dSource stands to its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowState {
    /// The first copy is being made.
    Linking,
    /// Its log is received.
    Syncing,
    /// It cannot be reached; the engine keeps trying.
    Disconnected(Failure),
    /// Paused by the user.
    Paused,
    /// Only a user can mend it.
    Failed(Failure),
    /// Being removed.
    Unlinking,
}

/// A dSource and what is known of it now.
#[derive(Debug, Clone)]
pub struct DsourceView {
    /// Its record.
    pub dsource: Dsource,
    /// How it stands to its source.
    pub state: FollowState,
    /// Up to where moments can be opened.
    pub synced_to: Option<Position>,
    /// Log the engine does not have yet, in bytes.
    pub lag_bytes: Option<u64>,
    /// Age of what the engine has, in milliseconds.
    pub lag_ms: Option<u64>,
    /// What its files would take outside the pool, in bytes.
    pub logical_bytes: u64,
    /// What it takes in the pool, in bytes.
    pub stored_bytes: u64,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<SnapshotView>,
}

/// A snapshot with the name of what it was taken of.
#[derive(Debug, Clone)]
pub struct SnapshotView {
    /// Its record.
    pub snapshot: Snapshot,
    /// The name of what it was taken of.
    pub object: String,
    /// The bookmarks that name it.
    pub bookmarks: Vec<String>,
}

/// A VDB and what is known of it now.
#[derive(Debug, Clone)]
pub struct VdbView {
    /// Its record.
    pub vdb: Vdb,
    /// Opens it with psql as it stands; holds the password.
    pub uri: String,
    /// What its files would take outside the pool, in bytes.
    pub logical_bytes: u64,
    /// What the pool would not hold without it, in bytes.
    pub unique_bytes: u64,
}

/// The pool's figures.
#[derive(Debug, Clone)]
pub struct PoolView {
    /// The store's own.
    pub stats: PoolStats,
    /// What the files of the pool directory take, in bytes; without the ballast, which is room kept free.
    pub used_bytes: u64,
    /// What all datasets would take outside the pool, in bytes.
    pub logical_bytes: u64,
}

/// The engine at a glance.
#[derive(Debug, Clone)]
pub struct EngineView {
    /// How many dSources there are.
    pub dsources: u64,
    /// How many VDBs there are.
    pub vdbs: u64,
    /// How many of them are running.
    pub vdbs_running: u64,
    /// How many jobs are at work.
    pub jobs_active: u64,
    /// When the engine was started.
    pub started_at: Timestamp,
    /// What is wrong now.
    pub faults: Vec<Fault>,
    /// Whether running VDBs outlive the engine.
    pub survival: crate::keeping::Survival,
    /// The last scrub, or the one under way.
    pub last_scrub: Option<crate::scrub::ScrubView>,
}

/// Bytes of a dataset's files; 0 while it is going.
fn logical(store: &Store, dataset: Option<DatasetId>) -> u64 {
    dataset.and_then(|id| store.dataset_logical_bytes(id).ok()).unwrap_or_default()
}

/// Snapshots of one object or of all, oldest first.
pub fn snapshots(core: &Core, object: Option<&str>) -> Result<Vec<SnapshotView>, Failure> {
    let mut by_owner: HashMap<Owner, Vec<Snapshot>> = HashMap::new();
    let mut names: HashMap<Owner, String> = HashMap::new();
    match object {
        Some(name) => {
            let owner = crate::moments::find_parent(core, name)?;
            names.insert(owner, name.to_owned());
            by_owner.insert(owner, core.catalog.list_of(owner)?);
        }
        None => {
            let (dsources, vdbs) = (core.catalog.all::<Dsource>()?, core.catalog.all::<Vdb>()?);
            names.extend(dsources.iter().map(|one| (one.id.into(), one.name.to_string())));
            names.extend(vdbs.iter().map(|one| (one.id.into(), one.name.to_string())));
            for snapshot in core.catalog.all::<Snapshot>()?.iter() {
                by_owner.entry(snapshot.owner).or_default().push(snapshot.clone());
            }
        }
    }
    let mut found = Vec::new();
    for (owner, snapshots) in by_owner {
        if let Some(name) = names.get(&owner) {
            found.extend(snapshot_views(core, owner, name, snapshots)?);
        }
    }
    found.sort_by_key(|one| (one.snapshot.taken_at, one.snapshot.id));
    Ok(found)
}

/// One snapshot with its object's name.
pub fn snapshot(core: &Core, snapshot: Snapshot) -> Result<SnapshotView, Failure> {
    let owner = snapshot.owner;
    let object = match owner {
        Owner::Dsource(id) => core.catalog.find::<Dsource>(id)?.map(|one| one.name.to_string()),
        Owner::Vdb(id) => core.catalog.find::<Vdb>(id)?.map(|one| one.name.to_string()),
    };
    let object = object.unwrap_or_else(|| owner.to_string());
    let bookmarks = bookmarks::by_snapshot(core, owner)?.remove(&snapshot.id).unwrap_or_default();
    Ok(SnapshotView { object, bookmarks, snapshot })
}

/// Snapshots of one object with its name and their bookmarks.
pub fn snapshot_views(
    core: &Core,
    owner: Owner,
    name: &str,
    snapshots: Vec<Snapshot>,
) -> Result<Vec<SnapshotView>, Failure> {
    let mut names = bookmarks::by_snapshot(core, owner)?;
    let view = |snapshot: Snapshot| SnapshotView {
        object: name.to_owned(),
        bookmarks: names.remove(&snapshot.id).unwrap_or_default(),
        snapshot,
    };
    Ok(snapshots.into_iter().map(view).collect())
}

/// dSources as they are now.
pub fn dsources(core: &Core, all: Vec<Dsource>) -> Result<Vec<DsourceView>, Failure> {
    let key = |one: &Dsource| LedgerKey::Dsource(one.id);
    let held = ledger::figures(core, &all.iter().map(key).collect())?;
    let view = |one: Dsource| {
        let held = held.get(&key(&one)).copied();
        dsource(core, one, held.unwrap_or_default())
    };
    all.into_iter().map(view).collect()
}

fn dsource(core: &Core, dsource: Dsource, held: LedgerFigures) -> Result<DsourceView, Failure> {
    let follower = core.follower(dsource.id);
    let status = follower.as_ref().and_then(|follower| follower.status());
    let state = match (dsource.state, &dsource.problem, status.as_ref().map(|s| &s.state)) {
        (DsourceState::Linking, _, _) => FollowState::Linking,
        (DsourceState::Unlinking, _, _) => FollowState::Unlinking,
        (DsourceState::Paused, _, _) => FollowState::Paused,
        (DsourceState::Failed, Some(problem), _) => FollowState::Failed(problem.clone()),
        (_, _, Some(ReceiverState::Gap(failure))) => FollowState::Failed(failure.clone()),
        (_, _, Some(ReceiverState::Retrying(failure))) => {
            FollowState::Disconnected(failure.clone())
        }
        (_, _, Some(_)) => FollowState::Syncing,
        (_, _, None) => FollowState::Failed(Failure::new(
            ErrorKind::WrongState,
            "it is not being followed",
            format!("resume it: offshoot dsource resume {}", dsource.name),
        )),
    };
    let synced_to = match &follower {
        Some(follower) => follower.indexed(),
        None => dsource.synced_to,
    };
    let list = snapshots_of(core, &dsource)?;
    Ok(DsourceView {
        state,
        synced_to,
        lag_bytes: status.as_ref().and_then(|status| status.lag_bytes),
        lag_ms: status.and_then(|status| status.lag).map(|lag| lag.as_millis() as u64),
        logical_bytes: logical(&core.store, dsource.staging_dataset)
            + logical(&core.store, dsource.log_dataset),
        stored_bytes: held.stored_bytes(),
        snapshots: list,
        dsource,
    })
}

fn snapshots_of(core: &Core, dsource: &Dsource) -> Result<Vec<SnapshotView>, Failure> {
    let mut found: Vec<Snapshot> = core.catalog.list_of(dsource.id)?;
    found.sort_by_key(|one| (one.position.lsn, one.id));
    snapshot_views(core, dsource.id.into(), &dsource.name, found)
}

/// VDBs as they are now.
pub fn vdbs(core: &Core, all: Vec<Vdb>) -> Result<Vec<VdbView>, Failure> {
    let key = |one: &Vdb| LedgerKey::Vdb(one.id);
    let unique = ledger::freed_if_deleted(core, &all.iter().map(key).collect())?;
    let view = |one: Vdb| {
        let unique = unique.get(&key(&one)).copied();
        vdb(core, one, unique.unwrap_or_default())
    };
    all.into_iter().map(view).collect()
}

fn vdb(core: &Core, vdb: Vdb, unique_bytes: u64) -> Result<VdbView, Failure> {
    let secret = |key: String| core.catalog.secret(&key);
    let uri = match (secret(password_key(vdb.id))?, secret(database_key(vdb.id))?) {
        (Some(password), Some(database)) if vdb.port != 0 => {
            vdb_role::uri(vdb.port, password.reveal(), database.reveal())
        }
        _ => String::new(),
    };
    let logical_bytes = logical(&core.store, vdb.dataset);
    Ok(VdbView { uri, logical_bytes, unique_bytes, vdb })
}

/// The pool as it is now.
pub fn pool(core: &Core) -> PoolView {
    let datasets = core.store.datasets();
    PoolView {
        stats: core.store.stats(),
        used_bytes: used_bytes(core.paths.pool()),
        logical_bytes: datasets.iter().map(|one| logical(&core.store, Some(one.id))).sum(),
    }
}

/// What the files of a directory take on disk; mounts, the ballast and what vanishes meanwhile are left out.
fn used_bytes(dir: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name() != "run" && entry.file_name() != "ballast")
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let below = if metadata.is_dir() { used_bytes(&entry.path()) } else { 0 };
            Some(metadata.blocks() * 512 + below)
        })
        .sum()
}
