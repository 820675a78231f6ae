//! Jobs on dSources that exist: pause, resume, unlink.

use crate::core::{Context, Core};
use crate::follower::{self, password_key};
use crate::left_slots;
use crate::link::forget_history;
use crate::opening::delete_dataset;
use offshoot_domain::{Dsource, DsourceState};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId};
use offshoot_workflow::{Submission, Workflow};
use std::sync::Arc;

/// The workflows.
pub fn workflows() -> Vec<Workflow<Core>> {
    vec![
        Workflow::new("dsource_pause").point_of_no_return().check("stop", pause),
        Workflow::new("dsource_resume")
            .step("start", resume, stop_again)
            .point_of_no_return()
            .check("publish", mark_active),
        Workflow::new("dsource_unlink")
            .point_of_no_return()
            .check("stop", stop)
            .check("drop_slot", drop_slot)
            .check("free", free)
            .check("forget", forget),
    ]
}

fn submit(core: &Arc<Core>, kind: &'static str, dsource: &Dsource) -> Result<JobId, Failure> {
    core.submit(Submission::new(kind, &dsource.name, &dsource.id).exclusive(dsource.id))
}

fn wrong_state(dsource: &Dsource, hint: &str) -> Failure {
    let message = format!("'{}' is {}", dsource.name, dsource.state.as_str());
    Failure::new(ErrorKind::WrongState, message, hint)
}

/// Stops following the source.
pub fn submit_pause(core: &Arc<Core>, name: &str) -> Result<JobId, Failure> {
    let dsource = core.dsource(name)?;
    match dsource.state {
        DsourceState::Active | DsourceState::Failed => submit(core, "dsource_pause", &dsource),
        _ => Err(wrong_state(&dsource, "only one that is followed can be paused")),
    }
}

/// Follows the source again.
pub fn submit_resume(core: &Arc<Core>, name: &str) -> Result<JobId, Failure> {
    let dsource = core.dsource(name)?;
    match dsource.state {
        DsourceState::Paused | DsourceState::Failed => submit(core, "dsource_resume", &dsource),
        _ => Err(wrong_state(&dsource, "only one that is paused can be resumed")),
    }
}

/// Removes a dSource.
pub fn submit_unlink(core: &Arc<Core>, name: &str) -> Result<JobId, Failure> {
    submit(core, "dsource_unlink", &core.dsource(name)?)
}

fn dsource_of(context: &Context) -> Result<Option<Dsource>, Failure> {
    Ok(context.app().catalog.find(context.input::<DsourceId>()?)?)
}

/// Stops the follower and forgets it.
fn stop(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let id: DsourceId = context.input()?;
    let follower = core.followers.lock().remove(&id);
    if let Some(follower) = follower {
        follower.stop()?;
    }
    Ok(())
}

fn pause(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    stop(context)?;
    let id: DsourceId = context.input()?;
    let dsource =
        core.catalog.update::<Dsource>(id, |dsource| dsource.state = DsourceState::Paused)?;
    core.catalog.clear_faults(&dsource.name)?;
    if let Some(staging) = dsource.staging_dataset {
        core.exports.unmount(staging)?;
    }
    // What was received can still be opened.
    follower::start(core, &dsource, false)
}

fn resume(context: &Context) -> Result<(), Failure> {
    stop(context)?;
    match dsource_of(context)? {
        Some(dsource) => follower::start(context.app(), &dsource, true),
        None => Ok(()),
    }
}

fn stop_again(context: &Context) -> Result<(), Failure> {
    stop(context)?;
    match dsource_of(context)? {
        Some(dsource) => follower::start(context.app(), &dsource, false),
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

fn drop_slot(context: &Context) -> Result<(), Failure> {
    match dsource_of(context)? {
        Some(dsource) => left_slots::release(context.app(), &dsource),
        None => Ok(()),
    }
}

fn free(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let Some(dsource) = dsource_of(context)? else { return Ok(()) };
    forget_history(core, dsource.id)?;
    for dataset in [dsource.staging_dataset, dsource.log_dataset].into_iter().flatten() {
        delete_dataset(core, dataset)?;
    }
    Ok(())
}

fn forget(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let Some(dsource) = dsource_of(context)? else { return Ok(()) };
    core.catalog.clear_faults(&dsource.name)?;
    core.catalog.delete::<Dsource>(dsource.id)?;
    Ok(core.catalog.delete_secret(&password_key(dsource.id))?)
}
