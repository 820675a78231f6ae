//! Sends what a profile includes to another engine: of each object a state as of now, of which the other engine takes what it
//! lacks. A connection that ends is made again; the other engine knows what it has.

mod course;

use crate::core::job_kind::JobKind;
use crate::core::peers;
use crate::core::topic::Topic;
use crate::history::names;
use crate::jobs::replica::collected::collect;
use crate::parts::{Context, Parts};
use course::{Course, Sending};
use offshoot_domain::{
    Dsource, DsourceState, Included, Manifest, Owner, Peer, Profile, ProfileRun, SentMark, Vdb,
    is_masked,
};
use offshoot_replication::code;
use offshoot_replication::exchange::Giver;
use offshoot_types::{ErrorKind, Failure, JobId, ProfileId};
use offshoot_workflow::{Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    let Included::Objects(objects) = &profile.include else { return all(parts, profile) };
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

fn send(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let profile: Profile = parts.catalog.get(input.profile)?;
    let (job, started_at) = (context.job_id(), parts.now());
    let resumed = profile.running == Some(job);
    parts.catalog.update(profile.id, |one: &mut Profile| one.running = Some(job))?;
    let mut sending = Sending { resumed, ..Sending::default() };
    let done = send_all(context, &profile, &mut sending);
    let by_end = |failure: &Failure| failure.code == ErrorKind::Cancelled;
    if done.as_ref().is_err_and(by_end) && !parts.runner()?.job(job)?.cancel_requested {
        // The engine ends, and the next one goes on.
        return done;
    }
    let run = ProfileRun {
        job,
        started_at,
        ended_at: parts.now(),
        objects: sending.objects,
        sent_bytes: sending.sent_bytes,
        unique_bytes: sending.unique_bytes,
        saved_bytes: sending.saved_bytes,
        resumed: sending.resumed,
        error: done.clone().err(),
    };
    let whole = done.is_ok();
    parts.catalog.update(profile.id, |one: &mut Profile| {
        one.sent.extend(sending.marks);
        if whole {
            one.sent_as_of = Some(started_at);
        }
        one.ended(run);
    })?;
    match &done {
        Ok(()) => parts.clear(&profile.name, Topic::Replication),
        Err(failure) if failure.code == ErrorKind::Cancelled => {}
        Err(failure) => {
            let message = format!("'{}' was not replicated: {}", profile.name, failure.message);
            let failure = Failure::new(failure.code, message, failure.hint.clone());
            parts.raise(&profile.name, Topic::Replication, &failure);
        }
    }
    done
}

/// Sends one object after another. What cannot be sent does not keep others from it.
fn send_all(context: &Context, profile: &Profile, sending: &mut Sending) -> Result<(), Failure> {
    let parts = context.app();
    let peer: Peer = parts.catalog.get(profile.peer)?;
    let objects = included(parts, profile)?;
    if objects.is_empty() {
        return context.note("nothing is included that exists");
    }
    let mut course = Course::new(context, peer, profile.bytes_per_second_max);
    let mut first = None;
    for owner in objects {
        match send_one(&mut course, profile, owner, sending) {
            Ok(()) => {}
            Err(failure) if failure.code == ErrorKind::Cancelled => {
                first = Some(failure);
                break;
            }
            Err(failure) => {
                let name = names::of(parts, owner)?;
                context.note(format!("'{name}' was not sent: {}", failure.message))?;
                let gone = failure.code == ErrorKind::EngineUnreachable;
                first.get_or_insert(failure);
                if gone {
                    break;
                }
            }
        }
    }
    sending.sent_bytes += course.hang_up();
    first.map_or(Ok(()), Err)
}

fn send_one(
    course: &mut Course<'_>,
    profile: &Profile,
    owner: Owner,
    sending: &mut Sending,
) -> Result<(), Failure> {
    let context = course.context();
    let parts = context.app();
    let as_of = parts.now();
    let (sent, states) = match collect(parts, owner) {
        Ok(collected) => collected,
        // Of everything what there is.
        Err(failure)
            if failure.code == ErrorKind::WrongState && profile.include == Included::All =>
        {
            return context.note(format!("left out: {}", failure.message));
        }
        Err(failure) => return Err(failure),
    };
    if profile.masked_only && !sent.masked {
        return Err(Failure::new(
            ErrorKind::Forbidden,
            format!("'{}' is not masked, and only what is may be sent", sent.name),
            "make a profile without it, or without --masked-only",
        ));
    }
    let mark = SentMark { synced_to: sent.synced_to, as_of };
    let describe = |error: serde_json::Error| {
        Failure::internal(format!("a manifest cannot be written: {error}"))
    };
    let giver = Giver::new(states);
    let trees = giver.states();
    let digest = code::digest(&serde_json::to_vec(&sent).map_err(describe)?, &trees);
    let name = sent.name.to_string();
    let manifest = Manifest::new(peers::own_engine(parts), as_of, sent);
    let manifest = serde_json::to_vec(&manifest).map_err(describe)?;
    let offer = course::Offered { name, owner, digest, as_of, manifest, giver };
    let passed = course.send(&offer, sending)?;
    let blocks = trees.iter().fold(0u64, |sum, tree| sum.saturating_add(tree.blocks));
    let whole = blocks.saturating_mul(offshoot_types::BLOCK_SIZE as u64);
    sending.saved_bytes += whole.saturating_sub(passed.raw_bytes);
    sending.unique_bytes += passed.stored_bytes;
    sending.objects += 1;
    sending.marks.push((owner, mark));
    Ok(())
}
