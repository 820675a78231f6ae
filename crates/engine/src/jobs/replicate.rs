//! Sends what a profile includes to another engine: of each object a state as of now, of which the other engine takes what it
//! lacks. A connection that ends is made again; the other engine knows what it has.

mod course;
mod courses;
mod handover;

use crate::core::job_kind::JobKind;
use crate::core::topic::Topic;
use crate::jobs::replica::go_on;
use crate::parts::{Context, Parts};
use course::{Run, Sending};
use courses::Courses;
use jiff::Timestamp;
use offshoot_domain::{
    Dsource, DsourceState, Included, Owner, Peer, Profile, ProfileRun, Replica, Vdb, is_masked,
};
use offshoot_types::{ErrorKind, Failure, JobId, ProfileId};
use offshoot_workflow::{Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The shortest time between two rounds of a profile that always runs, from beginning to beginning.
const ROUNDS_MIN: Duration = Duration::from_millis(500);
/// The longest: snapshots and new objects are not waited for otherwise.
const ROUNDS_MAX: Duration = Duration::from_secs(5);
/// Between two looks at whether there is something new.
const LOOK: Duration = Duration::from_millis(50);

/// What to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Input {
    profile: ProfileId,
}

/// The workflow. It changes nothing here that has to be undone.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::ReplicationRun).step_without_undo("send", send).goes_on()
}

/// Starts a run.
///
/// # Errors
/// `Busy` while one is at work.
pub fn submit(parts: &Arc<Parts>, profile: &Profile, of_engine: bool) -> Result<JobId, Failure> {
    let input = Input { profile: profile.id };
    let submission = Submission::new(JobKind::ReplicationRun, &profile.name, &input);
    let submission = submission.exclusive(profile.id);
    let submission = if of_engine { submission.of_engine() } else { submission };
    parts.submit(submission)
}

/// What a profile includes now.
///
/// # Errors
/// The catalog's.
pub fn included(parts: &Parts, profile: &Profile) -> Result<Vec<Owner>, Failure> {
    let mut all = match &profile.include {
        Included::All => all(parts, profile)?,
        Included::Objects(objects) => there(parts, objects)?,
    };
    if profile.replicas {
        let more = replicas(parts, profile)?;
        all.extend(more.into_iter().filter(|one| !all.contains(one)).collect::<Vec<_>>());
    }
    Ok(all)
}

fn there(parts: &Parts, objects: &[Owner]) -> Result<Vec<Owner>, Failure> {
    let mut there = Vec::with_capacity(objects.len());
    for owner in objects {
        let found = match owner {
            Owner::Dsource(id) => parts.catalog.find::<Dsource>(*id)?.is_some(),
            Owner::Vdb(id) => parts.catalog.find::<Vdb>(*id)?.is_some(),
        };
        there.extend(found.then_some(*owner));
    }
    Ok(there)
}

/// The copies of others' that may be sent on: those that have not passed the peer.
fn replicas(parts: &Parts, profile: &Profile) -> Result<Vec<Owner>, Failure> {
    let Some(peer) = parts.catalog.find::<Peer>(profile.peer)? else { return Ok(Vec::new()) };
    let replicas = parts.catalog.list::<Replica>()?.into_iter();
    let sent = replicas
        .filter(|one| !one.has_passed(&peer.engine) && (one.masked || !profile.masked_only));
    Ok(sent.map(|one| one.id.into()).collect())
}

fn all(parts: &Parts, profile: &Profile) -> Result<Vec<Owner>, Failure> {
    let wanted = |identity: &str| !profile.masked_only || is_masked(identity);
    let dsources = parts.catalog.list::<Dsource>()?;
    let own = dsources.iter().filter(|one| one.state != DsourceState::Replica);
    let own = own.filter(|one| wanted(&one.identity)).map(|one| one.id.into());
    let vdbs = parts.catalog.list::<Vdb>()?;
    // Nobody has given warm copies their names.
    let vdbs = vdbs
        .iter()
        .filter(|one| !one.warm && wanted(&one.source_identity))
        .map(|one| one.id.into());
    Ok(own.chain(vdbs).collect())
}

