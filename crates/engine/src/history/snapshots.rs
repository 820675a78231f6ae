//! The records of snapshots: taken, found, deleted.

use crate::core::Core;
use crate::core::keys::vdb_key;
use crate::core::topic::Topic;
use crate::following::Following;
use crate::history::moments::position_at;
use crate::serving::Serving;
use crate::space::losses;
use offshoot_domain::{
    Dsource, Owner, Pace, Position, Readiness, Snapshot, SnapshotKind, Timeflow, Vdb,
};
use offshoot_types::{DsourceId, ErrorKind, Failure, LogPosition, SnapshotId, VdbId};

/// A snapshot by id.
pub fn find(core: &Core, id: SnapshotId) -> Result<Snapshot, Failure> {
    core.catalog.find::<Snapshot>(id)?.ok_or_else(|| {
        let hint = "list them: offshoot snapshot list";
        Failure::new(ErrorKind::NotFound, format!("there is no {id}"), hint)
    })
}

/// Takes a snapshot of staging as it is, without waiting for anything.
pub fn take_of_dsource(
    core: &Following,
    dsource: &Dsource,
    kind: SnapshotKind,
) -> Result<SnapshotId, Failure> {
    let (Some(staging), Some(timeflow)) = (dsource.staging_dataset, dsource.timeflow) else {
        return Err(Failure::internal(format!("'{}' has no staging", dsource.name)));
    };
    let follower = core.need_follower(dsource)?;
    // Read before the image is fixed: replay of the image starts here or later.
    let replay_from = follower.replay_begins()?;
    let id = core.store.snapshot(staging).map_err(|e| e.failure())?;
    // Asked after it is fixed: no page in the image is newer than this.
    let state = match follower.replay_state() {
        Ok(state) => state,
        Err(failure) => {
            core.delete_image(id)?;
            return Err(failure);
        }
    };
    let fallback = state.last_commit.unwrap_or_else(|| core.now());
    record(
        core,
        Snapshot {
            id,
            owner: dsource.id.into(),
            timeflow,
            position: position_at(&follower, state.position, fallback)?,
            replay_from,
            epoch: state.epoch,
            kind,
            taken_at: core.now(),
            readiness: Readiness::Pending,
            unchecked: Vec::new(),
        },
    )
}

/// The same without images in which rounds have failed lately: the one that the next round goes on from, and that a
/// snapshot is taken of instead of one of staging, which would have to replay first.
pub fn nearest_sound(core: &Following, dsource: &Dsource) -> Result<Option<Snapshot>, Failure> {
    let avoided = core.need_follower(dsource)?.working_copy().passed_over();
    nearest_to_end(core, dsource, &avoided)
}

/// Takes a snapshot at a position, or shortly after it, as another image of what an earlier one holds: log is replayed
/// into it when it is made ready, as into every image.
pub fn take_near(
    core: &Following,
    dsource: &Dsource,
    kind: SnapshotKind,
    (near, to): (Snapshot, LogPosition),
) -> Result<SnapshotId, Failure> {
    let follower = core.need_follower(dsource)?;
    let clone = core.store.clone_snapshot(near.id).map_err(|e| e.failure())?;
    let taken = core.store.snapshot(clone).map_err(|e| e.failure());
    core.delete_dataset(clone)?;
    let position = position_at(&follower, to.max(near.position.log), core.now())?;
    record(
        core,
        Snapshot {
            id: taken?,
            position,
            kind,
            taken_at: core.now(),
            readiness: Readiness::Pending,
            unchecked: Vec::new(),
            ..near
        },
    )
}

/// Takes a snapshot of a VDB; if it runs, the snapshot holds every commit acknowledged by now.
pub fn take_of_vdb(core: &Serving, id: VdbId, kind: SnapshotKind) -> Result<SnapshotId, Failure> {
    let vdb: Vdb = core.catalog.get(id)?;
    let (Some(dataset), Some(timeflow)) = (vdb.dataset, vdb.timeflow) else {
        return Err(Failure::new(
            ErrorKind::WrongState,
            format!("'{}' is not provisioned yet", vdb.name),
            "wait until it is: offshoot job list",
        ));
    };
    losses::check(core, &vdb)?;
    let image = core.store.snapshot(dataset).map_err(|e| e.failure())?;
    let position = present_position(core, &vdb);
    record(
        core,
        Snapshot {
            id: image,
            owner: id.into(),
            timeflow,
            position,
            replay_from: position.log,
            epoch: 0,
            kind,
            taken_at: core.now(),
            readiness: Readiness::Pending,
            unchecked: Vec::new(),
        },
    )
}

