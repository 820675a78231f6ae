//! Snapshots of dSources and VDBs: taken, deleted.

use crate::core::job_kind::JobKind;
use crate::following::follower::{Follower, is_late};
use crate::history::bookmarks;
use crate::history::snapshots;
use crate::parts::{Context, Parts};
use crate::space::room::{self, Shortage};
use offshoot_catalog::Subject;
use offshoot_connector::StreamStatus;
use offshoot_domain::{Dsource, Moment, Owner, Position, Snapshot, SnapshotKind};
use offshoot_types::{ErrorKind, Failure, JobId, LogPosition, SnapshotId};
use offshoot_workflow::{Key, Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How long the source may be silent after it was asked what it has.
const ASK_TIMEOUT: Duration = Duration::from_secs(15);
/// How long staging may take to replay what was received.
pub const REPLAY_TIMEOUT: Duration = Duration::from_secs(3600);
/// How long a snapshot waits for staging before it looks whether it need not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often it looks whether a point has come near where staging rests.
const LOOK_AT_POINTS: Duration = Duration::from_millis(100);
/// What it means for those who wait for a point if there is no room.
const STARVES: &str = "no recovery point is made until there is room";
/// How much log may lie between a snapshot and the image that it is taken of, in spacings of points: one is due after the
/// first, and a source that stops before it writes no more.
const NEAR_SPACINGS: u64 = 2;
/// Key under which the jobs store the snapshot; also their result.
pub const SNAPSHOT: Key<SnapshotId> = Key::new("snapshot");
/// Key under which they store up to where the log of a dSource is to be in it.
const TO: Key<LogPosition> = Key::new("to");
/// Set where it is taken of another image that is near enough.
const NEAR: Key<bool> = Key::new("near");

/// What to take.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Input {
    owner: Owner,
    kind: SnapshotKind,
    /// A user waits for what the source has now, and gets an error if it cannot be asked.
    #[serde(default)]
    asked: bool,
}

/// The workflows.
pub fn workflows() -> Vec<Workflow<Parts>> {
    vec![
        Workflow::new(JobKind::SnapshotTake)
            .step_without_undo("catch_up", catch_up)
            .step("take", take, untake),
        Workflow::new(JobKind::DsourceSync)
            .step_without_undo("catch_up", catch_up)
            .step("take", take, untake),
        Workflow::new(JobKind::SnapshotDelete)
            .point_of_no_return()
            .step_without_undo("delete", delete),
    ]
}

/// Starts a job that takes a snapshot.
pub fn submit_take(
    parts: &Arc<Parts>,
    owner: Owner,
    name: &str,
    kind: SnapshotKind,
) -> Result<JobId, Failure> {
    let asked = kind == SnapshotKind::Manual;
    submit_as(JobKind::SnapshotTake, parts, name, &Input { owner, kind, asked })
}

/// Starts a job that receives what the source has now and takes a snapshot.
pub fn submit_synced(parts: &Arc<Parts>, dsource: &Dsource) -> Result<JobId, Failure> {
    // It is kept like those of the policy: a user who wants a permanent one takes a snapshot.
    let input = Input { owner: dsource.id.into(), kind: SnapshotKind::Policy, asked: true };
    submit_as(JobKind::DsourceSync, parts, &dsource.name, &input)
}

fn submit_as(
    workflow: JobKind,
    parts: &Arc<Parts>,
    name: &str,
    input: &Input,
) -> Result<JobId, Failure> {
    room::check_takes_on(parts, "a snapshot")?;
    room::check_quota(parts, input.owner)?;
    // Several snapshots of one object may be in progress; pausing or removing it waits for them.
    let submission = Submission::new(workflow, Subject::named(name), input).shared(input.owner);
    parts.submit(if input.kind == SnapshotKind::Policy && !input.asked {
        submission.of_engine()
    } else {
        submission
    })
}

/// Starts a job that deletes a snapshot.
pub fn submit_delete(parts: &Arc<Parts>, id: SnapshotId) -> Result<JobId, Failure> {
    let snapshot = snapshots::find(parts, id)?;
    if let Some(names) = bookmarks::by_snapshot(parts, snapshot.owner)?.remove(&id) {
        return Err(Failure::new(
            ErrorKind::WrongState,
            format!("{id} is what the bookmark '{}' names", names.join("', '")),
            format!("delete the bookmark first: offshoot bookmark delete {}", names[0]),
        ));
    }
    crate::images::readiness::cancel(parts, id)?;
    let submission = Submission::new(JobKind::SnapshotDelete, id, &id).exclusive(id);
    parts.submit(submission.shared(snapshot.owner))
}

