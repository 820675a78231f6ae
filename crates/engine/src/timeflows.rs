//! What can be opened of a dSource or VDB, as users see it: its timeflows with their ranges, gaps and
//! snapshots.

use crate::core::Core;
use crate::moments::{History, find_parent};
use crate::views::{ObjectKind, SnapshotView, snapshot_views};
use offshoot_domain::{Dsource, LogRange, Owner, Snapshot, SnapshotKind, Timeflow, Vdb, openable};
use offshoot_types::Failure;

/// The history of a dSource or VDB.
#[derive(Debug, Clone)]
pub struct HistoryView {
    /// Its name.
    pub object: String,
    /// What it is.
    pub kind: ObjectKind,
    /// Its timeflows, oldest first.
    pub timeflows: Vec<TimeflowView>,
}

/// One timeflow.
#[derive(Debug, Clone)]
pub struct TimeflowView {
    /// Its record.
    pub timeflow: Timeflow,
    /// It is the one that goes on.
    pub current: bool,
    /// The ranges in which every moment can be opened, oldest first.
    pub ranges: Vec<LogRange>,
    /// Where no moment can be opened, between the ranges.
    pub gaps: Vec<LogRange>,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<SnapshotView>,
    /// What only makes replay short, oldest first.
    pub recovery_points: Vec<SnapshotView>,
}

impl TimeflowView {
    /// A state of a VDB that was replaced and can be gone back to.
    pub fn is_kept(&self) -> bool {
        !self.current && self.timeflow.dataset.is_some()
    }
}

/// The history of a dSource or VDB.
pub fn show(core: &Core, object: &str) -> Result<HistoryView, Failure> {
    let owner = find_parent(core, object)?;
    let current = match owner {
        Owner::Dsource(id) => core.catalog.get::<Dsource>(id)?.timeflow,
        Owner::Vdb(id) => core.catalog.get::<Vdb>(id)?.timeflow,
    };
    let history = History::read(core, owner)?;
    let mut snapshots: Vec<Snapshot> = core.catalog.list_of(owner)?;
    snapshots.sort_by_key(|one| (one.position.time, one.position.lsn, one.id));
    let snapshots = snapshot_views(core, owner, object, snapshots)?;
    let mut timeflows: Vec<Timeflow> = core.catalog.list_of(owner)?;
    timeflows.sort_by_key(|one| (one.started_at, one.id));
    let view = |timeflow: Timeflow| {
        let current = current == Some(timeflow.id);
        let ranges = if current { openable(&history.view()) } else { Vec::new() };
        let of = snapshots.iter().filter(|one| one.snapshot.timeflow == timeflow.id).cloned();
        let (recovery_points, snapshots) =
            of.partition(|one| one.snapshot.kind == SnapshotKind::RecoveryPoint);
        let gaps = gaps(&ranges);
        TimeflowView { timeflow, current, ranges, gaps, snapshots, recovery_points }
    };
    Ok(HistoryView {
        object: object.to_owned(),
        kind: owner.into(),
        timeflows: timeflows.into_iter().map(view).collect(),
    })
}

fn gaps(ranges: &[LogRange]) -> Vec<LogRange> {
    ranges.windows(2).map(|pair| LogRange { from: pair[0].to, to: pair[1].from }).collect()
}
