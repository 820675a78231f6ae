//! Failover: the copies of another engine's dSources become this engine's own.
//!
//! ```text
//!  wait ─▶ check ─┤ publish ──────────▶ open
//!  (planned)      │ one transaction:    logs under the new names,
//!                 │ names, states,      faults that say what to do next,
//!                 │ the peer's end      what had come in part goes,
//!                 │                     VDBs are provisioned from the copies of VDBs
//! ```
//! A dSource is [`Failed`](DsourceState::Failed) then, with a problem that says how it follows its source again: a job gives it
//! what a replica lacks ([`way`](crate::jobs::way)). Where its password came with it that job begins by itself
//! ([`ways`](crate::housekeeping::ways)); otherwise it is `dsource set`.
//!
//! # Invariants
//! 1. All of a namespace is taken over, or nothing; the transaction that does it also ends what the peer may send.
//! 2. Nothing of a peer that was taken over is taken in: a job that takes in shares the peer, and looks.

mod again;
mod planned;

use crate::core::job_kind::JobKind;
use crate::core::keys::sent_password_key;
use crate::core::topic::Topic;
use crate::history::names;
use crate::jobs::replica::{self, pull};
use crate::parts::{Context, Parts};
use jiff::Timestamp;
use offshoot_catalog::{Error, Job, Transaction};
use offshoot_domain::{
    Bookmark, Dsource, DsourceState, Incoming, ObjectName, Owner, Peer, Policy, Replica, Vdb,
};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId, PeerId};
use offshoot_workflow::{Key, Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a job may take to end that takes in what the peer sends, once it is cancelled.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// What to take over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    /// The namespace.
    pub namespace: ObjectName,
    /// The peer of that name.
    pub peer: Option<PeerId>,
    /// Names that are given instead of those that the dSources and VDBs had there.
    #[serde(default)]
    pub rename: BTreeMap<String, String>,
    /// Whether the peer is to stop first, and to send the last of what it has.
    #[serde(default)]
    pub planned: bool,
    /// What is there when it is asked for.
    #[serde(flatten)]
    pub copies: Copies,
}

/// The copies of a namespace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Copies {
    /// Its dSources, but for those of VDBs.
    pub dsources: Vec<Taken>,
    /// The copies of VDBs, with the names of the VDBs that are made of them.
    #[serde(default)]
    pub vdbs: Vec<Taken>,
}

/// Key under which the job stores what it takes over.
const COPIES: Key<Copies> = Key::new("copies");

/// A copy that is taken over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Taken {
    /// The copy.
    pub id: DsourceId,
    /// Its name so far.
    pub from: ObjectName,
    /// The name from then on: its own, or that of the VDB.
    pub to: ObjectName,
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::Failover)
        .step("wait", planned::wait, planned::wait_no_longer)
        .step_without_undo("check", check)
        .point_of_no_return()
        .step_without_undo("publish", publish)
        .step_without_undo("open", open)
}

/// Starts the job. What is being taken in from the peer is given up.
///
/// # Errors
/// `AlreadyExists` for a name, `Busy` for a dSource that others use.
pub fn submit(parts: &Arc<Parts>, input: &Input) -> Result<JobId, Failure> {
    check_names(parts, &input.copies)?;
    let mut submission = Submission::new(JobKind::Failover, &input.namespace, input)
        .exclusive(format!("namespace:{}", input.namespace));
    if input.planned {
        // It has all of it alone once the peer has stopped.
        return parts.submit(submission);
    }
    if let Some(peer) = input.peer {
        submission = submission.exclusive(peer);
    }
    for one in &input.copies.dsources {
        let names = [&one.from, &one.to].map(|name| format!("name:{name}"));
        submission = names.into_iter().fold(submission, Submission::exclusive).exclusive(one.id);
    }
    let deadline = parts.clock.elapsed() + ENDS_WITHIN;
    loop {
        let ended = end_intakes(parts, input.peer)?;
        let busy = match parts.submit(submission.clone()) {
            Err(busy) if busy.code == ErrorKind::Busy => busy,
            other => return other,
        };
        // The peer calls again as soon as one has ended.
        if !(ended || end_intakes(parts, input.peer)?) || parts.clock.elapsed() > deadline {
            return Err(busy);
        }
        parts.clock.sleep(PAUSE);
    }
}

