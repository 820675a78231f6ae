//! Jobs on existing VDBs: start, stop, delete, refresh, rewind and undoing that.

use crate::core::job_kind::JobKind;
use crate::core::keys::{next_password_key, password_key, vdb_key};
use crate::core::kind::Kind;
use crate::core::topic::Topic;
use crate::history::bookmarks;
use crate::history::groups;
use crate::history::moments::check;
use crate::history::snapshots;
use crate::images::opening::{self, DATASET, START_MS};
use crate::jobs::hooks;
use crate::jobs::keepsakes;
use crate::jobs::provision::{
    forget_vdb, is_present_of_vdb, publish_opened, resolve_from, timings,
};
use crate::parts::{Context, Parts};
use crate::serving::gateways;
use crate::serving::vdb::{change_password, open_vdb, open_vdb_with, present_dataset};
use crate::space::losses;
use crate::space::room;
use crate::space::shares;
use offshoot_connector::{Absence, StopMode};
use offshoot_domain::{Moment, Owner, Secret, Snapshot, Timeflow, Vdb, VdbState};
use offshoot_types::{ErrorKind, Failure, JobId, TimeflowId, VdbId};
use offshoot_workflow::{Key, StepFn, Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Key under which a job stores the state of a VDB before it closed it.
const WAS: Key<VdbState> = Key::new("was");
/// Key under which a job stores the timeflow that it goes back to.
const TIMEFLOW: Key<TimeflowId> = Key::new("timeflow");

/// What a job on a VDB was asked to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    pub vdb: VdbId,
    /// Which other state, and where it comes from.
    #[serde(default)]
    pub from: Option<(Owner, Moment)>,
    pub requested_ms: u64,
}

/// The workflows.
pub fn workflows() -> Vec<Workflow<Parts>> {
    vec![
        Workflow::new(JobKind::VdbStart)
            .step("open", start, stop_again)
            .point_of_no_return()
            .step_without_undo("publish", mark_running),
        Workflow::new(JobKind::VdbStop)
            .step("hook_before", hooks::before_stop, hooks::undo_before)
            .point_of_no_return()
            .step_without_undo("stop", stop)
            .step_without_undo("publish", mark_stopped)
            .ending("hook", hooks::after_stop),
        Workflow::new(JobKind::VdbDelete)
            .point_of_no_return()
            .step_without_undo("stop", kill)
            .step_without_undo("free", free)
            .step_without_undo("forget", forget),
        Workflow::new(JobKind::VdbResetPassword)
            .step("choose", choose_password, forget_choice)
            .point_of_no_return()
            .step_without_undo("apply", apply_choice),
        replacing(JobKind::VdbRefresh, hooks::before_refresh).ending("hook", hooks::after_refresh),
        replacing(JobKind::VdbRewind, hooks::before_rewind).ending("hook", hooks::after_rewind),
        Workflow::new(JobKind::VdbRewindUndo)
            .step_without_undo("find", find_previous)
            .step("close_old", close_old, reopen_old)
            .step("open", open_replacement, stop)
            .point_of_no_return()
            .step_without_undo("publish", publish_previous),
    ]
}

/// Another state under the same name: made alongside the present one, which is closed only when the
/// new one is ready to be opened.
fn replacing(kind: JobKind, hook: StepFn<Parts>) -> Workflow<Parts> {
    Workflow::new(kind)
        .step_without_undo("resolve", resolve_new)
        .step("clone", opening::clone_resolved, opening::delete_clone)
        .step("mount", opening::mount_clone, opening::unmount_clone)
        .step("recover", opening::replay_resolved, opening::unmount_clone)
        .step("hook_before", hook, hooks::undo_before)
        .step("close_old", close_old, reopen_old)
        .step("open", open_replacement, stop)
        .point_of_no_return()
        .step_without_undo("publish", publish_replacement)
}

fn submit(
    parts: &Arc<Parts>,
    kind: JobKind,
    vdb: &Vdb,
    from: Option<(Owner, Moment)>,
) -> Result<JobId, Failure> {
    let parent = from.as_ref().map(|(owner, _)| *owner).filter(|owner| *owner != vdb.id.into());
    let input = Input { vdb: vdb.id, from, requested_ms: parts.elapsed_ms() };
    let submission = Submission::new(kind, &vdb.name, &input).exclusive(vdb.id);
    parts.submit(match parent {
        Some(owner) => submission.shared(owner),
        None => submission,
    })
}

fn wrong_state(vdb: &Vdb, what: &str, hint: &str) -> Failure {
    let message = format!("'{}' is {}: {what}", vdb.name, vdb.state.as_str());
    Failure::new(ErrorKind::WrongState, message, hint)
}

/// Starts a VDB; one that runs stays as it is.
pub fn submit_start(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let vdb = parts.vdb(name)?;
    check_start(&vdb)?;
    submit(parts, JobKind::VdbStart, &vdb, None)
}

