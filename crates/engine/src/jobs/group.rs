//! Jobs on several VDBs at once: all of them get there, or none does.
//!
//! Such a job does the steps of the jobs on one VDB, each step to all before the next begins. What a step stores, it
//! stores apart for each ([`offshoot_workflow::StepContext::part`]). So a step of all is idempotent because those of one
//! are, a failure undoes the steps of all, and no VDB is closed before everything that replaces it is ready.

use crate::core::job_kind::JobKind;
use crate::history::groups;
use crate::history::moments::check;
use crate::history::names;
use crate::images::opening;
use crate::jobs::bookmark;
use crate::jobs::hooks;
use crate::jobs::provision::{self, resolve_from};
use crate::jobs::snapshot::catch_up_with;
use crate::jobs::vdb;
use crate::parts::{Context, Parts};
use crate::space::{losses, room, shares};
use jiff::Timestamp;
use offshoot_domain::{
    Bookmark, Dsource, DsourceState, Group, Moment, ObjectName, Owner, Vdb, VdbGroup,
    format_duration,
};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId, VdbGroupId, VdbId};
use offshoot_workflow::{Key, StepFn, Submission, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Key under which a job stores the moment that it opens in all.
const MOMENT: Key<Timestamp> = Key::new("moment");

/// What a job on several VDBs was asked to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Input {
    group: VdbGroupId,
    name: ObjectName,
    /// The name of the group that it is provisioned from.
    of: ObjectName,
    /// The moment to open in all; the latest that all sources have where absent.
    at: Option<Timestamp>,
    each: Vec<One>,
}

/// One of the VDBs.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct One {
    vdb: VdbId,
    name: ObjectName,
    /// What it is made from.
    parent: Owner,
    /// The input of the steps that are done to it.
    input: Value,
}

/// The workflows.
pub fn workflows() -> Vec<Workflow<Parts>> {
    vec![
        opening_all(
            Workflow::new(JobKind::GroupProvision)
                .step("register", register, unregister)
                .step_without_undo("agree", agree)
                .step_without_undo("resolve", resolve_agreed),
        )
        .step("hook_before", |c| each(c, hooks::before_provision), undo_hooks)
        .step("open", |c| each(c, provision::open_new), |c| undo_each(c, provision::close_new))
        .point_of_no_return()
        .step_without_undo("publish", publish_new)
        .ending("hook", |c| hooks_of_all(c, hooks::after_provision)),
        replacing_all(
            Workflow::new(JobKind::GroupRefresh)
                .step_without_undo("agree", agree)
                .step_without_undo("resolve", resolve_agreed),
            |c| each(c, hooks::before_refresh),
        )
        .ending("hook", |c| hooks_of_all(c, hooks::after_refresh)),
        replacing_all(
            Workflow::new(JobKind::GroupRewind)
                .step_without_undo("resolve", |c| each(c, vdb::resolve_new)),
            |c| each(c, hooks::before_rewind),
        )
        .ending("hook", |c| hooks_of_all(c, hooks::after_rewind)),
        Workflow::new(JobKind::GroupBookmark)
            .step_without_undo("resolve", |c| each(c, bookmark::resolve_moment))
            .step("publish", |c| each(c, bookmark::publish), |c| undo_each(c, bookmark::unpublish)),
        Workflow::new(JobKind::GroupStart)
            .step("open", |c| each(c, vdb::start), |c| undo_each(c, vdb::stop_again))
            .point_of_no_return()
            .step_without_undo("publish", |c| each(c, vdb::mark_running)),
        Workflow::new(JobKind::GroupStop)
            .step("hook_before", |c| each(c, hooks::before_stop), undo_hooks)
            .point_of_no_return()
            .step_without_undo("stop", |c| each(c, vdb::stop))
            .step_without_undo("publish", |c| each(c, vdb::mark_stopped))
            .ending("hook", |c| hooks_of_all(c, hooks::after_stop)),
        Workflow::new(JobKind::GroupDelete)
            .point_of_no_return()
            .step_without_undo("stop", |c| each(c, vdb::kill))
            .step_without_undo("free", |c| each(c, vdb::free))
            .step_without_undo("forget", forget),
    ]
}

/// What was resolved for each is made ready to be opened.
fn opening_all(workflow: Workflow<Parts>) -> Workflow<Parts> {
    workflow
        .step(
            "clone",
            |c| each(c, opening::clone_resolved),
            |c| undo_each(c, opening::delete_clone),
        )
        .step("mount", |c| each(c, opening::mount_clone), |c| undo_each(c, opening::unmount_clone))
        .step(
            "recover",
            |c| each(c, opening::replay_resolved),
            |c| undo_each(c, opening::unmount_clone),
        )
}

