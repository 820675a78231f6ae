//! What a crash left in the store that the catalog does not know.
//!
//! A job first clones and then records the clone; a crash in between leaves a dataset that nobody
//! knows. So once no job is open, everything the catalog does not name is removed. A catalog that
//! names nothing while the store is full is not trusted: that is a lost catalog, not a crash.

use crate::parts::Parts;
use offshoot_domain::{Dsource, Incoming, Snapshot, Timeflow, Vdb};
use offshoot_types::{DatasetId, ErrorKind, Failure, SnapshotId};
use std::collections::HashSet;

/// Refuses a catalog that cannot belong to the store.
///
/// # Errors
/// `DataDamaged` when the store holds data and the catalog knows none of it.
pub fn check_catalog(parts: &Parts) -> Result<(), Failure> {
    let (datasets, snapshots) = known(parts)?;
    let nothing_known = datasets.is_empty() && snapshots.is_empty();
    let jobs = parts.catalog.jobs(1)?;
    if nothing_known && jobs.is_empty() && !parts.store.datasets().is_empty() {
        return Err(Failure::new(
            ErrorKind::DataDamaged,
            "the pool holds datasets, but its catalog.db is empty",
            "put the pool's catalog.db back from a backup",
        ));
    }
    Ok(())
}

/// Removes what the catalog does not name. Only while no job is open.
pub fn remove(parts: &Parts) -> Result<(), Failure> {
    let (datasets, snapshots) = known(parts)?;
    for stray in parts.store.datasets().iter().filter(|one| !datasets.contains(&one.id)) {
        tracing::info!(dataset = %stray.id, "removing what a crash left");
        parts.delete_dataset(stray.id)?;
    }
    for stray in parts.store.snapshots().iter().filter(|one| !snapshots.contains(&one.id)) {
        tracing::info!(snapshot = %stray.id, "removing what a crash left");
        parts.delete_image(stray.id)?;
    }
    Ok(())
}

fn known(parts: &Parts) -> Result<(HashSet<DatasetId>, HashSet<SnapshotId>), Failure> {
    let mut datasets = HashSet::new();
    for dsource in parts.catalog.list::<Dsource>()? {
        datasets.extend(dsource.log_dataset);
        datasets.extend(dsource.staging_dataset);
    }
    datasets.extend(parts.catalog.list::<Vdb>()?.iter().filter_map(|vdb| vdb.dataset));
    datasets.extend(parts.catalog.list::<Incoming>()?.iter().map(|one| one.dataset));
    for timeflow in parts.catalog.list::<Timeflow>()? {
        datasets.extend(timeflow.dataset);
        datasets.extend(timeflow.log_dataset);
    }
    let mut snapshots = HashSet::new();
    for snapshot in parts.catalog.list::<Snapshot>()? {
        snapshots.insert(snapshot.id);
        snapshots.extend(snapshot.ready_image());
    }
    Ok((datasets, snapshots))
}
