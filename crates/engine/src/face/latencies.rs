//! How long servers, and the store itself, wait for files and for the device.

use crate::history::names::ObjectKind;
use crate::parts::Parts;
use offshoot_dataset::StoreLatencies;
use offshoot_delivery::RequestCounts;
use offshoot_direct::GroupStats;
use offshoot_domain::{Dsource, Vdb};
use offshoot_types::{DatasetId, Failure};

/// How long everything took that is measured, since this engine was started.
#[derive(Debug, Clone, Default)]
pub struct LatenciesView {
    /// Of each server whose files are mounted: VDBs, and staging of dSources. Since they were mounted, or taken over.
    pub files: Vec<FileLatencies>,
    /// Of the store's own work on the device.
    pub store: StoreLatencies,
}

/// How long one server has waited for its files.
#[derive(Debug, Clone)]
pub struct FileLatencies {
    /// The name of the dSource or VDB.
    pub owner: String,
    /// Which it is.
    pub kind: ObjectKind,
    /// How long its requests took.
    pub requests: RequestCounts,
    /// What it reads without asking; none: it asks.
    pub direct: Option<DirectView>,
}

/// What a server reads without asking.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectView {
    /// Blocks that it has read so, as it says itself.
    pub reads: u64,
    /// The memory of its trust group, which it shares with others.
    pub group: GroupStats,
}

pub(super) fn view(parts: &Parts) -> Result<LatenciesView, Failure> {
    let (dsources, vdbs): (Vec<Dsource>, Vec<Vdb>) = (parts.catalog.list()?, parts.catalog.list()?);
    let found = |owner: String, kind: ObjectKind, dataset: Option<DatasetId>| {
        let requests = parts.volumes.latencies(dataset?)?;
        let table = parts.volumes.table(dataset?);
        let direct = table.map(|it| DirectView { reads: it.reads(), group: it.group().stats() });
        Some(FileLatencies { owner, kind, requests, direct })
    };
    let staging =
        |one: &Dsource| found(one.name.to_string(), ObjectKind::Dsource, one.staging_dataset);
    let of_vdb = |one: &Vdb| found(one.name.to_string(), ObjectKind::Vdb, one.dataset);
    let files = dsources.iter().filter_map(staging).chain(vdbs.iter().filter_map(of_vdb)).collect();
    Ok(LatenciesView { files, store: parts.store.latencies() })
}