/// Another state under the same names: the present ones are closed only when all new ones are ready.
fn replacing_all(workflow: Workflow<Parts>, hook: StepFn<Parts>) -> Workflow<Parts> {
    opening_all(workflow)
        .step("hook_before", hook, undo_hooks)
        .step("close_old", |c| each(c, vdb::close_old), |c| undo_each(c, vdb::reopen_old))
        .step("open", |c| each(c, vdb::open_replacement), |c| undo_each(c, vdb::stop))
        .point_of_no_return()
        .step_without_undo("publish", publish_replacements)
}

/// Does a step to one after the other; the error says to which.
fn each(context: &Context, run: StepFn<Parts>) -> Result<(), Failure> {
    let input: Input = context.input()?;
    for one in &input.each {
        run(&part(context, one)?).map_err(|failure| named(failure, &one.name))?;
    }
    Ok(())
}

/// Runs the hooks of all; one that fails does not keep the others, but for one that was cancelled.
fn hooks_of_all(context: &Context, run: StepFn<Parts>) -> Result<(), Failure> {
    let input: Input = context.input()?;
    let mut result = Ok(());
    for one in &input.each {
        match run(&part(context, one)?) {
            Err(failure) if failure.code == ErrorKind::Cancelled => return Err(failure),
            ran => result = result.and(ran),
        }
    }
    result
}

fn undo_hooks(context: &Context) -> Result<(), Failure> {
    undo_each(context, hooks::undo_before)
}

/// Undoes a step of all, the last first; one that cannot be undone does not keep the others.
fn undo_each(context: &Context, undo: StepFn<Parts>) -> Result<(), Failure> {
    let input: Input = context.input()?;
    let mut result = Ok(());
    for one in input.each.iter().rev() {
        let undone = part(context, one).and_then(|part| undo(&part));
        result = result.and(undone.map_err(|failure| named(failure, &one.name)));
    }
    result
}

fn part(context: &Context, one: &One) -> Result<Context, Failure> {
    context.part(&one.vdb.to_string(), &one.input)
}

fn named(failure: Failure, name: &str) -> Failure {
    if failure.code == ErrorKind::Cancelled || failure.message.contains(&format!("'{name}'")) {
        return failure;
    }
    Failure { message: format!("'{name}': {}", failure.message), ..failure }
}

fn one(
    vdb: VdbId,
    name: &ObjectName,
    parent: Owner,
    input: &impl Serialize,
) -> Result<One, Failure> {
    let input = serde_json::to_value(input)
        .map_err(|error| Failure::internal(format!("the input of a step: {error}")))?;
    Ok(One { vdb, name: name.clone(), parent, input })
}

/// Makes a VDB of each member of a group, by what was asked for of each; refuses immediately what is known to fail.
pub fn submit_provision(
    parts: &Arc<Parts>,
    group: &Group,
    name: ObjectName,
    at: Option<Timestamp>,
    wanted: Vec<provision::Input>,
) -> Result<JobId, Failure> {
    names::check_free(parts, &name)?;
    room::check_takes_on(parts, "new VDBs")?;
    for input in &wanted {
        check_parent(parts, input.parent.owner, at)?;
        provision::check_input(parts, input)?;
    }
    let each = wanted.iter().map(|input| one(input.vdb, &input.name, input.parent.owner, input));
    let each = each.collect::<Result<Vec<One>, Failure>>()?;
    let id = parts.catalog.allocate::<VdbGroup>()?;
    let input = Input { group: id, name, of: group.name.clone(), at, each };
    let taken = input.each.iter().map(|one| format!("name:{}", one.name));
    let submission = taken.fold(submission(JobKind::GroupProvision, &input), Submission::exclusive);
    parts.submit(submission.exclusive(format!("name:{}", input.name)).shared(group.id))
}

/// A job that changes all VDBs of it and needs what they are made from.
fn submission(kind: JobKind, input: &Input) -> Submission {
    let submission = Submission::new(kind, &input.name, input).exclusive(input.group);
    input.each.iter().fold(submission, |submission, one| submission.exclusive(one.vdb))
}

/// As [`submission`], for a job that opens moments of their parents.
fn submission_of_parents(kind: JobKind, input: &Input) -> Submission {
    let parents = input.each.iter().map(|one| one.parent);
    parents.fold(submission(kind, input), Submission::shared)
}