/// Cancels the jobs that take in what a peer sends; whether there are any.
fn end_intakes(parts: &Parts, peer: Option<PeerId>) -> Result<bool, Failure> {
    let intakes = peer.map(|peer| intakes(parts, peer)).transpose()?.unwrap_or_default();
    for intake in &intakes {
        // One that can no longer be cancelled is about to end.
        let _ = parts.runner()?.cancel(*intake);
    }
    Ok(!intakes.is_empty())
}

/// The jobs that take in what a peer sends now.
pub fn intakes(parts: &Parts, peer: PeerId) -> Result<Vec<JobId>, Failure> {
    let of_peer = |job: &Job| {
        let input = serde_json::from_value::<replica::Input>(job.input.clone());
        let sent = input.ok().and_then(|input| input.sent);
        JobKind::ReplicationReceive.is_of(job) && sent.is_some_and(|sent| sent.peer == peer)
    };
    let jobs = parts.catalog.unsettled_jobs()?;
    Ok(jobs.iter().filter(|job| of_peer(job)).map(|job| job.id).collect())
}

/// Refuses names that others have, and names that two would get.
fn check_names(parts: &Parts, copies: &Copies) -> Result<(), Failure> {
    for (at, one) in copies.dsources.iter().enumerate() {
        let twice = copies.dsources.iter().take(at).any(|other| other.to == one.to);
        let checked = match twice {
            true => Err(format!("two of them would be '{}'", one.to)),
            false => names::check_free(parts, &one.to).map_err(|taken| taken.message),
        };
        checked.map_err(|why| {
            let hint = format!(
                "remove what has the name, or give another one: --rename {}=NAME",
                one.from.base()
            );
            let message = format!("'{}' cannot be taken over by that name: {why}", one.from);
            Failure::new(ErrorKind::AlreadyExists, message, hint)
        })?;
    }
    Ok(())
}

