//! What can be asked of snapshots.

use crate::core::kind::{PositionWriter, PositionWriters, ShownPosition};
use crate::history::bookmarks;
use crate::history::names;
use crate::history::snapshots;
use crate::jobs::dsource::check_follows;
use crate::jobs::snapshot;
use crate::parts::Parts;
use offshoot_domain::{Dsource, Owner, Snapshot, SnapshotKind, Vdb};
use offshoot_types::{Failure, JobId, SnapshotId};
use std::collections::HashMap;
use std::sync::Arc;

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

/// Snapshots, as a user works with them.
pub struct Snapshots<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Snapshots<'_> {
    /// Takes a snapshot of a dSource or VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn take(&self, object: &str) -> Result<JobId, Failure> {
        let owner = names::find(self.parts, object)?;
        if let Owner::Dsource(id) = owner {
            check_follows(&self.parts.catalog.get(id)?)?;
        }
        snapshot::submit_take(self.parts, owner, object, SnapshotKind::Manual)
    }

    /// Snapshots of one object or of all, oldest first.
    ///
    /// # Errors
    /// `NotFound` for the object.
    pub fn list(&self, object: Option<&str>) -> Result<Vec<SnapshotView>, Failure> {
        list(self.parts, object)
    }

    /// One snapshot.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, id: SnapshotId) -> Result<SnapshotView, Failure> {
        let snapshot = snapshots::find(self.parts, id)?;
        let owner = snapshot.owner;
        let (object, writer) =
            (names::of(self.parts, owner)?, PositionWriter::of(self.parts, owner)?);
        let mut one = views(self.parts, owner, &object, vec![snapshot], &writer)?;
        one.pop().ok_or_else(|| Failure::internal("a snapshot without a view"))
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn delete(&self, id: SnapshotId) -> Result<JobId, Failure> {
        snapshot::submit_delete(self.parts, id)
    }
}

/// Snapshots of one object or of all, oldest first.
fn list(parts: &Parts, object: Option<&str>) -> Result<Vec<SnapshotView>, Failure> {
    let mut by_owner: HashMap<Owner, Vec<Snapshot>> = HashMap::new();
    let mut names: HashMap<Owner, String> = HashMap::new();
    match object {
        Some(name) => {
            let owner = names::find(parts, name)?;
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
    let (mut found, mut writers) = (Vec::new(), PositionWriters::new(parts));
    for (owner, snapshots) in by_owner {
        if let Some(name) = names.get(&owner) {
            let writer = writers.of(owner)?;
            found.extend(views(parts, owner, name, snapshots, &writer)?);
        }
    }
    found.sort_by_key(|one| (one.snapshot.taken_at, one.snapshot.id));
    Ok(found)
}

/// Snapshots of one object with its name and their bookmarks.
pub fn views(
    parts: &Parts,
    owner: Owner,
    name: &str,
    snapshots: Vec<Snapshot>,
    writer: &PositionWriter,
) -> Result<Vec<SnapshotView>, Failure> {
    let mut names = bookmarks::by_snapshot(parts, owner)?;
    let view = |snapshot: Snapshot| SnapshotView {
        object: name.to_owned(),
        position: writer.show(snapshot.position),
        bookmarks: names.remove(&snapshot.id).unwrap_or_default(),
        snapshot,
    };
    Ok(snapshots.into_iter().map(view).collect())
}
