//! Makes snapshots ready: a clone is recovered, settled and shut down cleanly. That image is checked
//! on another clone, which is then discarded, and kept: VDBs are cloned from it.
//!
//! A snapshot of a dSource is made ready as a moment at its position is opened: from the image that is nearest, which mostly
//! is a recovery point. If that one is damaged, from an earlier one.

use crate::core::job_kind::JobKind;
use crate::core::keys::job_key;
use crate::core::kind::Kind;
use crate::core::topic::Topic;
use crate::history::moments::{self, Resolved};
use crate::history::snapshots;
use crate::images::opening::{self, BASE, DATASET, RESOLVED};
use crate::images::proof::{self, Proof};
use crate::parts::{Context, Parts};
use crate::space::damage;
use offshoot_catalog::Subject;
use offshoot_domain::{Dsource, Owner, Readiness, Snapshot, SnapshotKind};
use offshoot_types::{DatasetId, ErrorKind, Failure, JobId, SnapshotId};
use offshoot_workflow::{Key, Submission, Workflow};
use std::sync::Arc;
use std::time::Duration;

/// How long a proof may take to be undone.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(60);
/// Key under which jobs store the image they made.
pub const IMAGE: Key<SnapshotId> = Key::new("image");
/// Key under which jobs store what its check has found.
pub const PROOF: Key<Proof> = Key::new("proof");

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::SnapshotReady)
        .step("clone", clone, opening::delete_clone)
        .step("mount", opening::mount_clone, opening::unmount_clone)
        .step("recover", recover, opening::unmount_clone)
        .step("image", take_image, drop_image)
        .step_without_undo("close", opening::delete_clone)
        .step("check", check, proof::clear)
        .point_of_no_return()
        .step_without_undo("publish", publish)
}

/// Starts the job for one snapshot.
pub fn submit(parts: &Arc<Parts>, snapshot: &Snapshot) -> Result<JobId, Failure> {
    // Nothing else is locked, so nobody has to wait for a proof. If the owner is deleted, so is the
    // snapshot; the job then fails and is undone. It is the engine's own, so nobody is told.
    parts.submit(
        Submission::new(JobKind::SnapshotReady, snapshot.id, &snapshot.id)
            .exclusive(snapshot.id)
            .of_engine(),
    )
}

/// Ends a running proof, so that its snapshot can be deleted.
pub fn cancel(parts: &Parts, id: SnapshotId) -> Result<(), Failure> {
    let runner = parts.runner()?;
    let object = Subject::Snapshot(id);
    for job in parts.catalog.unsettled_jobs()? {
        if JobKind::SnapshotReady.is_of(&job) && job.object == object {
            // It may just have ended.
            let _ = runner.cancel(job.id);
            runner.wait(job.id, CANCEL_TIMEOUT)?;
        }
    }
    Ok(())
}

fn snapshot_of(context: &Context) -> Result<Snapshot, Failure> {
    snapshots::find(context.app(), context.input::<SnapshotId>()?)
}

fn clone(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let snapshot = snapshot_of(context)?;
    let Owner::Dsource(id) = snapshot.owner else {
        return opening::clone_image(context, snapshot.id).map(drop);
    };
    if !snapshots::has_log(parts, &snapshot)? {
        return Err(Failure::new(
            ErrorKind::WrongState,
            format!("the log that {} needs is not there", snapshot.id),
            "choose another snapshot or moment",
        ));
    }
    let dsource: Dsource = parts.catalog.get(id)?;
    let at = snapshot.position.log;
    let nearest = moments::resolve_at(parts, &dsource, Some(snapshot.timeflow), at);
    // What staging has replayed may not be indexed yet.
    let resolved = nearest.unwrap_or_else(|_| from_image(&snapshot, &snapshot));
    context.set(BASE, &snapshot.owner)?;
    context.set(RESOLVED, &resolved)?;
    opening::clone_image(context, resolved.image).map(drop)
}

/// A snapshot's position, from the image of this or of another one.
fn from_image(snapshot: &Snapshot, of: &Snapshot) -> Resolved {
    Resolved {
        snapshot: of.id,
        image: of.id,
        recover_to: Some(snapshot.position.log),
        replay_from: of.replay_from,
        timeflow: Some(snapshot.timeflow),
        position: snapshot.position,
    }
}

fn recover(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let snapshot = snapshot_of(context)?;
    let Some(resolved) = context.get(RESOLVED)? else {
        let (key, dataset) = (job_key(context.job_id()), context.need(DATASET)?);
        let kind = Kind::of(parts, snapshot.owner)?;
        opening::start_private(parts, &key, &kind, dataset, opening::RECOVERY_DEADLINE)?;
        return opening::stop_clean(parts, &key, dataset);
    };
    let nearest = resolved.image;
    match opening::replay_resolved(context) {
        Err(failure) if failure.code != ErrorKind::Cancelled => {
            let (job, image) = (context.job_id(), nearest);
            tracing::warn!(%job, %image, %failure, "the nearest image cannot be replayed");
            recover_from_earlier(context, &snapshot, failure)
        }
        recovered => recovered,
    }
}

