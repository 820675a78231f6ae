//! Warm copies: VDBs of the latest moment that run before anybody asks for one, and are handed out by giving them a name.

use crate::core::job_kind::JobKind;
use crate::core::keys::vdb_key;
use crate::history::names;
use crate::jobs::hooks;
use crate::jobs::provision::{self, check_share};
use crate::parts::{Context, Parts};
use offshoot_domain::{Care, Hook, HookEvent, ObjectName, Owner, Parent, Timings, Vdb, VdbState};
use offshoot_types::{ErrorKind, Failure, JobId, UserId, VdbId};
use offshoot_workflow::{Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What to hand out.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Input {
    vdb: VdbId,
    name: ObjectName,
    user: Option<UserId>,
    /// Jobs from before this was kept have none.
    #[serde(default)]
    care: Care,
    #[serde(default)]
    hooks: BTreeMap<HookEvent, Hook>,
    requested_ms: u64,
}

/// Whose a warm copy is to be, and what is said about it.
pub struct Wanted<'a> {
    pub name: &'a ObjectName,
    pub user: Option<UserId>,
    pub care: &'a Care,
    /// What runs in it; the texts are kept already.
    pub hooks: &'a BTreeMap<HookEvent, Hook>,
}

/// The workflow. Its first step is one transaction: a copy is handed out, or it is not.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::VdbHandOut)
        .point_of_no_return()
        .step_without_undo("hand_out", hand_out)
        .ending("hook", hooks::after_provision)
}

/// The warm copies of a dSource, those of the latest moment first.
pub fn copies_of(parts: &Parts, owner: Owner) -> Result<Vec<Vdb>, Failure> {
    let all = parts.catalog.all::<Vdb>()?;
    let of_it = |vdb: &&Vdb| vdb.warm && vdb.parent.owner == owner;
    let mut copies: Vec<Vdb> = all.iter().filter(of_it).cloned().collect();
    copies.sort_by_key(|vdb| std::cmp::Reverse((vdb.moment.map(|moment| moment.time), vdb.id)));
    Ok(copies)
}

/// Starts a job that hands out a warm copy; none: there is none that could be.
pub fn submit_hand_out(
    parts: &Arc<Parts>,
    from: Owner,
    wanted: Wanted<'_>,
    requested_ms: u64,
) -> Result<Option<JobId>, Failure> {
    let Wanted { name, user, care, hooks } = wanted;
    names::check_free(parts, name)?;
    for copy in copies_of(parts, from)? {
        let ready = copy.state == VdbState::Running
            && !parts.runner()?.is_busy(copy.id)
            && parts.servers.is_running(&vdb_key(copy.id));
        if !ready {
            continue;
        }
        check_share(parts, user, copy.id)?;
        let (name, care, hooks) = (name.clone(), care.clone(), hooks.clone());
        let input = Input { vdb: copy.id, name, user, care, hooks, requested_ms };
        let submission = Submission::new(JobKind::VdbHandOut, &input.name, &input)
            .exclusive(format!("name:{}", input.name))
            .exclusive(copy.id)
            .shared(from);
        match parts.runner()?.submit(parts, submission) {
            // Somebody else was quicker with this one.
            Err(failure) if failure.code == ErrorKind::Busy => {}
            submitted => return submitted.map(Some),
        }
    }
    Ok(None)
}

/// Starts a job that makes a warm copy.
pub fn submit_new(parts: &Arc<Parts>, parent: Parent) -> Result<JobId, Failure> {
    let id = parts.catalog.allocate::<Vdb>()?;
    let name = format!("warm-{id}").parse()?;
    let usual = provision::Input::of_latest(parts, id, name, parent);
    provision::submit(parts, provision::Input { warm: true, ..usual })
}

fn hand_out(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let Input { vdb, name, user, care, hooks, requested_ms } = context.input()?;
    let (now, total_ms) = (parts.now(), parts.elapsed_ms().saturating_sub(requested_ms));
    parts.catalog.update::<Vdb>(vdb, |vdb| {
        // Repeated after a crash, it changes nothing more.
        if std::mem::take(&mut vdb.warm) {
            (vdb.name, vdb.owner, vdb.created_at) = (name.clone(), user, now);
            vdb.care = care.clone();
            vdb.hooks = hooks.clone();
            vdb.timings = Timings { total_ms, ..Timings::default() };
        }
    })?;
    Ok(())
}
