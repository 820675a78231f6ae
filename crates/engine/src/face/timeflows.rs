//! What can be asked of histories: what can be opened of a dSource or VDB, by timeflows with their ranges, gaps and
//! snapshots.

use crate::core::kind::{PositionWriter, ShownPosition};
use crate::face::snapshots::{self, SnapshotView};
use crate::history::moments::History;
use crate::history::names::{self, ObjectKind};
use crate::parts::Parts;
use offshoot_domain::{Dsource, LogRange, Owner, Snapshot, SnapshotKind, Timeflow, Vdb, openable};
use offshoot_types::Failure;
use std::sync::Arc;

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

/// A range of moments as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownRange {
    /// Its first moment.
    pub from: ShownPosition,
    /// Its last moment.
    pub to: ShownPosition,
}

impl ShownRange {
    fn of(range: LogRange, writer: &PositionWriter) -> ShownRange {
        ShownRange { from: writer.show(range.from), to: writer.show(range.to) }
    }
}

/// One timeflow.
#[derive(Debug, Clone)]
pub struct TimeflowView {
    /// Its record.
    pub timeflow: Timeflow,
    /// Where it branched off.
    pub origin: Option<ShownPosition>,
    /// It is the current one.
    pub current: bool,
    /// The ranges in which every moment can be opened, oldest first.
    pub ranges: Vec<ShownRange>,
    /// Where no moment can be opened, between the ranges.
    pub gaps: Vec<ShownRange>,
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

/// Histories, as a user works with them.
pub struct Timeflows<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Timeflows<'_> {
    /// What can be opened of a dSource or VDB.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, object: &str) -> Result<HistoryView, Failure> {
        show(self.parts, object)
    }
}

/// The history of a dSource or VDB.
fn show(parts: &Parts, object: &str) -> Result<HistoryView, Failure> {
    let owner = names::find(parts, object)?;
    let current = match owner {
        Owner::Dsource(id) => parts.catalog.get::<Dsource>(id)?.timeflow,
        Owner::Vdb(id) => parts.catalog.get::<Vdb>(id)?.timeflow,
    };
    let history = History::read(parts, owner)?;
    let mut snapshots: Vec<Snapshot> = parts.catalog.list_of(owner)?;
    snapshots.sort_by_key(|one| (one.position.time, one.position.log, one.id));
    let snapshots = snapshots::views(parts, owner, object, snapshots, history.writer())?;
    let mut timeflows: Vec<Timeflow> = parts.catalog.list_of(owner)?;
    timeflows.sort_by_key(|one| (one.started_at, one.id));
    let view = |timeflow: Timeflow| {
        let current = current == Some(timeflow.id);
        let ranges = if current { history.planned(openable) } else { Vec::new() };
        let of = snapshots.iter().filter(|one| one.snapshot.timeflow == timeflow.id).cloned();
        let (recovery_points, snapshots) =
            of.partition(|one| one.snapshot.kind == SnapshotKind::RecoveryPoint);
        let shown = |ranges: Vec<LogRange>| {
            ranges.into_iter().map(|range| ShownRange::of(range, history.writer())).collect()
        };
        let gaps = shown(gaps(&ranges));
        let ranges = shown(ranges);
        let origin = timeflow.origin.as_ref().map(|one| history.writer().show(one.position));
        TimeflowView { timeflow, origin, current, ranges, gaps, snapshots, recovery_points }
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