/// Where a VDB's log ends, if it can be asked.
fn present_position(core: &Serving, vdb: &Vdb) -> Position {
    let now = core.now();
    let opened = vdb.moment.map_or(LogPosition::START, |moment| moment.log);
    Position { log: present_end(core, vdb).unwrap_or(opened), time: now }
}

fn present_end(core: &Serving, vdb: &Vdb) -> Option<LogPosition> {
    core.servers.get(&vdb_key(vdb.id))?.position().ok()
}

/// Whether a running VDB's policy asks for a snapshot: the interval has passed and it has changed.
pub fn due_of_vdb(core: &Serving, vdb: &Vdb) -> Result<bool, Failure> {
    let (policy, now) = (&vdb.policy.snapshots, core.now());
    let snapshots: Vec<Snapshot> = core.catalog.list_of(vdb.id)?;
    let present = snapshots.iter().filter(|one| Some(one.timeflow) == vdb.timeflow);
    let last = present.max_by_key(|one| (one.taken_at, one.id));
    let last = last.map(|one| (one.taken_at, one.position.log));
    let passed = last.is_none_or(|(taken_at, _)| policy.has_passed(now, taken_at));
    // Its server is asked only if the answer matters.
    let current = if passed { present_end(core, vdb) } else { None };
    Ok(current.is_some_and(|current| policy.due(now, last, current)))
}

fn record(core: &Core, snapshot: Snapshot) -> Result<SnapshotId, Failure> {
    match core.catalog.put(&snapshot) {
        Ok(()) => Ok(snapshot.id),
        Err(error) => {
            core.delete_image(snapshot.id)?;
            Err(error.into())
        }
    }
}

/// Deletes a snapshot's images and its record; what was made from it stays.
pub fn free(core: &Core, snapshot: &Snapshot) -> Result<(), Failure> {
    // The record goes first: nothing may start from an image that is about to be deleted. It is read again, as a proof
    // may have noted its image since.
    let last = core.catalog.transaction(|tx| -> Result<_, offshoot_catalog::Error> {
        let last = tx.find::<Snapshot>(snapshot.id)?;
        tx.delete::<Snapshot>(snapshot.id)?;
        Ok(last)
    })?;
    core.clear(snapshot.id, Topic::Proof);
    if let Some(image) = last.as_ref().unwrap_or(snapshot).ready_image() {
        core.delete_image(image)?;
    }
    core.delete_image(snapshot.id)
}

/// Notes what an opening or a replay showed of how fast a dSource's moments open. The job that asks holds the dSource, so it
/// is there.
pub fn learn(core: &Core, id: DsourceId, shown: impl FnOnce(Pace) -> Pace) -> Result<(), Failure> {
    core.catalog.update::<Dsource>(id, |dsource| dsource.pace = shown(dsource.pace))?;
    Ok(())
}

/// Marks what a proof found.
pub fn set_readiness(core: &Core, id: SnapshotId, readiness: Readiness) -> Result<(), Failure> {
    core.catalog.update::<Snapshot>(id, |snapshot| snapshot.readiness = readiness)?;
    Ok(())
}

/// Whether the log that a snapshot's image as taken needs exists: after a new copy of the source, until
/// retention gives that of before up. A VDB's image has its log inside.
pub fn has_log(core: &Core, snapshot: &Snapshot) -> Result<bool, Failure> {
    let Owner::Dsource(id) = snapshot.owner else { return Ok(true) };
    let dsource: Option<Dsource> = core.catalog.find(id)?;
    let timeflow: Option<Timeflow> = core.catalog.find(snapshot.timeflow)?;
    let kept = timeflow.is_some_and(|timeflow| timeflow.log_dataset.is_some());
    Ok(kept || dsource.is_some_and(|dsource| dsource.timeflow == Some(snapshot.timeflow)))
}