/// That the nearest image is damaged says nothing about the log, nor about those before it. One that was made only to be
/// the nearest is not used again if another one does.
fn recover_from_earlier(
    context: &Context,
    snapshot: &Snapshot,
    mut failure: Failure,
) -> Result<(), Failure> {
    let parts = context.app();
    let mut failed: Vec<SnapshotId> = vec![context.need(RESOLVED)?.image];
    // Where no damage is known, only its own one is tried: the log may be what fails.
    let others = if damage::is_known(parts) { usize::MAX } else { 1 };
    for earlier in snapshots::images_before(parts, snapshot)?.into_iter().take(others) {
        if failed.contains(&earlier.id) {
            continue;
        }
        opening::unmount_clone(context)?;
        opening::delete_clone(context)?;
        let dataset = parts.store.clone_snapshot(earlier.id).map_err(|e| e.failure())?;
        context.set(DATASET, &dataset)?;
        context.set(RESOLVED, &from_image(snapshot, &earlier))?;
        opening::mount_clone(context)?;
        match opening::replay_resolved(context) {
            Ok(()) => return failed.iter().try_for_each(|id| give_up_point(parts, *id)),
            Err(other) if other.code == ErrorKind::Cancelled => return Err(other),
            Err(other) => {
                let (job, image) = (context.job_id(), earlier.id);
                tracing::warn!(%job, %image, failure = %other, "nor can an earlier one");
                failed.push(image);
                failure = other;
            }
        }
    }
    Err(failure)
}

/// Marks a recovery point into which log could not be replayed, although it could into an earlier image, if that is for damage.
pub fn give_up_point(parts: &Parts, id: SnapshotId) -> Result<(), Failure> {
    match parts.catalog.find::<Snapshot>(id)? {
        Some(point) if point.kind == SnapshotKind::RecoveryPoint && damage::is_known(parts) => {
            let reason = "log cannot be replayed into it, but into an earlier image";
            let hint = "earlier images take its place; see the damaged blocks: offshoot status; check the disk";
            mark(parts, &point, reason, hint)
        }
        _ => Ok(()),
    }
}

/// Step: keeps the clone's state as an image.
pub fn take_image(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let dataset: DatasetId = context.need(DATASET)?;
    // The snapshot makes durable what recovery wrote without a flush.
    let image = parts.store.snapshot(dataset).map_err(|e| e.failure())?;
    context.set(IMAGE, &image)
}

/// Undo: deletes the recorded image.
pub fn drop_image(context: &Context) -> Result<(), Failure> {
    match context.get(IMAGE)? {
        Some(image) => context.app().delete_image(image),
        None => Ok(()),
    }
}

fn check(context: &Context) -> Result<(), Failure> {
    // Nobody waits for it, and it reads all that is new.
    offshoot_os::lower_thread_priority();
    let snapshot = snapshot_of(context)?;
    context.set(PROOF, &proof::prove(context, &snapshot, context.need(IMAGE)?)?)?;
    proof::clear(context)
}

fn publish(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let Some(snapshot) = parts.catalog.find::<Snapshot>(context.input::<SnapshotId>()?)? else {
        // Deleted in the meantime; nobody needs the image.
        return drop_image(context);
    };
    let found: Proof = context.need(PROOF)?;
    if found.damage.is_empty() {
        let ready = Readiness::Ready { image: context.need(IMAGE)?, proven: found.whole };
        parts.clear(snapshot.id, Topic::Proof);
        parts.catalog.update::<Snapshot>(snapshot.id, |snapshot| {
            (snapshot.readiness, snapshot.unchecked) = (ready.clone(), found.unchecked.clone());
        })?;
        return Ok(());
    }
    let reason = found.damage.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
    mark_failed(parts, &snapshot, &reason)?;
    drop_image(context)
}

/// Records that a snapshot did not pass, with a fault.
pub fn mark_failed(parts: &Parts, snapshot: &Snapshot, reason: &str) -> Result<(), Failure> {
    let hint = "check the source itself; later snapshots are checked on their own";
    mark(parts, snapshot, reason, hint)
}

fn mark(parts: &Parts, snapshot: &Snapshot, reason: &str, hint: &str) -> Result<(), Failure> {
    let message = format!("{} of {} cannot be used: {reason}", snapshot.id, snapshot.owner);
    let failure = Failure::new(ErrorKind::DataDamaged, message, hint);
    parts.raise(snapshot.id, Topic::Proof, &failure);
    let readiness = Readiness::Failed { reason: reason.to_owned() };
    snapshots::set_readiness(parts, snapshot.id, readiness)
}