/// Whether it can be started.
pub fn check_start(vdb: &Vdb) -> Result<(), Failure> {
    match vdb.state {
        // Of one that runs, nothing is to be done.
        VdbState::Stopped | VdbState::Failed | VdbState::Running => Ok(()),
        _ => Err(wrong_state(vdb, "it cannot be started", "see it: offshoot vdb show")),
    }
}

/// Stops a running VDB.
pub fn submit_stop(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let vdb = parts.vdb(name)?;
    losses::check(parts, &vdb)?;
    match vdb.state {
        VdbState::Running | VdbState::Failed => submit(parts, JobKind::VdbStop, &vdb, None),
        _ if vdb.is_asleep() => submit(parts, JobKind::VdbStop, &vdb, None),
        _ => Err(wrong_state(&vdb, "it cannot be stopped", "see it: offshoot vdb show")),
    }
}

/// Refuses to delete or replace what its user protected.
pub fn check_unprotected(vdb: &Vdb) -> Result<(), Failure> {
    if !vdb.care.protected {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::WrongState,
        format!("'{}' is protected: it is neither deleted nor replaced", vdb.name),
        format!("if that is what you want: offshoot vdb set {} --unprotect", vdb.name),
    ))
}

/// Deletes a VDB whose time has come.
pub fn submit_expiry(parts: &Arc<Parts>, vdb: &Vdb) -> Result<JobId, Failure> {
    groups::check_alone(parts, vdb)?;
    submit_of_engine(parts, JobKind::VdbDelete, vdb)
}

/// Begins a job that nobody asked for.
pub fn submit_of_engine(parts: &Arc<Parts>, kind: JobKind, vdb: &Vdb) -> Result<JobId, Failure> {
    let input = Input { vdb: vdb.id, from: None, requested_ms: parts.elapsed_ms() };
    parts.submit(Submission::new(kind, &vdb.name, &input).exclusive(vdb.id).of_engine())
}

/// Deletes a VDB.
pub fn submit_delete(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let vdb = parts.vdb(name)?;
    check_unprotected(&vdb)?;
    groups::check_alone(parts, &vdb)?;
    submit(parts, JobKind::VdbDelete, &vdb, None)
}

/// Gives a running VDB another password.
pub fn submit_reset_password(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let vdb = parts.vdb(name)?;
    match vdb.state {
        VdbState::Running => submit(parts, JobKind::VdbResetPassword, &vdb, None),
        _ => Err(wrong_state(
            &vdb,
            "its password cannot be changed",
            &format!("start it: offshoot vdb start {name}"),
        )),
    }
}

/// Opens another moment of the parent under the same name.
pub fn submit_refresh(parts: &Arc<Parts>, name: &str, moment: Moment) -> Result<JobId, Failure> {
    let vdb = parts.vdb(name)?;
    check_unprotected(&vdb)?;
    room::check_takes_on(parts, "a refresh")?;
    shares::check(parts, vdb.owner)?;
    check_parent(parts, &vdb)?;
    let owner = vdb.parent.owner;
    if !is_present_of_vdb(owner, &moment) {
        check(parts, owner, &moment)?;
    }
    submit(parts, JobKind::VdbRefresh, &vdb, Some((owner, moment)))
}

/// Whether its parent is still there.
pub fn check_parent(parts: &Parts, vdb: &Vdb) -> Result<(), Failure> {
    let (name, owner) = (&vdb.name, vdb.parent.owner);
    let there = match owner {
        Owner::Dsource(id) => parts.catalog.find::<offshoot_domain::Dsource>(id)?.is_some(),
        Owner::Vdb(id) => parts.catalog.find::<Vdb>(id)?.is_some(),
    };
    if !there {
        return Err(Failure::new(
            ErrorKind::NotFound,
            format!("the parent of '{name}', '{}', has been removed", vdb.parent.name),
            format!(
                "give it another one: offshoot vdb reparent {name} --to DSOURCE; or rewind it to one of its own \
                 snapshots"
            ),
        ));
    }
    Ok(())
}

/// Goes back to a snapshot or bookmark of the VDB itself.
pub fn submit_rewind(parts: &Arc<Parts>, name: &str, to: Moment) -> Result<JobId, Failure> {
    let vdb = parts.vdb(name)?;
    check_unprotected(&vdb)?;
    room::check_takes_on(parts, "a rewind")?;
    shares::check(parts, vdb.owner)?;
    check(parts, vdb.id.into(), &to)?;
    submit(parts, JobKind::VdbRewind, &vdb, Some((vdb.id.into(), to)))
}

/// Undoes the last rewind or refresh.
pub fn submit_rewind_undo(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let vdb = parts.vdb(name)?;
    check_unprotected(&vdb)?;
    previous_timeflow(parts, &vdb)?;
    submit(parts, JobKind::VdbRewindUndo, &vdb, None)
}

