//! Failover, on the side that sent. Planned (`jobs::failover::planned` is the other side): what the peer has of this engine is
//! stopped, the last of it is sent, and the peer is told that it may take over. Otherwise the engine that comes back learns
//! of it by its next call, and what was taken over stops.
//!
//! # Invariants
//! 1. The peer is told only when all has stopped and the peer has the last state of it.
//! 2. What is stopped is noted before. It starts again by itself only if the peer was not told, or says that it no longer waits.

use super::course::{Course, Sending};
use super::courses::Courses;
use super::{included, is_end_of_engine};
use crate::core::peers;
use crate::jobs::snapshot::{self, catch_up_with};
use crate::jobs::{dsource, vdb};
use crate::parts::{Context, Parts};
use offshoot_domain::{
    Dsource, DsourceState, HandedOver, Moment, Owner, Peer, Profile, Readiness, Snapshot,
    SnapshotKind, Vdb, VdbState,
};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId, PeerId, VdbId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Hands over, as the peer asks for it; whether the peer has taken over. Otherwise all goes on as before.
///
/// # Errors
/// What keeps it from being stopped or sent: then it goes on as before. `EngineUnreachable` while it is not known whether the
/// peer has taken over: then it stays stopped, and the next run asks.
pub fn hand_over(courses: &mut Courses<'_>, sending: &mut Sending) -> Result<bool, Failure> {
    let (context, peer) = (courses.context(), courses.peer().id);
    if !claim(context, peer)? {
        return Ok(false);
    }
    if let Err(failure) = stop_and_send(courses, sending) {
        return give_up(context, peer, failure);
    }
    note(context, peer, |begun| begun.told = true)?;
    tell(courses.first())
}

/// Goes on where a run before this one has ended in the middle of it.
///
/// # Errors
/// As those of [`hand_over`].
pub fn go_on(courses: &mut Courses<'_>, sending: &mut Sending) -> Result<bool, Failure> {
    let (context, peer) = (courses.context(), courses.peer().id);
    if !claim(context, peer)? {
        return Ok(false);
    }
    let begun = context.app().catalog.get::<Peer>(peer)?.handed_over;
    if begun.is_some_and(|begun| begun.told) {
        return tell(courses.first());
    }
    match courses.first().ask_whether_to_hand_over() {
        Ok(true) => hand_over(courses, sending),
        Ok(false) => take_back(context, peer).map(|()| false),
        Err(failure) => give_up(context, peer, failure),
    }
}

/// The peer was not told: all goes on. Where the engine ends, the next one sees to it.
fn give_up(context: &Context, peer: PeerId, failure: Failure) -> Result<bool, Failure> {
    if !is_end_of_engine(context, &failure)? {
        take_back(context, peer)?;
    }
    Err(failure)
}

/// Whether it is this run that hands over: not where that of another profile is at it.
fn claim(context: &Context, peer: PeerId) -> Result<bool, Failure> {
    let (parts, by) = (context.app(), context.job_id());
    let at_work: Vec<JobId> = parts.catalog.unsettled_jobs()?.iter().map(|job| job.id).collect();
    let claim = |peer: &mut Peer| {
        let fresh = HandedOver { by, stopped: Vec::new(), told: false };
        let begun = peer.handed_over.get_or_insert(fresh);
        if !at_work.contains(&begun.by) {
            begun.by = by;
        }
    };
    let peer = parts.catalog.update(peer, claim)?;
    Ok(peer.handed_over.is_some_and(|begun| begun.by == by))
}

fn note(context: &Context, peer: PeerId, what: impl Fn(&mut HandedOver)) -> Result<(), Failure> {
    context.app().catalog.update(peer, |peer: &mut Peer| {
        if let Some(begun) = &mut peer.handed_over {
            what(begun);
        }
    })?;
    Ok(())
}

fn stop_and_send(courses: &mut Courses<'_>, sending: &mut Sending) -> Result<(), Failure> {
    let (context, peer) = (courses.context(), courses.peer());
    let parts = context.app();
    let profiles = peers::profiles_to(parts, peer.id)?;
    let mut owners = BTreeSet::new();
    for profile in &profiles {
        owners.extend(included(parts, profile)?);
    }
    for owner in &owners {
        check_stops(parts, *owner)?;
    }
    context.note(format!(
        "'{}' takes over: stopping what it has, to send the last of it",
        peer.name
    ))?;
    let id = peer.id;
    let mut vdbs = Vec::new();
    for owner in owners {
        match owner {
            Owner::Dsource(dsource) => stop_dsource(context, id, &parts.catalog.get(dsource)?)?,
            Owner::Vdb(vdb) => {
                stop_vdb(context, id, vdb)?;
                vdbs.push(vdb);
            }
        }
    }
    vdbs.into_iter().try_for_each(|vdb| wait_ready(context, vdb))?;
    profiles.iter().try_for_each(|profile| courses.send_all(profile, sending))
}

