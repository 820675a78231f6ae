//! A new SnapSync for a dSource whose log cannot continue: its reservation was lost, its source was replaced
//! by one that lacks received log, or the received log is damaged.
//!
//! The dSource gets a new reservation, log, staging and timeflow through the steps of a link. Its name,
//! settings, password and VDBs stay. So does the old timeflow with its log: its moments open until
//! retention takes them. Of a log that is damaged only what opens without it stays: its ready snapshots.
//!
//! ```text
//!  set aside ─▶ steps of a link ─▶ activate ─┤ retire: what the new copy replaces goes
//!      ▲──────undo: as it was──────────┘
//! ```

use crate::core::job_kind::JobKind;
use crate::core::topic::Topic;
use crate::following::follower::Follower;
use crate::following::reservations;
use crate::history::snapshots;
use crate::images::readiness;
use crate::jobs::link::{self, BEFORE};
use crate::parts::{Context, Parts};
use offshoot_domain::{Dsource, DsourceState, Readiness, Snapshot, SnapshotKind, Timeflow};
use offshoot_types::{DatasetId, Failure, JobId, TimeflowId};
use offshoot_workflow::{Key, Submission, Workflow};
use std::sync::Arc;

/// Why a snapshot that was never proved can no longer be opened.
pub const NO_LOG: &str = "the log it needs was given up after the source was copied anew";

/// Key under which the job stores whether the log of before is kept.
const KEEPS: Key<bool> = Key::new("keeps_log");

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    link::copy_steps(Workflow::new(JobKind::DsourceResync).step("set_aside", set_aside, bring_back))
        .step_without_undo("activate", link::activate)
        .point_of_no_return()
        .step_without_undo("retire", retire)
}

/// Starts the job.
pub fn submit(parts: &Arc<Parts>, dsource: &Dsource) -> Result<JobId, Failure> {
    crate::space::room::check_takes_on(parts, "a new copy of a source")?;
    let input = link::Input {
        connector: dsource.connector.clone(),
        dsource: dsource.id,
        name: dsource.name.clone(),
        source: dsource.source.clone(),
        policy: dsource.policy,
    };
    parts.submit(
        Submission::new(JobKind::DsourceResync, &dsource.name, &input).exclusive(dsource.id),
    )
}

/// Stops following and clears the record for a new copy; nothing is deleted yet.
fn set_aside(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let input: link::Input = context.input()?;
    if context.get(KEEPS)?.is_none() {
        let intact = |follower: Arc<Follower>| follower.damage().is_none();
        context.set(KEEPS, &parts.follower(input.dsource).is_some_and(intact))?;
    }
    parts.stop(input.dsource)?;
    if context.get(BEFORE)?.is_none() {
        context.set(BEFORE, &parts.catalog.get::<Dsource>(input.dsource)?)?;
    }
    let dsource = parts.catalog.update::<Dsource>(input.dsource, |dsource| {
        dsource.state = DsourceState::Linking;
        dsource.problem = None;
        dsource.reservation = None;
        dsource.log_dataset = None;
        dsource.staging_dataset = None;
        dsource.timeflow = None;
        dsource.synced_to = None;
    })?;
    // Running proofs read the log that was just closed.
    for snapshot in parts.catalog.list_of::<Snapshot>(dsource.id)? {
        if snapshot.readiness == Readiness::Pending {
            readiness::cancel(parts, snapshot.id)?;
        }
    }
    Ok(())
}

/// Undo: restores the dSource as it was, with its fault.
fn bring_back(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let Some(before) = context.get(BEFORE)? else { return Ok(()) };
    parts.catalog.put(&before)?;
    if parts.follower(before.id).is_some() {
        return Ok(());
    }
    let follow = before.state == DsourceState::Active;
    if let Err(failure) = parts.start(&before, follow) {
        parts.raise(&before.name, Topic::Start, &failure);
    }
    Ok(())
}

/// Gives up what the new copy replaces.
fn retire(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let before: Dsource = context.need(BEFORE)?;
    let keeps = context.get(KEEPS)?.unwrap_or_default() && before.synced_to.is_some();
    let log = before.log_dataset.filter(|_| keeps && before.timeflow.is_some());
    if let Some(timeflow) = before.timeflow {
        match log {
            Some(log) => keep_timeflow(parts, &before, timeflow, log)?,
            None => end_timeflow(parts, &before, timeflow)?,
        }
    }
    reservations::release(parts, &before)?;
    let given_up = before.log_dataset.filter(|_| log.is_none());
    for dataset in [before.staging_dataset, given_up].into_iter().flatten() {
        parts.delete_dataset(dataset)?;
    }
    say(context, &before, log.is_some())?;
    // What was wrong with the old copy is fixed; what is still wrong is found again.
    parts.clear_all(&before.name)
}

/// Says what opens of the time before the new copy.
fn say(context: &Context, before: &Dsource, kept: bool) -> Result<(), Failure> {
    let parts = context.app();
    let dsource: Dsource = parts.catalog.get(before.id)?;
    let new = dsource.timeflow.map(|id| parts.catalog.get::<Timeflow>(id)).transpose()?;
    let begin = new.and_then(|one| Some(one.log.first()?.from.time));
    let (Some(end), Some(begin)) = (before.synced_to.map(|end| end.time), begin) else {
        return Ok(());
    };
    let opens = match kept {
        true => "moments before it open until retention takes them",
        false => "of the time before it only ready snapshots open, as the log of then is damaged",
    };
    context.note(format!(
        "'{}' has a gap from {end:.0} to {begin:.0}, where nothing opens; {opens}: offshoot timeflow show {}",
        before.name, before.name
    ))
}

/// Ends a timeflow whose log is whole: it is kept apart from the new one.
fn keep_timeflow(
    parts: &Parts,
    before: &Dsource,
    id: TimeflowId,
    log: DatasetId,
) -> Result<(), Failure> {
    let now = parts.now();
    parts.catalog.update::<Timeflow>(id, |timeflow| {
        timeflow.ended_at.get_or_insert(now);
        timeflow.dataset = None;
        timeflow.log_dataset = Some(log);
        if let (Some(range), Some(end)) = (timeflow.log.last_mut(), before.synced_to) {
            range.to = end;
        }
    })?;
    Ok(())
}

fn end_timeflow(parts: &Arc<Parts>, before: &Dsource, id: TimeflowId) -> Result<(), Failure> {
    let now = parts.now();
    parts.catalog.update::<Timeflow>(id, |timeflow| {
        timeflow.ended_at.get_or_insert(now);
        timeflow.dataset = None;
        timeflow.log.clear();
    })?;
    let snapshots: Vec<Snapshot> = parts.catalog.list_of(before.id)?;
    for snapshot in snapshots.into_iter().filter(|one| one.timeflow == id) {
        match (&snapshot.readiness, snapshot.kind) {
            // It only made replay short.
            (_, SnapshotKind::RecoveryPoint) => snapshots::free(parts, &snapshot)?,
            (Readiness::Pending, _) => {
                let failed = Readiness::Failed { reason: NO_LOG.to_owned() };
                snapshots::set_readiness(parts, snapshot.id, failed)?;
            }
            (Readiness::Ready { .. } | Readiness::Failed { .. }, _) => {}
        }
    }
    Ok(())
}
