//! What states come from.
//!
//! A dSource's moment comes from all that is before it on its timeflow. A VDB's snapshot comes from what is before it on
//! its timeflow, and from the moment that this timeflow began with. A masked image comes from nothing that is kept: each
//! is masked on its own.

use crate::core::Core;
use crate::history::moments::Resolved;
use jiff::Timestamp;
use offshoot_domain::{Dsource, DsourceState, Owner, Snapshot, Timeflow};
use offshoot_types::{Failure, LogPosition, SnapshotId, TimeflowId};

/// Timeflows that are gone through.
const TIMEFLOWS_MAX: usize = 64;

/// A part of the way to a state: a timeflow up to a place on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stage {
    owner: Owner,
    timeflow: TimeflowId,
    to: Place,
}

/// A place on a timeflow. Places of one timeflow are of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Of a dSource: up to here in the log.
    Log(LogPosition),
    /// Of a VDB, whose snapshots are taken one after the other.
    Time(Timestamp),
    /// This image alone.
    Image(SnapshotId),
}

/// The way to a state, the nearest part first.
#[derive(Debug, Clone, Default)]
pub struct Way(Vec<Stage>);

/// What two states come from.
#[derive(Debug, Clone, Default)]
pub struct Common {
    /// Whether the second comes from the first, or is the same.
    pub left: bool,
    /// Whether the first comes from the second.
    pub right: bool,
    /// Snapshots that both come from, the nearest first.
    pub snapshots: Vec<Snapshot>,
}

impl Way {
    /// To what a job opens.
    ///
    /// # Errors
    /// The catalog's.
    pub fn to(core: &Core, owner: Owner, opened: &Resolved) -> Result<Way, Failure> {
        let (mut stages, mut owner) = (Vec::new(), owner);
        let (mut snapshot, mut position) = (opened.snapshot, opened.position.log);
        let mut timeflow = opened.timeflow;
        while stages.len() < TIMEFLOWS_MAX {
            let base: Option<Snapshot> = core.catalog.find(snapshot)?;
            let base = base.as_ref();
            let Some(on) = timeflow.or(base.map(|one| one.timeflow)) else { break };
            let to = match owner {
                Owner::Dsource(_) if is_masked(core, owner)? => Place::Image(snapshot),
                Owner::Dsource(_) => Place::Log(position),
                Owner::Vdb(_) => match base {
                    Some(base) => Place::Time(base.taken_at),
                    None => break,
                },
            };
            stages.push(Stage { owner, timeflow: on, to });
            // That of a dSource begins with a copy of its source.
            let Owner::Vdb(_) = owner else { break };
            let origin = core.catalog.find::<Timeflow>(on)?.and_then(|one| one.origin);
            let Some(origin) = origin else { break };
            let Some(base) = core.catalog.find::<Snapshot>(origin.snapshot)? else { break };
            (owner, timeflow) = (base.owner, Some(base.timeflow));
            (snapshot, position) = (base.id, origin.position.log);
        }
        Ok(Way(stages))
    }

    /// What two ways have in common.
    ///
    /// # Errors
    /// The catalog's.
    pub fn common(&self, core: &Core, other: &Way) -> Result<Common, Failure> {
        let mut common = Common::default();
        for (at, mine) in self.0.iter().enumerate() {
            for (of_other, theirs) in other.0.iter().enumerate() {
                if (mine.owner, mine.timeflow) != (theirs.owner, theirs.timeflow) {
                    continue;
                }
                let is_image = |place| matches!(place, Place::Image(_));
                if is_image(mine.to) && mine.to != theirs.to {
                    continue;
                }
                common.left |= at == 0 && mine.to <= theirs.to;
                common.right |= of_other == 0 && theirs.to <= mine.to;
                let to = mine.to.min(theirs.to);
                common.snapshots.extend(before(core, Stage { to, ..*mine })?);
            }
        }
        Ok(common)
    }
}

fn is_masked(core: &Core, owner: Owner) -> Result<bool, Failure> {
    let Owner::Dsource(id) = owner else { return Ok(false) };
    let dsource: Option<Dsource> = core.catalog.find(id)?;
    Ok(dsource.is_some_and(|one| one.state == DsourceState::Masked))
}

/// The snapshots of a part of a way, the latest first.
fn before(core: &Core, stage: Stage) -> Result<Vec<Snapshot>, Failure> {
    let mut all: Vec<Snapshot> = core.catalog.list_of(stage.owner)?;
    all.retain(|one| {
        let on_way = match stage.to {
            Place::Log(position) => one.position.log <= position,
            Place::Time(time) => one.taken_at <= time,
            Place::Image(id) => one.id == id,
        };
        on_way && one.timeflow == stage.timeflow && !one.is_failed()
    });
    all.sort_by_key(|one| std::cmp::Reverse((one.position.log, one.taken_at, one.id)));
    Ok(all)
}
