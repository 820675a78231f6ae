//! Makes recovery points where the source's log has no checkpoint near: a copy of the nearest image, mostly the one that the
//! last round left, is recovered to where received log ends, stopped there, and an image of it kept. Where that cannot be done, a snapshot of staging
//! is taken instead, which opens from the source's last checkpoint.

use crate::core::job_kind::JobKind;
use crate::core::keys::job_key;
use crate::core::kind::Kind;
use crate::following::follower::Follower;
use crate::history::moments::position_at;
use crate::history::snapshots;
use crate::images::opening::{self, DATASET};
use crate::images::readiness::{IMAGE, drop_image, give_up_point};
use crate::jobs::snapshot::{self, SNAPSHOT};
use crate::parts::{Context, Parts};
use crate::serving::servers;
use crate::space::damage;
use crate::space::room;
use offshoot_connector::{RecoveryPoint, Replay, ServerSpec};
use offshoot_domain::{Dsource, Position, Readiness, Snapshot, SnapshotKind};
use offshoot_fs::Caching;
use offshoot_types::{DatasetId, DsourceId, ErrorKind, Failure, JobId, LogPosition, Share};
use offshoot_workflow::{Key, Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How much log one round replays, at most: where the source writes faster than it is replayed, points fall behind, but
/// every round still ends soon.
const ROUND_BYTES_MAX: u64 = 512 << 20;
/// How long one may take: users who pause or unlink the dSource wait for it.
const ROUND_DEADLINE: Duration = Duration::from_secs(300);

/// How long a snapshot of staging waits for what staging did not replay yet.
const STAGING_WAIT: Duration = Duration::from_secs(2);

/// The image that a point is made from; none: there is none that will do.
const FROM: Key<Option<Snapshot>> = Key::new("from");
/// Set if it is made in the copy of the last one.
const GOES_ON: Key<bool> = Key::new("goes_on");
/// How many blocks had been written into the copy before.
const WRITTEN: Key<u64> = Key::new("written");
/// The point that was made; none: it could not be.
const POINT: Key<Option<Made>> = Key::new("point");

/// Where it is in its source's history. Known before the point of no return: an engine that finishes the job after a kill
/// follows nothing yet.
const POSITION: Key<Position> = Key::new("position");

/// What was made, as a job remembers it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Made {
    position: LogPosition,
    replay_from: LogPosition,
    epoch: u32,
}

impl From<RecoveryPoint> for Made {
    fn from(RecoveryPoint { position, replay_from, epoch }: RecoveryPoint) -> Made {
        Made { position, replay_from, epoch }
    }
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::SnapshotPoint)
        .step("clone", clone, opening::delete_clone)
        .step("mount", mount, opening::unmount_clone)
        .step("recover", recover, opening::unmount_clone)
        .step("image", take_image, drop_image)
        .step_without_undo("close", close)
        .point_of_no_return()
        .step_without_undo("publish", publish)
}

/// Starts the job for a dSource that is followed.
pub fn submit(parts: &Arc<Parts>, dsource: &Dsource) -> Result<JobId, Failure> {
    room::check_takes_on(parts, "a snapshot")?;
    room::check_quota(parts, dsource.id.into())?;
    let submission = Submission::new(JobKind::SnapshotPoint, &dsource.name, &dsource.id);
    parts.submit(submission.shared(dsource.id).of_engine())
}

fn dsource_of(context: &Context) -> Result<Dsource, Failure> {
    Ok(context.app().catalog.get(context.input::<DsourceId>()?)?)
}

fn clone(context: &Context) -> Result<(), Failure> {
    let (parts, dsource) = (context.app(), dsource_of(context)?);
    let can = Kind::of_dsource(parts, &dsource)?.connector.point_maker().is_some();
    let from = if can { snapshots::nearest_sound(parts, &dsource)? } else { None };
    context.set(FROM, &from)?;
    let Some(from) = from else { return Ok(()) };
    if context.get(DATASET)?.is_none()
        && let Some(left) = parts.need_follower(&dsource)?.working_copy().take(parts, from.id)?
    {
        context.set(GOES_ON, &true)?;
        return context.set(DATASET, &left);
    }
    opening::clone_image(context, from.id).map(drop)
}

fn mount(context: &Context) -> Result<(), Failure> {
    match context.get(DATASET)? {
        Some(_) => opening::mount_clone(context),
        None => Ok(()),
    }
}

fn recover(context: &Context) -> Result<(), Failure> {
    let Some(from) = context.need(FROM)? else { return context.set(POINT, &None) };
    let point = match make(context, &from) {
        Ok(point) => point,
        Err(failure) if failure.code == ErrorKind::Cancelled => return Err(failure),
        Err(failure)
            if failure.code != ErrorKind::WrongState && damage::is_known(context.app()) =>
        {
            let follower = context.app().need_follower(&dsource_of(context)?)?;
            follower.working_copy().pass_over(from.id);
            return Err(failure);
        }
        Err(failure) => {
            tracing::warn!(job = %context.job_id(), %failure, "no recovery point was made");
            None
        }
    };
    context.set(POINT, &point)
}