/// The timeflow that ended last and still has its dataset.
fn previous_timeflow(parts: &Parts, vdb: &Vdb) -> Result<Timeflow, Failure> {
    let timeflows: Vec<Timeflow> = parts.catalog.list_of(vdb.id)?;
    let ended =
        timeflows.into_iter().filter(|one| one.dataset.is_some() && Some(one.id) != vdb.timeflow);
    ended.max_by_key(|one| (one.ended_at, one.id)).ok_or_else(|| {
        Failure::new(
            ErrorKind::WrongState,
            format!("'{}' was neither rewound nor refreshed: there is nothing to undo", vdb.name),
            format!("rewind it to a snapshot: offshoot vdb rewind {} --snapshot ID", vdb.name),
        )
    })
}

fn vdb_of(context: &Context) -> Result<Vdb, Failure> {
    let input: Input = context.input()?;
    Ok(context.app().catalog.get(input.vdb)?)
}

/// Step: starts the server; where it runs, that is noted.
pub fn start(context: &Context) -> Result<(), Failure> {
    let (parts, vdb) = (context.app(), vdb_of(context)?);
    if parts.servers.is_running(&vdb_key(vdb.id)) {
        return context.set(WAS, &VdbState::Running);
    }
    let dataset = present_dataset(&vdb)?;
    losses::accept(parts, vdb.id, dataset)?;
    open_vdb(parts, &vdb, dataset, false)
}

/// Stops what a job has started, not what ran before.
pub fn stop_again(context: &Context) -> Result<(), Failure> {
    if context.get(WAS)? == Some(VdbState::Running) {
        return Ok(());
    }
    stop(context)?;
    gateways::rest(context.app(), &vdb_of(context)?)
}

/// Stops the server and unmounts its files.
pub fn stop(context: &Context) -> Result<(), Failure> {
    close(context, StopMode::Fast)
}

/// Stops a VDB whose data is about to be deleted: a last checkpoint would take time and room.
pub fn kill(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    gateways::end(context.app(), input.vdb)?;
    close(context, StopMode::Immediate)
}

fn close(context: &Context, mode: StopMode) -> Result<(), Failure> {
    let parts = context.app();
    let input: Input = context.input()?;
    gateways::hold(parts, input.vdb, Absence::Change);
    parts.servers.stop(&vdb_key(input.vdb), mode)?;
    let present = parts.catalog.find::<Vdb>(input.vdb)?.and_then(|vdb| vdb.dataset);
    for dataset in [present, context.get(DATASET)?].into_iter().flatten() {
        parts.volumes.unmount(dataset)?;
    }
    Ok(())
}

fn mark(context: &Context, state: VdbState) -> Result<Vdb, Failure> {
    let input: Input = context.input()?;
    let change = |vdb: &mut Vdb| (vdb.state, vdb.problem, vdb.slept) = (state, None, false);
    let vdb = context.app().catalog.update(input.vdb, change)?;
    context.app().clear(&vdb.name, Topic::Server);
    Ok(vdb)
}

/// Step: it runs.
pub fn mark_running(context: &Context) -> Result<(), Failure> {
    mark(context, VdbState::Running).map(drop)
}

/// Step: its user stopped it.
pub fn mark_stopped(context: &Context) -> Result<(), Failure> {
    gateways::rest(context.app(), &mark(context, VdbState::Stopped)?)
}

/// Kept before the server knows it: the server's could be lost otherwise, and nobody would get in.
fn choose_password(context: &Context) -> Result<(), Failure> {
    let (parts, vdb) = (context.app(), vdb_of(context)?);
    let password = Secret::new(Kind::of_vdb(parts, &vdb)?.connector.new_password());
    Ok(parts.catalog.put_secret(&next_password_key(vdb.id), &password)?)
}

fn forget_choice(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    Ok(context.app().catalog.delete_secret(&next_password_key(input.vdb))?)
}

fn apply_choice(context: &Context) -> Result<(), Failure> {
    let (parts, vdb) = (context.app(), vdb_of(context)?);
    let (key, next) = (password_key(vdb.id), next_password_key(vdb.id));
    // Done before the engine ended, but for the job's own record.
    let Some(password) = parts.catalog.secret(&next)? else { return Ok(()) };
    // It may have ended together with the engine, which starts it only after this job.
    if !parts.servers.is_running(&vdb_key(vdb.id)) {
        open_vdb(parts, &vdb, present_dataset(&vdb)?, false)?;
    }
    change_password(parts, &vdb)?;
    parts.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
        tx.put_secret(&key, &password)?;
        tx.delete_secret(&next)
    })?;
    Ok(())
}