impl Copies {
    /// Those that are in a namespace now, with the names that they get.
    ///
    /// # Errors
    /// Those of the catalog; `InvalidInput` for a name.
    pub fn of(
        parts: &Parts,
        namespace: &ObjectName,
        rename: &BTreeMap<String, String>,
    ) -> Result<Copies, Failure> {
        let taken = |one: &Dsource| -> Result<Taken, Failure> {
            let name = one.name.base();
            let to = rename.get(name.as_str()).map_or(Ok(name), |given| given.parse())?;
            Ok(Taken { id: one.id, from: one.name.clone(), to })
        };
        let mut copies = Copies { dsources: Vec::new(), vdbs: Vec::new() };
        for (dsource, replica) in present(parts, namespace)? {
            match replica.origin {
                Owner::Dsource(_) => copies.dsources.push(taken(&dsource)?),
                Owner::Vdb(_) => copies.vdbs.push(taken(&dsource)?),
            }
        }
        Ok(copies)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Taken> {
        self.dsources.iter().chain(&self.vdbs)
    }
}

/// The copies that are in a namespace, with where they come from.
fn present(parts: &Parts, namespace: &ObjectName) -> Result<Vec<(Dsource, Replica)>, Failure> {
    let mut copies = Vec::new();
    for dsource in parts.catalog.list::<Dsource>()? {
        let within = dsource.name.namespace().as_ref() == Some(namespace);
        if within && let Some(replica) = parts.catalog.find::<Replica>(dsource.id)? {
            copies.push((dsource, replica));
        }
    }
    copies.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    Ok(copies)
}

/// Looks again, now that nobody else changes anything of it.
fn check(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let now = Copies::of(parts, &input.namespace, &input.rename)?;
    check_names(parts, &now)?;
    let ids = |copies: &Copies| copies.dsources.iter().map(|one| one.id).collect::<Vec<_>>();
    // What came while it waited belongs to it.
    if input.planned || ids(&now) == ids(&input.copies) {
        return context.set(COPIES, &now);
    }
    Err(Failure::new(
        ErrorKind::WrongState,
        format!("what is there of '{}' has just changed", input.namespace),
        "try again",
    ))
}

fn publish(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let copies = context.get(COPIES)?.unwrap_or_else(|| input.copies.clone());
    // They know themselves by their names.
    for one in &copies.dsources {
        replica::close_logs(parts, one.id)?;
    }
    let now = parts.now();
    Ok(parts.catalog.transaction(|tx| take_over(tx, &input, &copies, now))?)
}

fn take_over(
    tx: &Transaction<'_>,
    input: &Input,
    copies: &Copies,
    now: Timestamp,
) -> Result<(), Error> {
    for one in &copies.dsources {
        // None: it was done before.
        let Some(replica) = tx.find::<Replica>(one.id)? else { continue };
        let mut dsource: Dsource = tx.get(one.id)?;
        (dsource.state, dsource.problem) = match dsource.log_dataset {
            None if replica.masked => (DsourceState::Masked, None),
            _ => {
                let known = tx.secret(&sent_password_key(one.id))?.is_some();
                (DsourceState::Failed, Some(problem(&input.namespace, &one.to, known)))
            }
        };
        dsource.name = one.to.clone();
        // One that was set here stays.
        if let (Some(policy), true) = (replica.policy, dsource.policy == Policy::default()) {
            dsource.policy = policy;
        }
        tx.put(&dsource)?;
        for mut bookmark in tx.list_of::<Bookmark>(one.id)? {
            let own = bookmark.name.base();
            if tx.find_named::<Bookmark>(&own)?.is_none() {
                bookmark.name = own;
                tx.put(&bookmark)?;
            }
        }
        tx.delete::<Replica>(one.id)?;
        for mut vdb in tx.list_of::<Vdb>(one.id)? {
            vdb.parent.name = one.to.clone();
            tx.put(&vdb)?;
        }
    }
    // It may have been removed since.
    if let Some(mut peer) = input.peer.map(|peer| tx.find::<Peer>(peer)).transpose()?.flatten() {
        peer.taken_over_at.get_or_insert(now);
        peer.awaited = None;
        tx.put(&peer)?;
    }
    Ok(())
}

/// Why one that was taken over does not follow its source. `known`: its password has come.
fn problem(namespace: &ObjectName, name: &ObjectName, known: bool) -> Failure {
    if known {
        return Failure::new(
            ErrorKind::WrongState,
            format!(
                "'{name}' was taken over from '{namespace}', and does not follow its source yet"
            ),
            format!(
                "it does so soon by itself, where its source is reached from here as from there; otherwise: offshoot dsource set \
                 {name} --source URI"
            ),
        );
    }
    Failure::new(
        ErrorKind::WrongState,
        format!(
            "'{name}' was taken over from '{namespace}', and passwords do not travel: it does not follow its source yet"
        ),
        format!(
            "offshoot dsource set {name} --password-file FILE (with --source URI if it is reached by another way from here)"
        ),
    )
}

fn open(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let copies = context.get(COPIES)?.unwrap_or_else(|| input.copies.clone());
    for one in &copies.dsources {
        parts.clear_all(&one.from)?;
        // It may have been removed since.
        let Some(dsource) = parts.catalog.find::<Dsource>(one.id)? else { continue };
        replica::open_log(parts, one.id)?;
        if let Some(problem) = &dsource.problem {
            parts.raise(&dsource.name, Topic::Source, problem);
        }
        context.note(said(one, &dsource))?;
    }
    for incoming in parts.catalog.list::<Incoming>()? {
        if Some(incoming.peer) == input.peer {
            context.note(format!("'{}' had come in part only, and is gone", incoming.name))?;
            pull::give_up(parts, incoming.id)?;
        }
    }
    let said = copies.vdbs.iter().flat_map(|one| again::make(parts, one));
    said.into_iter().try_for_each(|note| context.note(note))
}

fn said(one: &Taken, dsource: &Dsource) -> String {
    let end = dsource.synced_to.map(|end| format!(" up to {:.0}", end.time)).unwrap_or_default();
    let next = match &dsource.problem {
        Some(problem) => format!("to have it follow its source: {}", problem.hint),
        None => "it follows nothing; mask again to renew it".to_owned(),
    };
    format!("'{}' is '{}' now, with its history{end}; {next}", one.from, one.to)
}
