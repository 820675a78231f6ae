//! Removes what retention does not keep: snapshots, log, replaced states of VDBs.
//!
//! Pure functions decide what to give up ([`offshoot_domain::Retention`]); a job does it, if there is
//! anything to do. The job holds its object exclusively, so nobody opens what it deletes or resolves a
//! moment to it. It works in small batches and each round decides again, so an interrupted one need not be
//! resumed.

use crate::core::job_kind::JobKind;
use crate::history::snapshots;
use crate::images::readiness;
use crate::jobs::resync::NO_LOG;
use crate::parts::{Context, Parts};
use crate::space::losses;
use offshoot_catalog::Subject;
use offshoot_domain::{
    Bookmark, Dsource, DsourceState, KeptLog, LogRange, Owner, Pace, Policy, Position, Readiness,
    Snapshot, Timeflow, Vdb,
};
use offshoot_types::{DatasetId, ErrorKind, Failure, LogPosition, SnapshotId, TimeflowId};
use offshoot_workflow::{Submission, Workflow};
use std::collections::HashSet;
use std::sync::Arc;

/// Snapshots of one job: users wait for it, so it is short.
const BATCH_MAX: usize = 200;

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::Retention)
        .step_without_undo("snapshots", give_up_snapshots)
        .step_without_undo("states", give_up_states)
        .step_without_undo("log", give_up_log)
}

/// Starts a job for every object that has something to give up; busy ones should be checked soon.
pub fn submit_due(parts: &Arc<Parts>) -> Result<(), Failure> {
    let dsources = parts.catalog.list::<Dsource>()?.into_iter().map(|one| one.id.into());
    let vdbs = parts.catalog.list::<Vdb>()?.into_iter().map(|one| one.id.into());
    for owner in dsources.chain(vdbs) {
        if !submit_for(parts, owner)? {
            parts.retention_wanted.lock().insert(owner);
        }
    }
    Ok(())
}

/// The same for objects that should be checked soon; busy ones stay in the list.
pub fn submit_wanted(parts: &Arc<Parts>) -> Result<(), Failure> {
    let wanted: Vec<Owner> = parts.retention_wanted.lock().iter().copied().collect();
    for owner in wanted {
        if submit_for(parts, owner)? {
            parts.retention_wanted.lock().remove(&owner);
        }
    }
    Ok(())
}

/// Starts a job for one object if it has something to give up; false while it is busy.
fn submit_for(parts: &Arc<Parts>, owner: Owner) -> Result<bool, Failure> {
    let runner = parts.runner()?;
    if runner.is_busy(owner) {
        return Ok(false);
    }
    let due = Due::find(parts, owner)?.filter(|due| !due.is_nothing());
    let Some(due) = due else { return Ok(true) };
    match runner.submit(
        parts,
        Submission::new(JobKind::Retention, Subject::named(&due.name), &owner)
            .exclusive(owner)
            .of_engine(),
    ) {
        // Somebody was quicker.
        Err(failure) if failure.code == ErrorKind::Busy => Ok(false),
        submitted => submitted.map(|_| true),
    }
}

/// What an object has to give up.
struct Due {
    name: String,
    snapshots: Vec<Snapshot>,
    /// States of a VDB that a rewind or refresh replaced.
    states: Vec<(TimeflowId, DatasetId)>,
    /// The timeflow whose log is kept from a later position on.
    log: Option<(TimeflowId, Position)>,
    /// Ended timeflows of a dSource whose log is too old, with its dataset.
    ended: Vec<(TimeflowId, DatasetId)>,
}

impl Due {
    fn is_nothing(&self) -> bool {
        self.snapshots.is_empty()
            && self.states.is_empty()
            && self.log.is_none()
            && self.ended.is_empty()
    }

