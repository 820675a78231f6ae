//! What the engine shows of its objects.

use crate::core::keys::{database_key, password_key};
use crate::core::kind::{Kind, PositionWriter, ShownPosition};
use crate::history::bookmarks;
use crate::history::names;
use crate::parts::Parts;
use crate::space::inventory::LedgerKey;
use crate::space::ledger::{self, LedgerFigures};
use jiff::Timestamp;
use offshoot_catalog::Fault;
use offshoot_connector::StreamState;
use offshoot_dataset::Store;
use offshoot_domain::{Dsource, DsourceState, Opened, Owner, Position, Snapshot, Vdb};
use offshoot_pool::PoolStats;
use offshoot_types::{DatasetId, ErrorKind, Failure};
use std::collections::HashMap;

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
    pub synced_to: Option<ShownPosition>,
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
    /// What it holds.
    pub position: ShownPosition,
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
    /// The moment it was opened at; none while it is first provisioned.
    pub moment: Option<ShownPosition>,
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
    /// How many datasets there are, known to the catalog or not.
    pub datasets: u64,
    /// How many images of them.
    pub images: u64,
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
    pub survival: crate::ground::keeping::Survival,
    /// The last scrub, or the one under way.
    pub last_scrub: Option<crate::jobs::scrub::ScrubView>,
}

/// Bytes of a dataset's files; 0 while it is going.
fn logical(store: &Store, dataset: Option<DatasetId>) -> u64 {
    dataset.and_then(|id| store.dataset_logical_bytes(id).ok()).unwrap_or_default()
}

/// Snapshots of one object or of all, oldest first.
pub fn snapshots(parts: &Parts, object: Option<&str>) -> Result<Vec<SnapshotView>, Failure> {
    let mut by_owner: HashMap<Owner, Vec<Snapshot>> = HashMap::new();
    let mut names: HashMap<Owner, String> = HashMap::new();
    match object {
        Some(name) => {
            let owner = crate::history::names::find(parts, name)?;
            names.insert(owner, name.to_owned());
            by_owner.insert(owner, parts.catalog.list_of(owner)?);
        }
        None => {
            let (dsources, vdbs) = (parts.catalog.all::<Dsource>()?, parts.catalog.all::<Vdb>()?);
            names.extend(dsources.iter().map(|one| (one.id.into(), one.name.to_string())));
            names.extend(vdbs.iter().map(|one| (one.id.into(), one.name.to_string())));
            for snapshot in parts.catalog.all::<Snapshot>()?.iter() {
                by_owner.entry(snapshot.owner).or_default().push(snapshot.clone());
            }
        }
    }
    let mut found = Vec::new();
    for (owner, snapshots) in by_owner {
        if let Some(name) = names.get(&owner) {
            found.extend(snapshot_views(parts, owner, name, snapshots)?);
        }
    }
    found.sort_by_key(|one| (one.snapshot.taken_at, one.snapshot.id));
    Ok(found)
}

/// One snapshot with its object's name.
pub fn snapshot(parts: &Parts, snapshot: Snapshot) -> Result<SnapshotView, Failure> {
    let owner = snapshot.owner;
    let object = names::of(parts, owner)?;
    let bookmarks = bookmarks::by_snapshot(parts, owner)?.remove(&snapshot.id).unwrap_or_default();
    let position = PositionWriter::of(parts, owner)?.show(snapshot.position);
    Ok(SnapshotView { object, position, bookmarks, snapshot })
}

/// Snapshots of one object with its name and their bookmarks.
pub fn snapshot_views(
    parts: &Parts,
    owner: Owner,
    name: &str,
    snapshots: Vec<Snapshot>,
) -> Result<Vec<SnapshotView>, Failure> {
    let mut names = bookmarks::by_snapshot(parts, owner)?;
    let writer = PositionWriter::of(parts, owner)?;
    let view = |snapshot: Snapshot| SnapshotView {
        object: name.to_owned(),
        position: writer.show(snapshot.position),
        bookmarks: names.remove(&snapshot.id).unwrap_or_default(),
        snapshot,
    };
    Ok(snapshots.into_iter().map(view).collect())
}