/// Frees everything a VDB has in the store; what was made from it has its own blocks.
pub fn free(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let input: Input = context.input()?;
    bookmarks::forget_of(parts, input.vdb)?;
    for snapshot in parts.catalog.list_of::<Snapshot>(input.vdb)? {
        snapshots::free(parts, &snapshot)?;
    }
    for timeflow in parts.catalog.list_of::<Timeflow>(input.vdb)? {
        if let Some(dataset) = timeflow.dataset {
            parts.delete_dataset(dataset)?;
        }
        parts.catalog.delete::<Timeflow>(timeflow.id)?;
    }
    Ok(())
}

/// Removes its record.
pub fn forget(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let input: Input = context.input()?;
    if let Some(vdb) = parts.catalog.find::<Vdb>(input.vdb)? {
        parts.clear_all(&vdb.name)?;
    }
    forget_vdb(parts, input.vdb)
}

/// Step: decides what to open.
pub fn resolve_new(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    let (owner, moment) =
        input.from.ok_or_else(|| Failure::internal("a refresh without a moment"))?;
    resolve_from(context, owner, &moment)
}

/// Closes the present state. It is kept: the timeflow it belongs to can be gone back to.
pub fn close_old(context: &Context) -> Result<(), Failure> {
    let vdb = vdb_of(context)?;
    context.set(WAS, &vdb.state)?;
    stop(context)?;
    let change = |vdb: &mut Vdb| vdb.state = VdbState::Provisioning;
    context.app().catalog.update(vdb.id, change)?;
    Ok(())
}

/// Undo: opens the state that was closed.
pub fn reopen_old(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let vdb = vdb_of(context)?;
    let was: VdbState = context.get(WAS)?.unwrap_or(vdb.state);
    if let Err(failure) = losses::check(parts, &vdb) {
        parts.catalog.update::<Vdb>(vdb.id, |vdb| {
            (vdb.state, vdb.problem) = (VdbState::Failed, Some(failure));
        })?;
        return Ok(());
    }
    if was == VdbState::Running && !parts.servers.is_running(&vdb_key(vdb.id)) {
        open_vdb(parts, &vdb, present_dataset(&vdb)?, false)?;
    }
    let vdb = parts.catalog.update::<Vdb>(vdb.id, |vdb| vdb.state = was)?;
    if was == VdbState::Running { Ok(()) } else { gateways::rest(parts, &vdb) }
}

/// Step: opens the state that was made.
pub fn open_replacement(context: &Context) -> Result<(), Failure> {
    let started = context.app().elapsed_ms();
    let (vdb, dataset) = (vdb_of(context)?, context.need(DATASET)?);
    open_vdb_with(context.app(), &vdb, dataset, true, &|server| {
        keepsakes::bring(context, &vdb, server)
    })?;
    context.set(START_MS, &(context.app().elapsed_ms() - started))
}

/// Step: what was opened is its state.
pub fn publish_replacement(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    publish_opened(context, input.vdb, input.requested_ms)?;
    keepsakes::forget(context.app(), input.vdb)?;
    is_well(context.app(), input.vdb)
}

/// What was wrong with the previous state no longer matters.
fn is_well(parts: &Parts, id: VdbId) -> Result<(), Failure> {
    parts.clear(&parts.catalog.get::<Vdb>(id)?.name, Topic::Server);
    losses::settle_past(parts, id)
}

fn find_previous(context: &Context) -> Result<(), Failure> {
    let (parts, vdb) = (context.app(), vdb_of(context)?);
    let previous = previous_timeflow(parts, &vdb)?;
    let gone = || Failure::internal("a timeflow to go back to without a dataset");
    let dataset = previous.dataset.ok_or_else(gone)?;
    losses::accept(parts, vdb.id, dataset)?;
    context.set(TIMEFLOW, &previous.id)?;
    context.set(DATASET, &dataset)
}

fn publish_previous(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let (input, now): (Input, _) = (context.input()?, parts.now());
    let timeflow = context.need(TIMEFLOW)?;
    let timings = timings(context, input.requested_ms)?;
    parts.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
        let mut vdb: Vdb = tx.get(input.vdb)?;
        if let Some(old) = vdb.timeflow.filter(|old| *old != timeflow) {
            tx.update::<Timeflow>(old, |old| old.ended_at = Some(now))?;
        }
        let back = tx.update::<Timeflow>(timeflow, |back| back.ended_at = None)?;
        vdb.timeflow = Some(timeflow);
        vdb.dataset = back.dataset;
        vdb.state = VdbState::Running;
        vdb.problem = None;
        vdb.hook_failure = None;
        vdb.timings = timings;
        vdb.moment = back.origin.map(|origin| offshoot_domain::Opened {
            snapshot: origin.snapshot,
            log: origin.position.log,
            time: origin.position.time,
        });
        tx.put(&vdb)
    })?;
    is_well(parts, input.vdb)
}
