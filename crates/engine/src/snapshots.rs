//! Snapshots of dSources and VDBs: taken, deleted.

use crate::core::{Context, Core, vdb_key};
use crate::follower::{Follower, timestamp};
use crate::moments::position_at;
use crate::opening::delete_image;
use crate::{bookmarks, losses, resync, retention, room};
use offshoot_domain::{
    Dsource, DsourceState, Owner, Position, Readiness, Snapshot, SnapshotKind, Vdb,
};
use offshoot_types::{ErrorKind, Failure, JobId, Lsn, SnapshotId, VdbId};
use offshoot_workflow::{Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How long it may take until it is known whether the log goes on.
const STREAM_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the source may be silent that was asked what it has.
const ASK_TIMEOUT: Duration = Duration::from_secs(15);
/// How long staging may take to replay what was received.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(3600);
/// How long a VDB may take to say where its log ends.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// Key under which the jobs note the snapshot; also their result.
pub const SNAPSHOT: &str = "snapshot";

/// What to take.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Input {
    owner: Owner,
    kind: SnapshotKind,
    /// A user waits for what the source has now, and is told where it cannot be asked.
    #[serde(default)]
    asked: bool,
}

/// The workflows.
pub fn workflows() -> Vec<Workflow<Core>> {
    vec![
        Workflow::new("snapshot_take").check("catch_up", catch_up).step("take", take, untake),
        Workflow::new("dsource_sync").check("catch_up", catch_up).step("take", take, untake),
        Workflow::new("snapshot_delete").point_of_no_return().check("delete", delete),
    ]
}

/// Starts a job that takes a snapshot.
pub fn submit_take(
    core: &Arc<Core>,
    owner: Owner,
    name: &str,
    kind: SnapshotKind,
) -> Result<JobId, Failure> {
    let asked = kind == SnapshotKind::Manual;
    submit_as("snapshot_take", core, name, &Input { owner, kind, asked })
}

/// Starts a job that receives what the source has now and takes a snapshot; where the log cannot go
/// on, one that copies the source anew.
pub fn submit_sync(core: &Arc<Core>, name: &str) -> Result<JobId, Failure> {
    let dsource = core.dsource(name)?;
    let follower = core.need_follower(&dsource)?;
    if dsource.state == DsourceState::Active {
        // Just after a start it is not known yet; why it does not stream, the job will say.
        let _ = follower.wait_streaming(STREAM_TIMEOUT);
        if let Some(why) = follower.broken() {
            tracing::warn!(dsource = name, %why, "the source is copied anew");
            return resync::submit(core, &dsource);
        }
    }
    // It is kept like those of the policy: who wants one for good asks for a snapshot.
    let input = Input { owner: dsource.id.into(), kind: SnapshotKind::Policy, asked: true };
    submit_as("dsource_sync", core, name, &input)
}

fn submit_as(
    workflow: &'static str,
    core: &Arc<Core>,
    name: &str,
    input: &Input,
) -> Result<JobId, Failure> {
    room::check_takes_on(core, "a snapshot")?;
    room::check_quota(core, input.owner)?;
    // Several snapshots of one object may be under way; pausing or removing it waits for them.
    core.submit(Submission::new(workflow, name, input).shared(input.owner))
}

/// Whether the engine takes a snapshot, or gives old ones up, by itself just now.
pub fn any_by_itself(core: &Core) -> Result<bool, Failure> {
    let by_itself =
        |input: Input| matches!(input.kind, SnapshotKind::Policy | SnapshotKind::RecoveryPoint);
    Ok(core.catalog.unsettled_jobs()?.into_iter().any(|job| match job.kind.as_str() {
        "snapshot_take" => serde_json::from_value(job.input).is_ok_and(by_itself),
        kind => kind == retention::KIND,
    }))
}