/// Whether a moment of a dSource can be opened: the one that is given, or the latest.
fn check_parent(parts: &Parts, owner: Owner, at: Option<Timestamp>) -> Result<(), Failure> {
    let Owner::Dsource(id) = owner else { return Err(no_dsource(owner)) };
    let dsource: Dsource = parts.catalog.get(id)?;
    if dsource.state != DsourceState::Active {
        let name = &dsource.name;
        let hint = match dsource.state {
            DsourceState::Paused => format!("resume it: offshoot dsource resume {name}"),
            _ => format!("see why: offshoot dsource show {name}"),
        };
        let message = format!(
            "'{name}' is {}: all members of a group must follow their sources",
            dsource.state.as_str()
        );
        return Err(Failure::new(ErrorKind::WrongState, message, hint));
    }
    at.map_or(Ok(()), |at| check(parts, owner, &Moment::At(at)))
}

fn no_dsource(owner: Owner) -> Failure {
    Failure::internal(format!("{owner} is no dSource, and a VDB group is made from it"))
}

/// The VDBs of a VDB group.
fn vdbs_of(parts: &Parts, group: &VdbGroup) -> Result<Vec<Vdb>, Failure> {
    group.vdbs.iter().map(|id| Ok(parts.catalog.get::<Vdb>(*id)?)).collect()
}

/// What is asked of all VDBs of a VDB group, with what each is to open.
fn asked_of_all(
    parts: &Parts,
    group: &VdbGroup,
    at: Option<Timestamp>,
    from: impl Fn(&Vdb) -> Option<(Owner, Moment)>,
) -> Result<Input, Failure> {
    let requested_ms = parts.elapsed_ms();
    let each = vdbs_of(parts, group)?.into_iter().map(|vdb| {
        let input = vdb::Input { vdb: vdb.id, from: from(&vdb), requested_ms };
        one(vdb.id, &vdb.name, vdb.parent.owner, &input)
    });
    let each = each.collect::<Result<_, Failure>>()?;
    Ok(Input { group: group.id, name: group.name.clone(), of: group.group.clone(), at, each })
}

/// Opens one moment of their parents in all VDBs.
pub fn submit_refresh(
    parts: &Arc<Parts>,
    name: &str,
    at: Option<Timestamp>,
) -> Result<JobId, Failure> {
    let group = groups::vdb_group(parts, name)?;
    room::check_takes_on(parts, "a refresh")?;
    for vdb in vdbs_of(parts, &group)? {
        vdb::check_unprotected(&vdb)?;
        shares::check(parts, vdb.owner)?;
        vdb::check_parent(parts, &vdb)?;
        check_parent(parts, vdb.parent.owner, at)?;
    }
    // Which moment, is agreed on by the job.
    let input = asked_of_all(parts, &group, at, |vdb| Some((vdb.parent.owner, Moment::Latest)))?;
    parts.submit(submission_of_parents(JobKind::GroupRefresh, &input))
}

/// Goes back to the bookmarks that were set together.
pub fn submit_rewind(parts: &Arc<Parts>, name: &str, bookmark: &str) -> Result<JobId, Failure> {
    let group = groups::vdb_group(parts, name)?;
    room::check_takes_on(parts, "a rewind")?;
    let to = |vdb: &Vdb| Moment::Bookmark(mark(bookmark, &group, vdb));
    for vdb in vdbs_of(parts, &group)? {
        vdb::check_unprotected(&vdb)?;
        shares::check(parts, vdb.owner)?;
        check(parts, vdb.id.into(), &to(&vdb))?;
    }
    let input = asked_of_all(parts, &group, None, |vdb| Some((vdb.id.into(), to(vdb))))?;
    parts.submit(submission(JobKind::GroupRewind, &input))
}

/// The name of the bookmark on one of the VDBs: that of its member comes behind both names.
fn mark(bookmark: &str, group: &VdbGroup, vdb: &Vdb) -> String {
    let member = vdb.name.strip_prefix(group.name.as_str()).unwrap_or(&vdb.name);
    format!("{bookmark}{member}")
}

/// Sets a bookmark on each VDB.
pub fn submit_bookmark(parts: &Arc<Parts>, name: &str, bookmark: &str) -> Result<JobId, Failure> {
    let group = groups::vdb_group(parts, name)?;
    let (mut each, mut locks) = (Vec::new(), Vec::new());
    for vdb in vdbs_of(parts, &group)? {
        let name: ObjectName = mark(bookmark, &group, &vdb).parse()?;
        bookmark::check_free(parts, &name)?;
        locks.push(bookmark::lock(&name));
        let id = parts.catalog.allocate::<Bookmark>()?;
        let (owner, moment) = (vdb.id.into(), Moment::Latest);
        let input = bookmark::Input { bookmark: id, name, owner, moment };
        each.push(one(vdb.id, &vdb.name, vdb.parent.owner, &input)?);
    }
    let VdbGroup { id, name, group: of, .. } = group;
    let input = Input { group: id, name, of, at: None, each };
    let submission = Submission::new(JobKind::GroupBookmark, &input.name, &input).shared(id);
    let submission = input.each.iter().fold(submission, |all, one| all.shared(one.vdb));
    parts.submit(locks.into_iter().fold(submission, Submission::exclusive))
}

