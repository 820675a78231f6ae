//! Jobs on dSources that exist: pause, resume, unlink.

use crate::core::job_kind::JobKind;
use crate::core::keys::{new_source_password_key, sent_password_key, source_password_key};
use crate::following::reservations;
use crate::history::groups;
use crate::jobs::link::forget_history;
use crate::jobs::{reparent, resync, snapshot};
use crate::parts::{Context, Parts};
use offshoot_domain::{Dsource, DsourceState, MaskReport, Masking, Replica};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId};
use offshoot_workflow::{Submission, Workflow};
use std::sync::Arc;
use std::time::Duration;

/// How long it may take until it is known whether the log continues.
const STREAM_TIMEOUT: Duration = Duration::from_secs(3);

/// The workflows.
pub fn workflows() -> Vec<Workflow<Parts>> {
    vec![
        Workflow::new(JobKind::DsourcePause).point_of_no_return().step_without_undo("stop", pause),
        Workflow::new(JobKind::DsourceResume)
            .step("start", resume, stop_again)
            .point_of_no_return()
            .step_without_undo("publish", mark_active),
        Workflow::new(JobKind::DsourceUnlink)
            .point_of_no_return()
            .step_without_undo("stop", stop)
            .step_without_undo("drop_slot", release_log)
            .step_without_undo("free", free)
            .step_without_undo("forget", forget),
    ]
}

fn submit(parts: &Arc<Parts>, kind: JobKind, dsource: &Dsource) -> Result<JobId, Failure> {
    parts.submit(Submission::new(kind, &dsource.name, &dsource.id).exclusive(dsource.id))
}

fn wrong_state(dsource: &Dsource, hint: &str) -> Failure {
    let message = format!("'{}' is {}", dsource.name, dsource.state.as_str());
    Failure::new(ErrorKind::WrongState, message, hint)
}

/// Refuses what only makes sense for a dSource that follows its source, or did.
///
/// # Errors
/// `WrongState` for one without a source of its own, and for one that was taken over and not told the way yet.
pub fn check_follows(dsource: &Dsource) -> Result<(), Failure> {
    check_has_source(dsource)?;
    match &dsource.problem {
        Some(problem) if dsource.awaits_way() => Err(problem.clone()),
        _ => Ok(()),
    }
}

/// Refuses what only makes sense for a dSource with a source of its own.
///
/// # Errors
/// `WrongState` for a masked one, and for a copy of another engine's.
pub fn check_has_source(dsource: &Dsource) -> Result<(), Failure> {
    match dsource.state {
        DsourceState::Masked => Err(wrong_state(
            dsource,
            "it follows no source; renew it from what it is masked from: offshoot mask apply",
        )),
        DsourceState::Replica => Err(wrong_state(
            dsource,
            "it is read only: its own engine follows the source; make VDBs of it: offshoot vdb provision",
        )),
        _ => Ok(()),
    }
}

/// Stops following the source.
pub fn submit_pause(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let dsource = parts.dsource(name)?;
    check_follows(&dsource)?;
    match dsource.state {
        DsourceState::Active | DsourceState::Failed => {
            submit(parts, JobKind::DsourcePause, &dsource)
        }
        _ => Err(wrong_state(&dsource, "only one that is followed can be paused")),
    }
}

/// Follows the source again.
pub fn submit_resume(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let dsource = parts.dsource(name)?;
    check_follows(&dsource)?;
    match dsource.state {
        DsourceState::Paused | DsourceState::Failed => {
            submit(parts, JobKind::DsourceResume, &dsource)
        }
        _ => Err(wrong_state(&dsource, "only one that is paused can be resumed")),
    }
}

/// Starts a job that receives what the source has now and takes a snapshot; where the log cannot
/// continue, one that copies the source again.
pub fn submit_sync(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let dsource = parts.dsource(name)?;
    check_follows(&dsource)?;
    let follower = parts.need_follower(&dsource)?;
    if dsource.state == DsourceState::Active {
        // Just after a start it is not known yet; why it does not stream, the job will say.
        let _ = follower.wait_streaming(STREAM_TIMEOUT);
        if let Some(why) = follower.broken() {
            tracing::warn!(dsource = name, %why, "the source is copied anew");
            return resync::submit(parts, &dsource);
        }
    }
    snapshot::submit_synced(parts, &dsource)
}

/// Removes a dSource.
pub fn submit_unlink(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let dsource = parts.dsource(name)?;
    groups::check_no_member(parts, dsource.id, name)?;
    submit(parts, JobKind::DsourceUnlink, &dsource)
}

fn dsource_of(context: &Context) -> Result<Option<Dsource>, Failure> {
    Ok(context.app().catalog.find(context.input::<DsourceId>()?)?)
}

/// Stops the follower and forgets it.
fn stop(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let id: DsourceId = context.input()?;
    parts.stop(id)
}

fn pause(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    stop(context)?;
    let id: DsourceId = context.input()?;
    let dsource =
        parts.catalog.update::<Dsource>(id, |dsource| dsource.state = DsourceState::Paused)?;
    parts.clear_all(&dsource.name)?;
    start_paused(parts, &dsource)
}

/// What was received can still be opened; staging is at rest.
pub fn start_paused(parts: &Arc<Parts>, dsource: &Dsource) -> Result<(), Failure> {
    if let Some(staging) = dsource.staging_dataset {
        parts.volumes.unmount(staging)?;
    }
    parts.start(dsource, false)
}

fn resume(context: &Context) -> Result<(), Failure> {
    stop(context)?;
    match dsource_of(context)? {
        Some(dsource) => context.app().start(&dsource, true),
        None => Ok(()),
    }
}

fn stop_again(context: &Context) -> Result<(), Failure> {
    stop(context)?;
    match dsource_of(context)? {
        Some(dsource) => start_paused(context.app(), &dsource),
        None => Ok(()),
    }
}

fn mark_active(context: &Context) -> Result<(), Failure> {
    let id: DsourceId = context.input()?;
    let change = |dsource: &mut Dsource| {
        (dsource.state, dsource.problem) = (DsourceState::Active, None);
    };
    context.app().catalog.update(id, change)?;
    Ok(())
}

fn release_log(context: &Context) -> Result<(), Failure> {
    match dsource_of(context)? {
        Some(dsource) => reservations::release(context.app(), &dsource),
        None => Ok(()),
    }
}

fn free(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let Some(dsource) = dsource_of(context)? else { return Ok(()) };
    forget_history(parts, dsource.id)?;
    for dataset in [dsource.staging_dataset, dsource.log_dataset].into_iter().flatten() {
        parts.delete_dataset(dataset)?;
    }
    Ok(())
}

fn forget(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let Some(dsource) = dsource_of(context)? else { return Ok(()) };
    parts.catalog.delete::<Masking>(dsource.id)?;
    for report in parts.catalog.list_of::<MaskReport>(dsource.id)? {
        parts.catalog.delete::<MaskReport>(report.id)?;
    }
    parts.catalog.delete::<Replica>(dsource.id)?;
    parts.clear_all(&dsource.name)?;
    reparent::remember_source(parts, &dsource)?;
    parts.catalog.delete::<Dsource>(dsource.id)?;
    parts.catalog.delete_secret(&new_source_password_key(dsource.id))?;
    parts.catalog.delete_secret(&sent_password_key(dsource.id))?;
    Ok(parts.catalog.delete_secret(&source_password_key(dsource.id))?)
}