/// Starts a job that deletes a snapshot.
pub fn submit_delete(core: &Arc<Core>, id: SnapshotId) -> Result<JobId, Failure> {
    let snapshot = find(core, id)?;
    if let Some(names) = bookmarks::by_snapshot(core, snapshot.owner)?.remove(&id) {
        return Err(Failure::new(
            ErrorKind::WrongState,
            format!("{id} is what the bookmark '{}' names", names.join("', '")),
            format!("delete the bookmark first: offshoot bookmark delete {}", names[0]),
        ));
    }
    crate::readiness::cancel(core, id)?;
    let submission = Submission::new("snapshot_delete", id, &id).exclusive(id);
    core.submit(submission.shared(snapshot.owner))
}

/// A snapshot by id.
pub fn find(core: &Core, id: SnapshotId) -> Result<Snapshot, Failure> {
    core.catalog.find::<Snapshot>(id)?.ok_or_else(|| {
        let hint = "list them: offshoot snapshot list";
        Failure::new(ErrorKind::NotFound, format!("there is no {id}"), hint)
    })
}

fn catch_up(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let input: Input = context.input()?;
    let Owner::Dsource(id) = input.owner else { return Ok(()) };
    if input.kind == SnapshotKind::RecoveryPoint {
        return Ok(());
    }
    let follower = core.need_follower(&core.catalog.get::<Dsource>(id)?)?;
    let to = if input.asked {
        receive_all(context, &follower)?.lsn
    } else {
        // By policy, what was received is good enough.
        follower.ask_now(ASK_TIMEOUT).map_or_else(|_| follower.index.end(), |end| end.lsn)
    };
    wait_replayed(context, &follower, to)
}

/// Waits, with progress, until what the source has is received.
fn receive_all(context: &Context, follower: &Follower) -> Result<Position, Failure> {
    let mut first = None;
    follower.receive_all(ASK_TIMEOUT, &mut |status| {
        if let (Some(received), Some(lag)) = (status.received, status.lag_bytes) {
            let from = *first.get_or_insert(received);
            let done = received.0.saturating_sub(from.0);
            context.progress(done, done + lag, "bytes");
        }
        context.check_cancelled()
    })
}

/// Waits, with progress, until staging has replayed up to a position.
pub fn wait_replayed(context: &Context, follower: &Follower, to: Lsn) -> Result<(), Failure> {
    let mut first = None;
    let mut tick = |at: Lsn| {
        let from = *first.get_or_insert(at);
        context.progress(
            at.0.min(to.0).saturating_sub(from.0),
            to.0.saturating_sub(from.0),
            "bytes",
        );
        context.check_cancelled()
    };
    follower.wait_replayed(to, REPLAY_TIMEOUT, &mut tick)
}

fn take(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    let core = context.app();
    let snapshot = match input.owner {
        Owner::Dsource(id) => take_of_dsource(core, &core.catalog.get(id)?, input.kind)?,
        Owner::Vdb(id) => take_of_vdb(core, id, input.kind)?,
    };
    context.set(SNAPSHOT, &snapshot)
}