/// Refuses what has no last state, before anything is stopped.
fn check_stops(parts: &Parts, owner: Owner) -> Result<(), Failure> {
    let Owner::Vdb(id) = owner else { return Ok(()) };
    let vdb: Vdb = parts.catalog.get(id)?;
    if matches!(vdb.state, VdbState::Running | VdbState::Stopped) {
        return Ok(());
    }
    let message =
        format!("'{}' is {}: its last state cannot be sent", vdb.name, vdb.state.as_str());
    let hint = format!("start it, or delete it: offshoot vdb start {}", vdb.name);
    Err(Failure::new(ErrorKind::WrongState, message, hint))
}

/// Notes what is about to be stopped.
fn note_stopped(context: &Context, peer: PeerId, owner: Owner) -> Result<(), Failure> {
    note(context, peer, |begun| {
        if !begun.stopped.contains(&owner) {
            begun.stopped.push(owner);
        }
    })
}

fn stop_vdb(context: &Context, peer: PeerId, id: VdbId) -> Result<(), Failure> {
    let parts = context.app();
    let mut alive = || context.check_cancelled();
    let found: Vdb = parts.catalog.get(id)?;
    if found.state == VdbState::Running {
        note_stopped(context, peer, id.into())?;
        parts.see_through(vdb::submit_stop(parts, &found.name)?, &mut alive)?;
    }
    let taken = snapshot::submit_take(parts, id.into(), &found.name, SnapshotKind::Policy)?;
    parts.see_through(taken, &mut alive)
}

/// Only what is ready is sent of a VDB.
fn wait_ready(context: &Context, id: VdbId) -> Result<(), Failure> {
    let parts = context.app();
    let found: Vdb = parts.catalog.get(id)?;
    loop {
        context.check_cancelled()?;
        let all: Vec<Snapshot> = parts.catalog.list_of(id)?;
        match all.iter().max_by_key(|one| one.id).map(|one| &one.readiness) {
            Some(Readiness::Pending) => context.clock().sleep(LOOK),
            Some(Readiness::Failed { reason }) => {
                let message = format!("the last state of '{}' does not open: {reason}", found.name);
                let hint = format!("see its snapshots: offshoot snapshot list {}", found.name);
                return Err(Failure::new(ErrorKind::DataDamaged, message, hint));
            }
            _ => return Ok(()),
        }
    }
}

fn stop_dsource(context: &Context, peer: PeerId, found: &Dsource) -> Result<(), Failure> {
    if found.state != DsourceState::Active {
        return Ok(());
    }
    let parts = context.app();
    note_stopped(context, peer, found.id.into())?;
    // Whoever takes over asks the source for what is lacking.
    if let Err(failure) = catch_up_with(context, &*parts.need_follower(found)?, &Moment::Latest) {
        context.check_cancelled()?;
        context
            .note(format!("'{}' is as of what was received: {}", found.name, failure.message))?;
    }
    let paused = dsource::submit_pause(parts, &found.name)?;
    parts.see_through(paused, &mut || context.check_cancelled())
}

/// Tells the peer, until it is known whether it has taken over.
fn tell(course: &mut Course<'_>) -> Result<bool, Failure> {
    let (context, peer) = (course.context(), course.peer().id);
    loop {
        if course.is_asked_to_hand_over() && course.hand_over() {
            return taken_over(context, peer).map(|()| true);
        }
        match course.ask_whether_to_hand_over() {
            Ok(true) => context.clock().sleep(LOOK),
            Ok(false) => return take_back(context, peer).map(|()| false),
            Err(_) if course.is_taken_over() => {
                return taken_over(context, peer).map(|()| true);
            }
            Err(failure) => {
                let message = format!(
                    "it is not known whether '{}' has taken over, and what it has stays stopped: {}",
                    course.peer().name,
                    failure.message
                );
                let hint = "run it again when the other engine can be reached; if that is lost: offshoot vdb start, dsource resume";
                return Err(Failure::new(failure.code, message, hint));
            }
        }
    }
}