fn catch_up(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let input: Input = context.input()?;
    let Owner::Dsource(id) = input.owner else { return Ok(()) };
    let follower = parts.need_follower(&parts.catalog.get::<Dsource>(id)?)?;
    let to = if input.asked {
        receive_all(context, &follower)?.log
    } else {
        // By policy, what was received is good enough.
        follower.ask_now(ASK_TIMEOUT).map_or_else(|_| follower.log().end(), |end| end.log)
    };
    context.set(TO, &to)?;
    let deadline = parts.clock.elapsed() + REPLAY_TIMEOUT;
    let mut shortage = Shortage::default();
    // Staging that is nearly there gives a snapshot from which later moments open. One that is not is waited for only if
    // no image is near: points are made while it replays. Where it rests, they alone come nearer.
    loop {
        let dsource = parts.catalog.get::<Dsource>(id)?;
        let behind = snapshots::nearest_sound(parts, &dsource)?;
        let behind = behind.map(|one| to.bytes_since(one.replay_from));
        let is_near = behind.is_some_and(|bytes| bytes <= NEAR_SPACINGS * dsource.spacing());
        let in_time = parts.clock.elapsed() < deadline;
        match behind.filter(|_| follower.rests()) {
            Some(_) if is_near || !in_time => return context.set(NEAR, &true),
            Some(bytes) => {
                context.check_cancelled()?;
                context.progress(0, bytes, "bytes");
                shortage.check(parts, !room::takes_on(parts), STARVES)?;
                parts.clock.sleep(LOOK_AT_POINTS);
            }
            None => match wait_replayed(context, &follower, to, LOOK_AGAIN, input.asked) {
                Err(failure) if is_late(&failure) && is_near => return context.set(NEAR, &true),
                Err(failure) if is_late(&failure) && in_time => {}
                waited => return waited,
            },
        }
    }
}

/// Waits, with progress, until what the source has is received.
fn receive_all(context: &Context, follower: &Follower) -> Result<Position, Failure> {
    follower.receive_all(ASK_TIMEOUT, &mut receiving(context))
}

/// The same; a source that does not answer soon is given up.
pub fn catch_up_with(
    context: &Context,
    follower: &Follower,
    wanted: &Moment,
) -> Result<Position, Failure> {
    follower.catch_up(wanted, &mut receiving(context))
}

/// Shows how much of the log is received, until the job is cancelled.
pub fn receiving(context: &Context) -> impl FnMut(&StreamStatus) -> Result<(), Failure> {
    let mut first = None;
    move |status| {
        if let (Some(received), Some(lag)) = (status.received, status.lag_bytes) {
            let from = *first.get_or_insert(received);
            let done = received.bytes_since(from);
            context.progress(done, done + lag, "bytes");
        }
        context.check_cancelled()
    }
}

/// Waits, with progress, until staging has replayed up to a position, perhaps for a user.
pub fn wait_replayed(
    context: &Context,
    follower: &Follower,
    to: LogPosition,
    timeout: Duration,
    for_user: bool,
) -> Result<(), Failure> {
    let mut first = None;
    let mut tick = |at: LogPosition| {
        let from = *first.get_or_insert(at);
        context.progress(at.min(to).bytes_since(from), to.bytes_since(from), "bytes");
        context.check_cancelled()
    };
    follower.wait_replayed(to, timeout, for_user, &mut tick)
}

fn take(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    let parts = context.app();
    let snapshot = match input.owner {
        Owner::Dsource(id) => {
            let (dsource, to): (Dsource, _) = (parts.catalog.get(id)?, context.need(TO)?);
            let follower = parts.need_follower(&dsource)?;
            let near = match follower.rests() || context.get(NEAR)?.is_some() {
                true => snapshots::nearest_sound(parts, &dsource)?,
                false => None,
            };
            match near {
                Some(near) => snapshots::take_near(parts, &dsource, input.kind, (near, to))?,
                None => {
                    let _awake = follower.keep_awake()?;
                    snapshots::take_of_dsource(parts, &dsource, input.kind)?
                }
            }
        }
        Owner::Vdb(id) => snapshots::take_of_vdb(parts, id, input.kind)?,
    };
    context.set(SNAPSHOT, &snapshot)
}

fn untake(context: &Context) -> Result<(), Failure> {
    match context.get(SNAPSHOT)? {
        Some(id) => match context.app().catalog.find(id)? {
            Some(snapshot) => snapshots::free(context.app(), &snapshot),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

fn delete(context: &Context) -> Result<(), Failure> {
    let id: SnapshotId = context.input()?;
    match context.app().catalog.find::<Snapshot>(id)? {
        Some(snapshot) => snapshots::free(context.app(), &snapshot),
        None => Ok(()),
    }
}