fn make(context: &Context, from: &Snapshot) -> Result<Option<Made>, Failure> {
    let (parts, dsource) = (context.app(), dsource_of(context)?);
    let (kind, dataset) = (Kind::of_dsource(parts, &dsource)?, context.need(DATASET)?);
    let Some(maker) = kind.connector.point_maker() else { return Ok(None) };
    let key = job_key(context.job_id());
    let spec = servers::spec_of_copy(parts, &key, format!("recovery {key}"), &kind, dataset)?;
    // However busy the host is, moments open within the time that is promised.
    let spec = ServerSpec { share: Share::Ahead, ..spec };
    let follower = parts.need_follower(&dsource)?;
    // What this round writes is what the next openings read, and the next round has it in the kernel's cache.
    let files = parts.volumes.files(dataset)?;
    files.cache_commits(Caching::Kept);
    context.set(WRITTEN, &files.written_blocks())?;
    let started = parts.elapsed_ms();
    let replay = Replay {
        log: follower.log(),
        target: &follower.target(files),
        to: follower.log().end().min(LogPosition(from.position.log.0 + ROUND_BYTES_MAX)),
        deadline: ROUND_DEADLINE,
        flush: &|| parts.volumes.flush(dataset),
        tick: &mut |_| !context.is_cancelled(),
    };
    let Some(point) = maker.make_point(spec, from.position.log, replay)?.map(Made::from) else {
        let (job, behind) = (context.job_id(), from.position.log.0);
        tracing::info!(%job, behind, "a snapshot of staging instead: this log has no place to end a recovery yet");
        return Ok(None);
    };
    // One that goes on in the copy of the last round finds in memory what an opening reads: its time says nothing about those.
    if context.get(GOES_ON)?.is_none() {
        let bytes = point.position.bytes_since(from.replay_from);
        let took_ms = parts.elapsed_ms() - started;
        snapshots::learn(parts, dsource.id, |pace| pace.replayed(bytes, took_ms))?;
    }
    Ok(Some(point))
}

fn take_image(context: &Context) -> Result<(), Failure> {
    let Some(point) = context.need(POINT)? else { return Ok(()) };
    let (parts, dataset) = (context.app(), context.need(DATASET)?);
    let follower = parts.need_follower(&dsource_of(context)?)?;
    context.set(POSITION, &position_at(&follower, point.position, parts.now())?)?;
    // The snapshot makes durable what the round wrote without a flush.
    let image = parts.store.snapshot(dataset).map_err(|e| e.failure())?;
    context.set(IMAGE, &image)?;
    learn_pages(context, &point, dataset)
}

/// How many pages the log of this point has changed says how long moments before it take to open.
fn learn_pages(context: &Context, point: &Made, dataset: DatasetId) -> Result<(), Failure> {
    let (parts, from) = (context.app(), context.need(FROM)?);
    let written = parts.volumes.files(dataset)?.written_blocks();
    let pages = written.saturating_sub(context.need(WRITTEN)?);
    let bytes = from.map_or(0, |from| point.position.bytes_since(from.replay_from));
    let dsource = context.input::<DsourceId>()?;
    snapshots::learn(parts, dsource, |pace| pace.changed(bytes, pages))
}

/// Leaves the copy to the next round if it is what the image is.
fn close(context: &Context) -> Result<(), Failure> {
    let (parts, point) = (context.app(), context.need(POINT)?);
    match parts.follower(context.input::<DsourceId>()?) {
        Some(follower) if point.is_some() => {
            let (dataset, image) = (context.need(DATASET)?, context.need(IMAGE)?);
            follower.working_copy().leave(parts, dataset, image)
        }
        _ => opening::delete_clone(context),
    }
}

fn publish(context: &Context) -> Result<(), Failure> {
    let (parts, dsource) = (context.app(), dsource_of(context)?);
    let follower = parts.follower(dsource.id);
    let (Some(point), Some(from)) = (context.need(POINT)?, context.need(FROM)?) else {
        // If nothing is followed yet, the next job makes one.
        return follower.map_or(Ok(()), |follower| take_staging(context, &dsource, &follower));
    };
    let (image, now) = (context.need(IMAGE)?, parts.now());
    if dsource.timeflow != Some(from.timeflow) {
        // The source was copied again: nobody needs it.
        return parts.delete_image(image);
    }
    parts.catalog.put(&Snapshot {
        id: image,
        position: context.need(POSITION)?,
        replay_from: point.replay_from,
        epoch: point.epoch,
        kind: SnapshotKind::RecoveryPoint,
        taken_at: now,
        readiness: Readiness::Pending,
        unchecked: Vec::new(),
        ..from
    })?;
    context.set(SNAPSHOT, &image)?;
    let Some(follower) = follower else { return Ok(()) };
    for failed in follower.working_copy().take_passed_over() {
        give_up_point(parts, failed)?;
    }
    if let Err(failure) = follower.rest_at(image) {
        tracing::warn!(job = %context.job_id(), %failure, "staging does not rest");
    }
    Ok(())
}

/// Takes a snapshot of staging instead.
fn take_staging(context: &Context, dsource: &Dsource, follower: &Follower) -> Result<(), Failure> {
    let _awake = follower.keep_awake()?;
    let end = follower.log().end();
    // Only if it answers: a server that recovers may take long.
    let waited = follower
        .replay_state()
        .and_then(|_| snapshot::wait_replayed(context, follower, end, STAGING_WAIT, true));
    if let Err(failure) = waited {
        tracing::info!(job = %context.job_id(), %failure, "the snapshot is of where staging is");
    }
    let taken = snapshots::take_of_dsource(context.app(), dsource, SnapshotKind::RecoveryPoint)?;
    context.set(SNAPSHOT, &taken)
}
