//! A new SnapSync for a dSource whose log cannot go on: its slot was lost, its source was replaced by
//! one without log that was received, or the received log is damaged.
//!
//! By the steps of a link the dSource gets a new slot, log, staging and timeflow. Its name, settings,
//! password and VDBs stay. Of the old timeflow only what opens without log stays: its ready snapshots.
//!
//! ```text
//!  set aside ─▶ steps of a link ─▶ activate ─┤ retire: what the new copy replaces goes
//!      ▲──────undo: as it was──────────┘
//! ```

use crate::core::{Context, Core};
use crate::link::{self, BEFORE};
use crate::opening::delete_dataset;
use crate::{follower, left_slots, readiness, snapshots};
use offshoot_domain::{Dsource, DsourceState, Readiness, Snapshot, SnapshotKind, Timeflow};
use offshoot_types::{Failure, JobId, TimeflowId};
use offshoot_workflow::{Submission, Workflow};
use std::sync::Arc;

/// The workflow's name.
const KIND: &str = "dsource_resync";
/// Why a snapshot that was never proved cannot be opened any more.
const NO_LOG: &str = "the log it needs was given up when the source was copied anew";

/// The workflow.
pub fn workflow() -> Workflow<Core> {
    link::copy_steps(Workflow::new(KIND).step("set_aside", set_aside, bring_back))
        .check("activate", link::activate)
        .point_of_no_return()
        .check("retire", retire)
}

/// Starts the job.
pub fn submit(core: &Arc<Core>, dsource: &Dsource) -> Result<JobId, Failure> {
    crate::room::check_takes_on(core, "a new copy of a source")?;
    let input = link::Input {
        dsource: dsource.id,
        name: dsource.name.clone(),
        source: dsource.source.clone(),
        policy: dsource.policy,
    };
    core.submit(Submission::new(KIND, &dsource.name, &input).exclusive(dsource.id))
}

/// Stops following and clears the record for a new copy; nothing is deleted yet.
fn set_aside(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let input: link::Input = context.input()?;
    let follower = core.followers.lock().remove(&input.dsource);
    if let Some(follower) = follower {
        follower.stop()?;
    }
    if context.get::<Dsource>(BEFORE)?.is_none() {
        context.set(BEFORE, &core.catalog.get::<Dsource>(input.dsource)?)?;
    }
    let dsource = core.catalog.update::<Dsource>(input.dsource, |dsource| {
        dsource.state = DsourceState::Linking;
        dsource.problem = None;
        dsource.slot = None;
        dsource.log_dataset = None;
        dsource.staging_dataset = None;
        dsource.timeflow = None;
        dsource.synced_to = None;
    })?;
    // Proofs under way read the log that was just closed.
    for snapshot in core.catalog.list_of::<Snapshot>(dsource.id)? {
        if snapshot.readiness == Readiness::Pending {
            readiness::cancel(core, snapshot.id)?;
        }
    }
    Ok(())
}

/// Undo: the dSource is as it was before, with its fault.
fn bring_back(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let Some(before) = context.get::<Dsource>(BEFORE)? else { return Ok(()) };
    core.catalog.put(&before)?;
    if core.follower(before.id).is_some() {
        return Ok(());
    }
    let follow = before.state == DsourceState::Active;
    if let Err(failure) = follower::start(core, &before, follow) {
        core.raise(&before.name, "start", &failure);
    }
    Ok(())
}

/// Gives up what the new copy replaces.
fn retire(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let before: Dsource = context.need(BEFORE)?;
    if let Some(timeflow) = before.timeflow {
        end_timeflow(core, &before, timeflow)?;
    }
    left_slots::release(core, &before)?;
    for dataset in [before.staging_dataset, before.log_dataset].into_iter().flatten() {
        delete_dataset(core, dataset)?;
    }
    // What was wrong with the old copy is mended; what still is wrong is found again.
    Ok(core.catalog.clear_faults(&before.name)?)
}

fn end_timeflow(core: &Arc<Core>, before: &Dsource, id: TimeflowId) -> Result<(), Failure> {
    let now = core.now();
    core.catalog.update::<Timeflow>(id, |timeflow| {
        timeflow.ended_at.get_or_insert(now);
        timeflow.dataset = None;
        timeflow.log.clear();
    })?;
    let snapshots: Vec<Snapshot> = core.catalog.list_of(before.id)?;
    for snapshot in snapshots.into_iter().filter(|one| one.timeflow == id) {
        match (&snapshot.readiness, snapshot.kind) {
            // It only made replay short.
            (_, SnapshotKind::RecoveryPoint) => snapshots::free(core, &snapshot)?,
            (Readiness::Pending, _) => {
                let failed = Readiness::Failed { reason: NO_LOG.to_owned() };
                snapshots::set_readiness(core, snapshot.id, failed)?;
            }
            (Readiness::Ready { .. } | Readiness::Failed { .. }, _) => {}
        }
    }
    Ok(())
}