/// All that was stopped starts again. What does not is said, and keeps nothing else from it.
fn take_back(context: &Context, peer: PeerId) -> Result<(), Failure> {
    let parts = context.app();
    let name = parts.catalog.get::<Peer>(peer)?.name;
    for owner in stopped(parts, peer)? {
        if let Err(failure) = start(parts, owner) {
            context.note(format!("{owner} was not started again: {}", failure.message))?;
        }
    }
    parts.catalog.update(peer, |peer: &mut Peer| peer.handed_over = None)?;
    context.note(format!("'{name}' does not take over: what was stopped for it goes on here"))
}

fn stopped(parts: &Parts, peer: PeerId) -> Result<Vec<Owner>, Failure> {
    let peer: Peer = parts.catalog.get(peer)?;
    Ok(peer.handed_over.map(|HandedOver { stopped, .. }| stopped).unwrap_or_default())
}

fn start(parts: &Arc<Parts>, owner: Owner) -> Result<(), Failure> {
    let job = match owner {
        Owner::Vdb(id) => vdb::submit_start(parts, &parts.catalog.get::<Vdb>(id)?.name)?,
        Owner::Dsource(id) => {
            let dsource: Dsource = parts.catalog.get(id)?;
            if dsource.state == DsourceState::Active {
                return Ok(());
            }
            dsource::submit_resume(parts, &dsource.name)?
        }
    };
    parts.see_through(job, &mut || Ok(()))
}

/// What the peer has taken over is stopped, once, and says so. Whoever starts it again knows.
///
/// # Errors
/// What keeps it from being stopped: the next call tries it again.
pub fn taken_over(context: &Context, id: PeerId) -> Result<(), Failure> {
    let parts = context.app();
    let peer: Peer = parts.catalog.get(id)?;
    if peer.relieved_at.is_some() {
        return Ok(());
    }
    let profiles = peers::profiles_to(parts, id)?;
    let owners: BTreeSet<Owner> = match &peer.handed_over {
        Some(handed_over) => handed_over.stopped.iter().copied().collect(),
        None => profiles.iter().flat_map(|profile| profile.sent.keys().copied()).collect(),
    };
    for owner in owners {
        match owner {
            Owner::Vdb(id) => relieve_vdb(parts, id, &peer)?,
            Owner::Dsource(id) => relieve_dsource(parts, id, &peer)?,
        }
    }
    for profile in profiles {
        parts.catalog.update(profile.id, |profile: &mut Profile| profile.paused = true)?;
    }
    let now = parts.now();
    parts.catalog.update(id, |peer: &mut Peer| {
        (peer.handed_over, peer.relieved_at) = (None, Some(now));
    })?;
    context.note(format!(
        "'{}' has taken over: what it has is stopped here, and goes on there",
        peer.name
    ))
}

fn relieve_vdb(parts: &Arc<Parts>, id: VdbId, peer: &Peer) -> Result<(), Failure> {
    // It may have been deleted.
    let Some(vdb) = parts.catalog.find::<Vdb>(id)? else { return Ok(()) };
    if matches!(vdb.state, VdbState::Running | VdbState::Failed) {
        parts.see_through(vdb::submit_stop(parts, &vdb.name)?, &mut || Ok(()))?;
    }
    let hint =
        format!("use it there; to use this one all the same: offshoot vdb start {}", vdb.name);
    parts.catalog.update(id, |vdb: &mut Vdb| vdb.problem = Some(has_it(peer, hint.clone())))?;
    Ok(())
}

fn relieve_dsource(parts: &Arc<Parts>, id: DsourceId, peer: &Peer) -> Result<(), Failure> {
    let Some(dsource) = parts.catalog.find::<Dsource>(id)? else { return Ok(()) };
    match dsource.state {
        DsourceState::Active => {
            parts.see_through(dsource::submit_pause(parts, &dsource.name)?, &mut || Ok(()))?;
        }
        DsourceState::Paused => {}
        _ => return Ok(()),
    }
    let hint = format!(
        "when it follows its source there: offshoot dsource unlink {}, as its slot keeps the source's log",
        dsource.name
    );
    let change = |dsource: &mut Dsource| dsource.problem = Some(has_it(peer, hint.clone()));
    parts.catalog.update(id, change)?;
    Ok(())
}

fn has_it(peer: &Peer, hint: String) -> Failure {
    Failure::new(ErrorKind::WrongState, format!("'{}' has taken it over", peer.name), hint)
}