/// Starts all VDBs; those that run stay as they are.
pub fn submit_start(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let group = groups::vdb_group(parts, name)?;
    vdbs_of(parts, &group)?.iter().try_for_each(vdb::check_start)?;
    let input = asked_of_all(parts, &group, None, |_| None)?;
    parts.submit(submission(JobKind::GroupStart, &input))
}

/// Stops all VDBs; those that are stopped stay so.
pub fn submit_stop(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let group = groups::vdb_group(parts, name)?;
    vdbs_of(parts, &group)?.iter().try_for_each(|vdb| losses::check(parts, vdb))?;
    let input = asked_of_all(parts, &group, None, |_| None)?;
    parts.submit(submission(JobKind::GroupStop, &input))
}

/// Deletes all VDBs, and the VDB group with them.
pub fn submit_delete(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let group = groups::vdb_group(parts, name)?;
    vdbs_of(parts, &group)?.iter().try_for_each(vdb::check_unprotected)?;
    let input = asked_of_all(parts, &group, None, |_| None)?;
    parts.submit(submission(JobKind::GroupDelete, &input))
}

fn register(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    parts.catalog.put(&VdbGroup {
        id: input.group,
        name: input.name,
        group: input.of,
        vdbs: input.each.iter().map(|one| one.vdb).collect(),
        moment: None,
        created_at: parts.now(),
    })?;
    each(context, provision::register)
}

fn unregister(context: &Context) -> Result<(), Failure> {
    undo_each(context, provision::unregister)?;
    let input: Input = context.input()?;
    context.app().catalog.delete::<VdbGroup>(input.group)?;
    Ok(())
}

/// Decides on the moment to open in all: the latest that is received of every source, each of which is asked once.
fn agree(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    if let Some(at) = input.at {
        return context.set(MOMENT, &at);
    }
    let (mut agreed, mut silent) = (None::<Timestamp>, Vec::new());
    for one in &input.each {
        let Owner::Dsource(id) = one.parent else { return Err(no_dsource(one.parent)) };
        let (time, missed) = latest_of(context, id)?;
        agreed = Some(agreed.map_or(time, |agreed| agreed.min(time)));
        silent.extend(missed);
    }
    let moment = agreed.ok_or_else(|| Failure::internal("a VDB group without VDBs"))?;
    if !silent.is_empty() {
        let age = parts.now().duration_since(moment).as_secs().max(0).unsigned_abs();
        let age = format_duration(Duration::from_secs(age));
        let why = silent.join("; ");
        context.note(format!("all show {moment:.0}, {age} ago: {why}"))?;
    }
    context.set(MOMENT, &moment)
}

/// Up to when a source is received, after it was asked; and why it was not where it did not answer.
fn latest_of(context: &Context, id: DsourceId) -> Result<(Timestamp, Option<String>), Failure> {
    let dsource: Dsource = context.app().catalog.get(id)?;
    let follower = context.app().need_follower(&dsource)?;
    let missed = match catch_up_with(context, &follower, &Moment::Latest) {
        Err(cancelled) if cancelled.code == ErrorKind::Cancelled => return Err(cancelled),
        asked => asked.err().map(|failure| failure.message),
    };
    let received = follower.indexed().ok_or_else(|| {
        Failure::new(
            ErrorKind::MomentUnavailable,
            format!("nothing of '{}' is received yet", dsource.name),
            format!("see how far it is: offshoot dsource show {}", dsource.name),
        )
    })?;
    Ok((received.time, missed))
}

fn resolve_agreed(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    let moment = Moment::At(context.need(MOMENT)?);
    for one in &input.each {
        resolve_from(&part(context, one)?, one.parent, &moment)
            .map_err(|failure| named(failure, &one.name))?;
    }
    Ok(())
}

/// The moment that all show from now on.
fn record_moment(context: &Context) -> Result<(), Failure> {
    let (input, moment): (Input, _) = (context.input()?, context.get(MOMENT)?);
    context.app().catalog.update::<VdbGroup>(input.group, |group| group.moment = moment)?;
    Ok(())
}

fn publish_new(context: &Context) -> Result<(), Failure> {
    each(context, provision::publish)?;
    record_moment(context)
}

fn publish_replacements(context: &Context) -> Result<(), Failure> {
    each(context, vdb::publish_replacement)?;
    record_moment(context)
}

fn forget(context: &Context) -> Result<(), Failure> {
    each(context, vdb::forget)?;
    let input: Input = context.input()?;
    context.app().catalog.delete::<VdbGroup>(input.group)?;
    context.app().clear_all(&input.name)
}
