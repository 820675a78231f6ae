//! What can be asked of histories: what can be opened of a dSource or VDB, by timeflows with their ranges, gaps and
//! snapshots.

use crate::core::kind::{PositionWriter, ShownPosition};
use crate::face::snapshots::{self, SnapshotView};
use crate::history::moments::History;
use crate::history::names::{self, ObjectKind};
use crate::parts::Parts;
use jiff::Timestamp;
use offshoot_domain::{
    Dsource, LogRange, OpenTimes, Owner, Pace, Snapshot, SnapshotKind, Timeflow, Vdb, openable,
};
use offshoot_types::{Failure, TimeflowId};
use std::collections::HashMap;
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

/// A range of moments that can be opened, as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRange {
    /// The moments.
    pub moments: ShownRange,
    /// How long they are expected to take; none while nothing was learned of it.
    pub times: Option<OpenTimes>,
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
    pub ranges: Vec<OpenRange>,
    /// Where no moment can be opened: between the ranges, and before the first since the timeflow before.
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

    /// How many commits of the source each of so many equal parts of a time has; `to` is not in it. None are known of
    /// what has no log of its own.
    ///
    /// # Errors
    /// `NotFound`; `DataDamaged` when the index of commits cannot be read.
    pub fn count_commits(
        &self,
        object: &str,
        from: Timestamp,
        to: Timestamp,
        parts: usize,
    ) -> Result<Vec<u64>, Failure> {
        let follower = match names::find(self.parts, object)? {
            Owner::Dsource(id) => self.parts.follower(id),
            Owner::Vdb(_) => None,
        };
        match follower {
            Some(follower) => follower.log().count_by_time(from, to, parts),
            None => Ok(vec![0; parts]),
        }
    }
}

/// The history of a dSource or VDB.
fn show(parts: &Parts, object: &str) -> Result<HistoryView, Failure> {
    let owner = names::find(parts, object)?;
    let object = names::of(parts, owner)?;
    let history = History::read(parts, owner)?;
    let (current, opens, pace) = match owner {
        Owner::Dsource(id) => of_dsource(parts, &parts.catalog.get(id)?)?,
        Owner::Vdb(id) => {
            let current = parts.catalog.get::<Vdb>(id)?.timeflow;
            let ranges = current.map(|id| (id, history.planned(openable)));
            (current, ranges.into_iter().collect(), Pace::default())
        }
    };
    let mut snapshots: Vec<Snapshot> = parts.catalog.list_of(owner)?;
    snapshots.sort_by_key(|one| (one.position.time, one.position.log, one.id));
    let snapshots = snapshots::views(parts, owner, &object, snapshots, history.writer())?;
    let mut timeflows: Vec<Timeflow> = parts.catalog.list_of(owner)?;
    timeflows.sort_by_key(|one| (one.started_at, one.id));
    let view = |timeflow: Timeflow| {
        let current = current == Some(timeflow.id);
        let ranges = opens.get(&timeflow.id).cloned().unwrap_or_default();
        let of = snapshots.iter().filter(|one| one.snapshot.timeflow == timeflow.id).cloned();
        let taken: Vec<Snapshot> = of.clone().map(|one| one.snapshot).collect();
        let (recovery_points, snapshots) =
            of.partition(|one| one.snapshot.kind == SnapshotKind::RecoveryPoint);
        let shown = |ranges: Vec<LogRange>| {
            ranges.into_iter().map(|range| ShownRange::of(range, history.writer())).collect()
        };
        let before = timeflow.parent.and_then(|parent| opens.get(&parent)?.last().copied());
        let whole: Vec<LogRange> = before.into_iter().chain(ranges.iter().copied()).collect();
        let gaps = shown(gaps(&whole));
        let open_range = |range: LogRange| OpenRange {
            times: pace.open_times(&taken, (range.from.log, range.to.log)),
            moments: ShownRange::of(range, history.writer()),
        };
        let ranges = ranges.into_iter().map(open_range).collect();
        let origin = timeflow.origin.as_ref().map(|one| history.writer().show(one.position));
        TimeflowView { timeflow, origin, current, ranges, gaps, snapshots, recovery_points }
    };
    Ok(HistoryView {
        object,
        kind: owner.into(),
        timeflows: timeflows.into_iter().map(view).collect(),
    })
}

/// The ranges of each timeflow that can be opened.
type Ranges = HashMap<TimeflowId, Vec<LogRange>>;

/// The current timeflow of a dSource, and the ranges of each that can be opened.
fn of_dsource(
    parts: &Parts,
    dsource: &Dsource,
) -> Result<(Option<TimeflowId>, Ranges, Pace), Failure> {
    let mut opens = HashMap::new();
    for timeflow in parts.catalog.list_of::<Timeflow>(dsource.id)? {
        let history = History::of_timeflow(parts, dsource, Some(timeflow.id))?;
        opens.insert(timeflow.id, history.planned(openable));
    }
    Ok((dsource.timeflow, opens, dsource.pace))
}

fn gaps(ranges: &[LogRange]) -> Vec<LogRange> {
    ranges.windows(2).map(|pair| LogRange { from: pair[0].to, to: pair[1].from }).collect()
}