    /// None if it is not the time to decide: while a source is copied again, it is open which
    /// history continues, and what a failed dSource has may be all there is.
    fn find(parts: &Parts, owner: Owner) -> Result<Option<Due>, Failure> {
        let (name, policy, timeflow, pace) = match owner {
            Owner::Dsource(id) => match parts.catalog.find::<Dsource>(id)? {
                Some(one) if matches!(one.state, DsourceState::Active | DsourceState::Paused) => {
                    (one.name.to_string(), one.policy, one.timeflow, one.pace)
                }
                _ => return Ok(None),
            },
            Owner::Vdb(id) => match parts.catalog.find::<Vdb>(id)? {
                Some(vdb) => (vdb.name.to_string(), vdb.policy, vdb.timeflow, Pace::default()),
                None => return Ok(None),
            },
        };
        let timeflows: Vec<Timeflow> = parts.catalog.list_of(owner)?;
        let present = timeflows.iter().find(|one| Some(one.id) == timeflow);
        let mut due =
            Due { name, snapshots: Vec::new(), states: Vec::new(), log: None, ended: Vec::new() };
        let kept = due.find_ended(parts, &policy, timeflow, &timeflows);
        due.find_snapshots(parts, owner, (&policy, pace), (present, kept))?;
        if let Owner::Vdb(_) = owner {
            due.find_states(parts, &policy, timeflow, &timeflows);
        }
        Ok(Some(due))
    }

    fn find_snapshots(
        &mut self,
        parts: &Parts,
        owner: Owner,
        (policy, pace): (&Policy, Pace),
        (present, ended): (Option<&Timeflow>, Vec<KeptLog>),
    ) -> Result<(), Failure> {
        let (runner, now) = (parts.runner()?, parts.now());
        let range: Option<(TimeflowId, LogRange)> =
            present.and_then(|one| Some((one.id, *one.log.last()?)));
        let mut snapshots: Vec<Snapshot> = parts.catalog.list_of(owner)?;
        let marked: HashSet<SnapshotId> =
            parts.catalog.list_of::<Bookmark>(owner)?.iter().map(|one| one.snapshot).collect();
        let log = range.map(|(timeflow, range)| KeptLog { timeflow, from: range.from.log });
        let logs = log.into_iter().chain(ended);
        let pinned = |id| marked.contains(&id) || runner.is_busy(id);
        let logs = (logs, pace.spacing(policy.open_within_ms));
        let expired: HashSet<SnapshotId> =
            policy.retention.expired(&snapshots, logs, now, pinned).into_iter().collect();
        let gone = |one: &mut Snapshot| expired.contains(&one.id);
        self.snapshots = snapshots.extract_if(.., gone).take(BATCH_MAX).collect();
        let (Some(log), Some((timeflow, range)), Owner::Dsource(id)) = (log, range, owner) else {
            return Ok(());
        };
        let Some(needed) = policy.retention.log_needed_from(&snapshots, log, now) else {
            return Ok(());
        };
        let base =
            snapshots.iter().filter(|one| one.timeflow == timeflow && one.replay_from == needed);
        let time = base.map(|one| one.position.time).min().unwrap_or(range.from.time);
        let Some(follower) = parts.follower(id) else { return Ok(()) };
        // For a paused dSource it is unknown what staging still has to replay.
        let Some(to) = follower.staging_needs_from()?.map(|from| from.min(needed)) else {
            return Ok(());
        };
        let received = follower.log();
        if received.kept_from(to) > received.kept_from(range.from.log) {
            self.log = Some((timeflow, Position { log: to, time }));
        } else if to >= range.from.log
            && present.is_some_and(|one| one.log.len() == 1)
            && received.holds_before(range.from.log)?
        {
            // Files that were given up and that a crash brought back.
            self.log = Some((timeflow, range.from));
        }
        Ok(())
    }

    /// Finds the logs of ended timeflows that reach back too far, and returns the others.
    fn find_ended(
        &mut self,
        parts: &Parts,
        policy: &Policy,
        present: Option<TimeflowId>,
        timeflows: &[Timeflow],
    ) -> Vec<KeptLog> {
        let horizon = policy.retention.horizon(parts.now());
        let mut kept = Vec::new();
        for one in timeflows.iter().filter(|one| Some(one.id) != present) {
            let Some(dataset) = one.log_dataset else { continue };
            match one.log.last() {
                Some(range) if range.to.time >= horizon => {
                    kept.push(KeptLog { timeflow: one.id, from: range.from.log });
                }
                _ => self.ended.push((one.id, dataset)),
            }
        }
        kept
    }