/// One round, or of a profile that always runs one after the other.
fn send(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let mut profile: Profile = parts.catalog.get(input.profile)?;
    let job = context.job_id();
    let resumed = profile.running == Some(job);
    parts.catalog.update(profile.id, |one: &mut Profile| one.running = Some(job))?;
    let peer: Peer = parts.catalog.get(profile.peer)?;
    let run = Run::new(context, peer, profile.bytes_per_second_max);
    let mut courses = Courses::new(&run, profile.connections);
    let mut sending = Sending { resumed, ..Sending::default() };
    loop {
        let (started_at, since) = (parts.now(), context.clock().elapsed());
        let mut done = send_round(&mut courses, &profile, &mut sending);
        if done.is_ok() && profile.continuous {
            record(context, &profile, sending, started_at, &Round::GoesOn)?;
            sending = Sending::default();
            match await_more(context, profile.id, since) {
                Ok(Some(more)) => {
                    profile = more;
                    continue;
                }
                Ok(None) => {}
                Err(failure) => done = Err(failure),
            }
        }
        if let Err(failure) = &done
            && is_end_of_engine(context, failure)?
        {
            return done;
        }
        record(context, &profile, sending, started_at, &Round::Ended(done.clone()))?;
        return done;
    }
}

/// Whether a run fails because the engine ends: the next one goes on.
fn is_end_of_engine(context: &Context, failure: &Failure) -> Result<bool, Failure> {
    let job = context.app().runner()?.job(context.job_id())?;
    Ok(failure.code == ErrorKind::Cancelled && !job.cancel_requested)
}

/// Sends all of it, and hands over if the peer asks for that; the profile is paused where the peer has taken over.
fn send_round(
    courses: &mut Courses<'_>,
    profile: &Profile,
    sending: &mut Sending,
) -> Result<(), Failure> {
    let peer: Peer = courses.context().app().catalog.get(courses.peer().id)?;
    if peer.knows_old_key {
        // It is told by the next connection.
        courses.hang_up();
    }
    if peer.handed_over.is_some() && handover::go_on(courses, sending)? {
        return Ok(());
    }
    let sent = courses.send_all(profile, sending);
    if courses.is_taken_over() {
        handover::taken_over(courses.context(), peer.id)?;
    }
    sent?;
    if courses.is_asked_to_hand_over() {
        handover::hand_over(courses, sending)?;
    }
    Ok(())
}

/// How a round has ended.
enum Round {
    /// Well, and another one comes.
    GoesOn,
    /// And with it the run.
    Ended(Result<(), Failure>),
}

fn record(
    context: &Context,
    profile: &Profile,
    sending: Sending,
    started_at: Timestamp,
    round: &Round,
) -> Result<(), Failure> {
    let parts = context.app();
    let (goes_on, error) = match round {
        Round::GoesOn => (true, None),
        Round::Ended(done) => (false, done.clone().err()),
    };
    let run = ProfileRun {
        job: context.job_id(),
        started_at,
        ended_at: parts.now(),
        objects: sending.objects,
        sent_bytes: sending.sent_bytes,
        unique_bytes: sending.unique_bytes,
        saved_bytes: sending.saved_bytes,
        resumed: sending.resumed,
        error: error.clone(),
    };
    parts.catalog.update(profile.id, |one: &mut Profile| {
        one.sent.extend(sending.marks);
        if error.is_none() {
            one.sent_as_of = Some(started_at);
        }
        match goes_on {
            true => one.went_on(run),
            false => one.ended(run),
        }
    })?;
    match error {
        None => parts.clear(&profile.name, Topic::Replication),
        Some(failure) if failure.code == ErrorKind::Cancelled => {}
        Some(failure) => {
            let message = format!("'{}' was not replicated: {}", profile.name, failure.message);
            let failure = Failure::new(failure.code, message, failure.hint);
            parts.raise(&profile.name, Topic::Replication, &failure);
        }
    }
    Ok(())
}

/// Waits until there is something new to send of a profile that always runs; none if it is paused. `since` is when the
/// last round began.
fn await_more(
    context: &Context,
    id: ProfileId,
    since: Duration,
) -> Result<Option<Profile>, Failure> {
    let parts = context.app();
    loop {
        go_on(context).map_err(|error| error.failure())?;
        let profile: Profile = parts.catalog.get(id)?;
        if profile.paused {
            return Ok(None);
        }
        let passed = context.clock().elapsed().saturating_sub(since);
        if passed >= ROUNDS_MAX || (passed >= ROUNDS_MIN && has_more(parts, &profile)?) {
            return Ok(Some(profile));
        }
        context.clock().sleep(LOOK);
    }
}

/// Whether a dSource that is included has more log than the peer.
fn has_more(parts: &Parts, profile: &Profile) -> Result<bool, Failure> {
    let more = |owner: &Owner| {
        let Owner::Dsource(id) = owner else { return false };
        let here = parts.follower(*id).and_then(|follower| follower.indexed());
        let there = profile.sent.get(owner).and_then(|mark| mark.synced_to);
        here.is_some_and(|here| there.is_none_or(|there| here.log > there.log))
    };
    Ok(included(parts, profile)?.iter().any(more))
}
