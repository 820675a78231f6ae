//! What holds blocks: every object of the catalog with the states of the store that it comprises.

use offshoot_catalog::Catalog;
use offshoot_dataset::{Holding, StateId, Store};
use offshoot_domain::{Dsource, Owner, Snapshot, Timeflow, Vdb};
use offshoot_types::{DatasetId, DsourceId, Failure, SnapshotId, VdbId};
use std::collections::{BTreeMap, HashMap};

/// What an entry of the ledger is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LedgerKey {
    /// A dSource.
    Dsource(DsourceId),
    /// A VDB.
    Vdb(VdbId),
    /// A snapshot.
    Snapshot(SnapshotId),
}

impl From<Owner> for LedgerKey {
    fn from(owner: Owner) -> LedgerKey {
        match owner {
            Owner::Dsource(id) => LedgerKey::Dsource(id),
            Owner::Vdb(id) => LedgerKey::Vdb(id),
        }
    }
}

/// What holds a damaged block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHolder {
    /// The kind of object; none if it belongs to no object of the catalog.
    pub key: Option<LedgerKey>,
    /// Its name; a snapshot's id.
    pub object: String,
    /// For a snapshot, the name of what it was taken of.
    pub of: Option<String>,
    /// The file in it, with the first byte affected and how many; none: its names and inodes.
    pub file: Option<offshoot_dataset::HeldFile>,
}

impl BlockHolder {
    pub(super) fn describe(&self) -> String {
        let object = match (&self.key, &self.of) {
            (Some(LedgerKey::Dsource(_)), _) => format!("dSource {}", self.object),
            (Some(LedgerKey::Vdb(_)), _) => format!("VDB {}", self.object),
            (_, Some(of)) => format!("{} of {of}", self.object),
            (_, None) => self.object.clone(),
        };
        match &self.file {
            Some(file) => format!("{object}, {} at byte {}", file.path, file.offset),
            None => format!("{object}, names and inodes"),
        }
    }
}

/// An object with what it comprises.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) key: LedgerKey,
    pub(super) name: String,
    pub(super) of: Option<String>,
    pub(super) present: Holding,
    pub(super) past: Holding,
}

impl Object {
    pub(super) fn whole(&self) -> Holding {
        let mut whole = self.present.clone();
        whole.extend(&self.past);
        whole
    }
}

/// The owner of each dataset and snapshot of the store.
pub fn owners(catalog: &Catalog) -> Result<HashMap<StateId, BlockHolder>, Failure> {
    let mut owners = HashMap::new();
    // Snapshots come last: they also belong to an object's past.
    for object in inventory(catalog)? {
        let whole = object.whole();
        let (key, of) = (Some(object.key), object.of.clone());
        let holder = BlockHolder { key, object: object.name.clone(), of, file: None };
        let datasets = whole.datasets.into_iter().map(StateId::Dataset);
        let snapshots = whole.snapshots.into_iter().map(StateId::Snapshot);
        owners.extend(datasets.chain(snapshots).map(|state| (state, holder.clone())));
    }
    Ok(owners)
}

/// All dSources and VDBs by name, then all snapshots, oldest first.
pub(super) fn inventory(catalog: &Catalog) -> Result<Vec<Object>, Failure> {
    let mut named: BTreeMap<Owner, Object> = BTreeMap::new();
    for dsource in catalog.all::<Dsource>()?.iter() {
        let present = datasets(dsource.staging_dataset);
        let past = datasets(dsource.log_dataset);
        let (key, name) = (LedgerKey::Dsource(dsource.id), dsource.name.to_string());
        named.insert(dsource.id.into(), Object { key, name, of: None, present, past });
    }
    for vdb in catalog.all::<Vdb>()?.iter() {
        let (present, past) = (datasets(vdb.dataset), Holding::default());
        let (key, name) = (LedgerKey::Vdb(vdb.id), vdb.name.to_string());
        named.insert(vdb.id.into(), Object { key, name, of: None, present, past });
    }
    for timeflow in catalog.all::<Timeflow>()?.iter() {
        let Some(owner) = named.get_mut(&timeflow.owner) else { continue };
        let old = timeflow.dataset.filter(|id| !owner.present.datasets.contains(id));
        owner.past.extend(&datasets(old));
        owner.past.extend(&datasets(timeflow.log_dataset));
    }
    let mut snapshots = Vec::new();
    let mut images: HashMap<Owner, Vec<SnapshotId>> = HashMap::new();
    for snapshot in catalog.all::<Snapshot>()?.iter() {
        let mut present = Holding { snapshots: vec![snapshot.id], ..Holding::default() };
        present.snapshots.extend(snapshot.ready_image().filter(|image| *image != snapshot.id));
        images.entry(snapshot.owner).or_default().extend(&present.snapshots);
        snapshots.push(Object {
            key: LedgerKey::Snapshot(snapshot.id),
            name: snapshot.id.to_string(),
            of: named.get(&snapshot.owner).map(|owner| owner.name.clone()),
            present,
            past: Holding::default(),
        });
    }
    for (owner, snapshots) in images {
        let held = Holding { snapshots, ..Holding::default() };
        named.entry(owner).and_modify(|owner| owner.past.extend(&held));
    }
    let mut objects: Vec<Object> = named.into_values().collect();
    objects.sort_by(|a, b| a.name.cmp(&b.name));
    objects.extend(snapshots);
    Ok(objects)
}

fn datasets(of: Option<offshoot_types::DatasetId>) -> Holding {
    Holding { datasets: of.into_iter().collect(), ..Holding::default() }
}

/// Bytes of a dataset's files; 0 while it is going.
pub fn logical_bytes(store: &Store, dataset: Option<DatasetId>) -> u64 {
    dataset.and_then(|id| store.dataset_logical_bytes(id).ok()).unwrap_or_default()
}