/// dSources as they are now.
pub fn dsources(parts: &Parts, all: Vec<Dsource>) -> Result<Vec<DsourceView>, Failure> {
    let key = |one: &Dsource| LedgerKey::Dsource(one.id);
    let held = ledger::figures(parts, &all.iter().map(key).collect())?;
    let view = |one: Dsource| {
        let held = held.get(&key(&one)).copied();
        dsource(parts, one, held.unwrap_or_default())
    };
    all.into_iter().map(view).collect()
}

fn dsource(parts: &Parts, dsource: Dsource, held: LedgerFigures) -> Result<DsourceView, Failure> {
    let follower = parts.follower(dsource.id);
    let status = follower.as_ref().and_then(|follower| follower.status());
    let state = match (dsource.state, &dsource.problem, status.as_ref().map(|s| &s.state)) {
        (DsourceState::Linking, _, _) => FollowState::Linking,
        (DsourceState::Unlinking, _, _) => FollowState::Unlinking,
        (DsourceState::Paused, _, _) => FollowState::Paused,
        (DsourceState::Failed, Some(problem), _) => FollowState::Failed(problem.clone()),
        (_, _, Some(StreamState::Gap(failure))) => FollowState::Failed(failure.clone()),
        (_, _, Some(StreamState::Retrying(failure))) => FollowState::Disconnected(failure.clone()),
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
    let writer = PositionWriter::of(parts, dsource.id.into())?;
    let list = snapshots_of(parts, &dsource)?;
    Ok(DsourceView {
        state,
        synced_to: synced_to.map(|position| writer.show(position)),
        lag_bytes: status.as_ref().and_then(|status| status.lag_bytes),
        lag_ms: status.and_then(|status| status.lag).map(|lag| lag.as_millis() as u64),
        logical_bytes: logical(&parts.store, dsource.staging_dataset)
            + logical(&parts.store, dsource.log_dataset),
        stored_bytes: held.stored_bytes(),
        snapshots: list,
        dsource,
    })
}

fn snapshots_of(parts: &Parts, dsource: &Dsource) -> Result<Vec<SnapshotView>, Failure> {
    let mut found: Vec<Snapshot> = parts.catalog.list_of(dsource.id)?;
    found.sort_by_key(|one| (one.position.log, one.id));
    snapshot_views(parts, dsource.id.into(), &dsource.name, found)
}

/// VDBs as they are now.
pub fn vdbs(parts: &Parts, all: Vec<Vdb>) -> Result<Vec<VdbView>, Failure> {
    let key = |one: &Vdb| LedgerKey::Vdb(one.id);
    let unique = ledger::freed_if_deleted(parts, &all.iter().map(key).collect())?;
    let view = |one: Vdb| {
        let unique = unique.get(&key(&one)).copied();
        vdb(parts, one, unique.unwrap_or_default())
    };
    all.into_iter().map(view).collect()
}

fn vdb(parts: &Parts, vdb: Vdb, unique_bytes: u64) -> Result<VdbView, Failure> {
    let secret = |key: String| parts.catalog.secret(&key);
    let uri = match (secret(password_key(vdb.id))?, secret(database_key(vdb.id))?) {
        (Some(password), Some(database)) if vdb.port != 0 => {
            Kind::of_vdb(parts, &vdb)?.connector.vdb_uri(vdb.port, &password, database.reveal())
        }
        _ => String::new(),
    };
    let logical_bytes = logical(&parts.store, vdb.dataset);
    let moment = match vdb.moment {
        Some(Opened { log, time, .. }) => {
            Some(PositionWriter::of(parts, vdb.id.into())?.show(Position { log, time }))
        }
        None => None,
    };
    Ok(VdbView { uri, moment, logical_bytes, unique_bytes, vdb })
}

/// The pool as it is now.
pub fn pool(parts: &Parts) -> PoolView {
    let datasets = parts.store.datasets();
    PoolView {
        stats: parts.store.stats(),
        used_bytes: used_bytes(parts.paths.pool()),
        logical_bytes: datasets.iter().map(|one| logical(&parts.store, Some(one.id))).sum(),
        datasets: datasets.len() as u64,
        images: parts.store.snapshots().len() as u64,
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