/// What a dSource lacks: a snapshot by its policy, and a recovery point.
pub struct DueOfDsource {
    /// The policy's interval has passed, and the source has written.
    pub policy: bool,
    /// More log has come since the last one than may lie between two.
    pub point: bool,
}

/// What is due of a dSource; nothing while it is not followed.
pub fn due_of_dsource(core: &Following, dsource: &Dsource) -> Result<DueOfDsource, Failure> {
    let Some(follower) = core.follower(dsource.id) else {
        return Ok(DueOfDsource { policy: false, point: false });
    };
    let snapshots = on_log(core, dsource)?;
    let current = follower.log().end();
    let last = |wanted: &dyn Fn(&&Snapshot) -> bool| {
        snapshots.iter().filter(wanted).max_by_key(|one| one.position.log)
    };
    let policy = last(&|one| one.kind != SnapshotKind::RecoveryPoint)
        .map(|one| (one.taken_at, one.position.log));
    // What users and policies take may be of the image of an earlier point.
    let own = [SnapshotKind::RecoveryPoint, SnapshotKind::Link];
    let newest = last(&|one| own.contains(&one.kind));
    let newest = newest.map_or(LogPosition::START, |one| one.position.log);
    Ok(DueOfDsource {
        policy: dsource.policy.snapshots.due(core.now(), policy, current),
        point: current.bytes_since(newest) >= dsource.spacing(),
    })
}

/// The snapshot from which least log is replayed to where the log ends, without those that are to be avoided; of those from which as much is, the one that was
/// made for that: the copy that it is of may still be there.
pub fn nearest_to_end(
    core: &Core,
    dsource: &Dsource,
    avoided: &[SnapshotId],
) -> Result<Option<Snapshot>, Failure> {
    let mut snapshots = on_log(core, dsource)?;
    snapshots.retain(|one| !one.is_failed() && !avoided.contains(&one.id));
    let rank = |one: &Snapshot| {
        (one.replay_from, one.kind == SnapshotKind::RecoveryPoint, one.position.log, one.id)
    };
    Ok(snapshots.into_iter().max_by_key(rank))
}

/// How many other images are tried where the nearest one is damaged.
const EARLIER_MAX: usize = 5;

/// Other images from which a snapshot's position can be opened, the nearest first: its own one, and then ones that lie twice
/// as far apart each time, up to the first of all.
pub fn images_before(core: &Core, snapshot: &Snapshot) -> Result<Vec<Snapshot>, Failure> {
    let mut images: Vec<Snapshot> = core.catalog.list_of(snapshot.owner)?;
    images.retain(|one| {
        let before = one.position.log <= snapshot.position.log;
        before && one.timeflow == snapshot.timeflow && one.follows_log() && !one.is_failed()
    });
    images.sort_by_key(|one| std::cmp::Reverse(one.nearness()));
    let mut chosen = vec![snapshot.clone()];
    let mut step = 1;
    while step < images.len() && chosen.len() < EARLIER_MAX {
        chosen.push(images[step].clone());
        step *= 2;
    }
    chosen.extend(images.pop());
    Ok(chosen)
}

/// The snapshot from which staging can be made anew: the last one whose log is kept.
pub fn base_of_staging(core: &Core, dsource: &Dsource) -> Result<Option<Snapshot>, Failure> {
    let Some(timeflow) = dsource.timeflow else { return Ok(None) };
    let log = core.catalog.get::<Timeflow>(timeflow)?.log;
    let Some(begin) = log.last().map(|range| range.from.log) else { return Ok(None) };
    let mut snapshots = on_log(core, dsource)?;
    snapshots.retain(|one| !one.is_failed() && one.replay_from >= begin);
    Ok(snapshots.into_iter().max_by_key(Snapshot::nearness))
}

/// The snapshots into which the log can be replayed: those of ended timeflows have none.
fn on_log(core: &Core, dsource: &Dsource) -> Result<Vec<Snapshot>, Failure> {
    let mut snapshots: Vec<Snapshot> = core.catalog.list_of(dsource.id)?;
    snapshots.retain(|one| Some(one.timeflow) == dsource.timeflow && one.follows_log());
    Ok(snapshots)
}