fn untake(context: &Context) -> Result<(), Failure> {
    match context.get::<SnapshotId>(SNAPSHOT)? {
        Some(id) => match context.app().catalog.find(id)? {
            Some(snapshot) => free(context.app(), &snapshot),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

/// Takes a snapshot of staging as it is, without waiting for anything.
pub fn take_of_dsource(
    core: &Core,
    dsource: &Dsource,
    kind: SnapshotKind,
) -> Result<SnapshotId, Failure> {
    let (Some(staging), Some(timeflow)) = (dsource.staging_dataset, dsource.timeflow) else {
        return Err(Failure::internal(format!("'{}' has no staging", dsource.name)));
    };
    let follower = core.need_follower(dsource)?;
    // Read before the image is fixed: replay of the image starts here or later.
    let control = follower.staging_control()?;
    let id = core.store.snapshot(staging).map_err(|e| e.failure())?;
    // Asked after it is fixed: no page in the image is newer than this.
    let state = match follower.replay_state() {
        Ok(state) => state,
        Err(failure) => {
            delete_image(core, id)?;
            return Err(failure);
        }
    };
    let fallback = state.last_commit_micros.and_then(timestamp).unwrap_or_else(|| core.now());
    record(
        core,
        Snapshot {
            id,
            owner: dsource.id.into(),
            timeflow,
            position: position_at(&follower, state.replayed_lsn, fallback)?,
            redo: control.redo_lsn,
            timeline: state.timeline,
            kind,
            taken_at: core.now(),
            readiness: Readiness::Pending,
        },
    )
}

/// Takes a snapshot of a VDB; of a running one it holds every commit acknowledged by now.
pub fn take_of_vdb(core: &Core, id: VdbId, kind: SnapshotKind) -> Result<SnapshotId, Failure> {
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
            redo: position.lsn,
            timeline: 0,
            kind,
            taken_at: core.now(),
            readiness: Readiness::Pending,
        },
    )
}

/// Where a VDB's log ends, as far as it can be asked.
fn present_position(core: &Core, vdb: &Vdb) -> Position {
    let now = core.now();
    let opened = vdb.moment.map_or(Lsn(0), |moment| moment.lsn);
    Position { lsn: present_lsn(core, vdb).unwrap_or(opened), time: now }
}

fn present_lsn(core: &Core, vdb: &Vdb) -> Option<Lsn> {
    let server = core.servers.get(&vdb_key(vdb.id))?;
    let mut session = server.lock().connect().ok()?;
    let rows = session.query("SELECT pg_current_wal_flush_lsn()", QUERY_TIMEOUT).ok()?;
    rows.first()?.first()?.as_deref()?.parse().ok()
}

/// Whether a running VDB's policy asks for a snapshot: the interval has passed and it has changed.
pub fn due_of_vdb(core: &Core, vdb: &Vdb) -> Result<bool, Failure> {
    let (policy, now) = (&vdb.policy.snapshots, core.now());
    let snapshots: Vec<Snapshot> = core.catalog.list_of(vdb.id)?;
    let present = snapshots.iter().filter(|one| Some(one.timeflow) == vdb.timeflow);
    let last = present.max_by_key(|one| (one.taken_at, one.id));
    let last = last.map(|one| (one.taken_at, one.position.lsn));
    let passed = last.is_none_or(|(taken_at, _)| policy.has_passed(now, taken_at));
    // Its server is asked only where the answer matters.
    let current = if passed { present_lsn(core, vdb) } else { None };
    Ok(current.is_some_and(|current| policy.due(now, last, current)))
}

fn record(core: &Core, snapshot: Snapshot) -> Result<SnapshotId, Failure> {
    match core.catalog.put(&snapshot) {
        Ok(()) => Ok(snapshot.id),
        Err(error) => {
            delete_image(core, snapshot.id)?;
            Err(error.into())
        }
    }
}

fn delete(context: &Context) -> Result<(), Failure> {
    let id: SnapshotId = context.input()?;
    match context.app().catalog.find::<Snapshot>(id)? {
        Some(snapshot) => free(context.app(), &snapshot),
        None => Ok(()),
    }
}

/// Deletes a snapshot's images and its record; what was made from it stays.
pub fn free(core: &Core, snapshot: &Snapshot) -> Result<(), Failure> {
    // The record goes first: nobody may start from an image that is about to go.
    core.catalog.delete::<Snapshot>(snapshot.id)?;
    if let Some(image) = snapshot.ready_image() {
        delete_image(core, image)?;
    }
    delete_image(core, snapshot.id)
}

/// Marks what a proof found.
pub fn set_readiness(core: &Core, id: SnapshotId, readiness: Readiness) -> Result<(), Failure> {
    core.catalog.update::<Snapshot>(id, |snapshot| snapshot.readiness = readiness)?;
    Ok(())
}

/// Whether the log that a snapshot's image as taken needs is there: it is gone once the source was
/// copied anew. A VDB's image has its log inside.
pub fn has_log(core: &Core, snapshot: &Snapshot) -> Result<bool, Failure> {
    let Owner::Dsource(id) = snapshot.owner else { return Ok(true) };
    let dsource: Option<Dsource> = core.catalog.find(id)?;
    Ok(dsource.is_some_and(|dsource| dsource.timeflow == Some(snapshot.timeflow)))
}