    fn find_states(
        &mut self,
        parts: &Parts,
        policy: &Policy,
        present: Option<TimeflowId>,
        timeflows: &[Timeflow],
    ) {
        let horizon = policy.retention.keep_all_from(parts.now());
        let old = |one: &&Timeflow| {
            Some(one.id) != present && one.ended_at.is_some_and(|ended_at| ended_at < horizon)
        };
        let datasets = timeflows.iter().filter(old).filter_map(|one| Some((one.id, one.dataset?)));
        self.states = datasets.collect();
    }
}

fn due(context: &Context) -> Result<Option<Due>, Failure> {
    Due::find(context.app(), context.input()?)
}

fn give_up_snapshots(context: &Context) -> Result<(), Failure> {
    let Some(due) = due(context)? else { return Ok(()) };
    let parts = context.app();
    let total = due.snapshots.len() as u64;
    for (done, snapshot) in (0..).zip(&due.snapshots) {
        context.check_cancelled()?;
        context.progress(done, total, "snapshots");
        snapshots::free(parts, snapshot)?;
    }
    context.progress(total, total, "snapshots");
    if due.snapshots.len() == BATCH_MAX {
        parts.retention_wanted.lock().insert(context.input()?);
    }
    Ok(())
}

fn give_up_states(context: &Context) -> Result<(), Failure> {
    let Some(due) = due(context)? else { return Ok(()) };
    let parts = context.app();
    for (timeflow, dataset) in due.states {
        context.check_cancelled()?;
        parts.catalog.update::<Timeflow>(timeflow, |one| one.dataset = None)?;
        parts.delete_dataset(dataset)?;
    }
    match context.input()? {
        Owner::Vdb(id) => losses::report(parts, id),
        Owner::Dsource(_) => Ok(()),
    }
}

/// Gives up the log of an ended timeflow; what opens without it stays.
fn give_up_ended(
    parts: &Parts,
    owner: Owner,
    id: TimeflowId,
    dataset: DatasetId,
) -> Result<(), Failure> {
    parts.catalog.update::<Timeflow>(id, |timeflow| {
        timeflow.log_dataset = None;
        timeflow.log.clear();
    })?;
    for snapshot in parts.catalog.list_of::<Snapshot>(owner)? {
        if snapshot.timeflow == id && snapshot.readiness == Readiness::Pending {
            readiness::cancel(parts, snapshot.id)?;
            let failed = Readiness::Failed { reason: NO_LOG.to_owned() };
            snapshots::set_readiness(parts, snapshot.id, failed)?;
        }
    }
    parts.close_log(id);
    parts.delete_dataset(dataset)
}

/// Ordering rule: the catalog says that the log begins later BEFORE any of it goes, so no moment is
/// promised that could not be opened.
fn give_up_log(context: &Context) -> Result<(), Failure> {
    let owner: Owner = context.input()?;
    let (Some(due), Owner::Dsource(id)) = (due(context)?, owner) else { return Ok(()) };
    for (timeflow, dataset) in &due.ended {
        give_up_ended(context.app(), owner, *timeflow, *dataset)?;
    }
    let Some((timeflow, from)) = due.log else { return Ok(()) };
    let parts = context.app();
    let Some(follower) = parts.follower(id) else { return Ok(()) };
    let mut before = LogPosition::START;
    parts.catalog.update::<Timeflow>(timeflow, |one| {
        if let Some(range) = one.log.last_mut() {
            before = range.from.log;
            range.from = from;
        }
    })?;
    let removed = follower.log().forget_before(from.log)?;
    let (before, from) = (before.0, from.log.0);
    tracing::info!(dsource = due.name, before, from, removed, "log given up");
    Ok(())
}
