//! The objects of a run, several at the same time, each by a way of its own to the peer.
//!
//! # Invariants
//! 1. Of the objects that are of one database the first is sent alone, a dSource before its VDBs: the peer would ask for what
//!    they share as often as it is offered before it has come.
//! 2. What cannot be sent keeps nothing else from it, unless the peer is gone or the run is cancelled.

use super::course::{self, Course, Run, Sending};
use crate::core::keys::{password_key, sent_password_key, source_password_key};
use crate::history::names;
use crate::jobs::replica::collected::collect;
use crate::parts::{Context, Parts};
use offshoot_domain::{Dsource, DsourceState, Included, Owner, Peer, Profile, SentMark, Vdb};
use offshoot_replication::code;
use offshoot_replication::exchange::Giver;
use offshoot_replication::talk::Password;
use offshoot_types::{BLOCK_SIZE, ErrorKind, Failure};
use parking_lot::Mutex;
use std::collections::HashSet;

/// All ways of a run.
pub struct Courses<'a> {
    all: Vec<Course<'a>>,
}

impl<'a> Courses<'a> {
    /// So many, but one at least.
    pub fn new(run: &'a Run<'a>, number: u8) -> Courses<'a> {
        Courses { all: (0..number.max(1)).map(|_| Course::new(run)).collect() }
    }

    /// The one for what is said once.
    pub fn first(&mut self) -> &mut Course<'a> {
        &mut self.all[0]
    }

    pub fn context(&self) -> &'a Context {
        self.all[0].context()
    }

    pub fn peer(&self) -> &'a Peer {
        self.all[0].peer()
    }

    /// Ends all connections; others are made when something is to be said.
    pub fn hang_up(&mut self) {
        self.all.iter_mut().for_each(Course::hang_up);
    }

    /// Whether the peer waits for this engine to stop, as it said last.
    pub fn is_asked_to_hand_over(&self) -> bool {
        self.all.iter().any(Course::is_asked_to_hand_over)
    }

    /// Whether the peer has taken over what was sent to it.
    pub fn is_taken_over(&self) -> bool {
        self.all.iter().any(Course::is_taken_over)
    }

    /// Sends all that a profile includes.
    ///
    /// # Errors
    /// The first reason for which something was not sent, after everything else was.
    pub fn send_all(&mut self, profile: &Profile, sending: &mut Sending) -> Result<(), Failure> {
        let context = self.context();
        let objects = super::included(context.app(), profile)?;
        if objects.is_empty() {
            context.note("nothing is included that exists")?;
        }
        let (first, others) = in_turn(context.app(), objects)?;
        let mut failed = None;
        for some in [first, others] {
            failed = failed.or(self.send_beside(profile, some, sending)?);
            if failed.as_ref().is_some_and(|failure| self.is_the_end(failure)) {
                break;
            }
        }
        sending.sent_bytes += self.all.iter_mut().map(Course::sent_bytes).sum::<u64>();
        failed.map_or(Ok(()), Err)
    }

    fn is_the_end(&self, failure: &Failure) -> bool {
        is_of_run(failure) || self.is_taken_over()
    }

    /// Sends objects side by side; why the first of those was not sent that were not.
    fn send_beside(
        &mut self,
        profile: &Profile,
        objects: Vec<Owner>,
        sending: &mut Sending,
    ) -> Result<Option<Failure>, Failure> {
        let beside = objects.len().min(self.all.len());
        let queue =
            Queue { profile, left: Mutex::new(objects.into_iter()), failed: Mutex::new(None) };
        match &mut self.all[..beside] {
            [] => {}
            [alone] => sending.add(queue.send_from(alone)?),
            several => std::thread::scope(|scope| -> Result<(), Failure> {
                let queue = &queue;
                let begun: Vec<_> = several
                    .iter_mut()
                    .map(|one| scope.spawn(move || queue.send_from(one)))
                    .collect();
                let panicked = |_| Err(Failure::internal("a thread that sent something panicked"));
                // All are waited for, whatever becomes of one.
                let ended: Vec<_> =
                    begun.into_iter().map(|one| one.join().unwrap_or_else(panicked)).collect();
                for one in ended {
                    sending.add(one?);
                }
                Ok(())
            })?,
        }
        Ok(queue.failed.into_inner())
    }
}

/// Whether everything else fails as well.
fn is_of_run(failure: &Failure) -> bool {
    matches!(failure.code, ErrorKind::Cancelled | ErrorKind::EngineUnreachable)
}

/// The first object of each database, and all others.
fn in_turn(parts: &Parts, mut objects: Vec<Owner>) -> Result<(Vec<Owner>, Vec<Owner>), Failure> {
    objects.sort_by_key(|owner| matches!(owner, Owner::Vdb(_)));
    let (mut seen, mut first, mut others) = (HashSet::new(), Vec::new(), Vec::new());
    for owner in objects {
        let identity = match owner {
            Owner::Dsource(id) => parts.catalog.find::<Dsource>(id)?.map(|one| one.identity),
            Owner::Vdb(id) => parts.catalog.find::<Vdb>(id)?.map(|one| one.source_identity),
        };
        if seen.insert(identity) { first.push(owner) } else { others.push(owner) }
    }
    Ok((first, others))
}

/// What is still to be sent.
struct Queue<'a> {
    profile: &'a Profile,
    left: Mutex<std::vec::IntoIter<Owner>>,
    failed: Mutex<Option<Failure>>,
}

impl Queue<'_> {
    /// Sends one after another by one way, until nothing is left.
    fn send_from(&self, course: &mut Course<'_>) -> Result<Sending, Failure> {
        let (context, mut sending) = (course.context(), Sending::default());
        loop {
            if self.failed.lock().as_ref().is_some_and(is_of_run) || course.is_taken_over() {
                return Ok(sending);
            }
            let Some(owner) = self.left.lock().next() else { return Ok(sending) };
            let Err(failure) = send_one(course, self.profile, owner, &mut sending) else {
                continue;
            };
            if failure.code != ErrorKind::Cancelled {
                let name = names::of(context.app(), owner)?;
                context.note(format!("'{name}' was not sent: {}", failure.message))?;
            }
            let mut failed = self.failed.lock();
            // What ends the run is its reason.
            if !failed.as_ref().is_some_and(|before| is_of_run(before) || !is_of_run(&failure)) {
                *failed = Some(failure);
            }
        }
    }
}

fn send_one(
    course: &mut Course<'_>,
    profile: &Profile,
    owner: Owner,
    sending: &mut Sending,
) -> Result<(), Failure> {
    let context = course.context();
    let parts = context.app();
    let (manifest, states) = match collect(parts, owner) {
        Ok(collected) => collected,
        // Of everything what there is.
        Err(failure)
            if failure.code == ErrorKind::WrongState && profile.include == Included::All =>
        {
            return context.note(format!("left out: {}", failure.message));
        }
        Err(failure) => return Err(failure),
    };
    let sent = &manifest.dsource;
    if profile.masked_only && !sent.masked {
        return Err(Failure::new(
            ErrorKind::Forbidden,
            format!("'{}' is not masked, and only what is may be sent", sent.name),
            "make a profile without it, or without --masked-only",
        ));
    }
    let mark = SentMark { synced_to: sent.synced_to, as_of: manifest.as_of };
    let describe = |error: serde_json::Error| {
        Failure::internal(format!("a manifest cannot be written: {error}"))
    };
    let giver = Giver::new(states);
    let trees = giver.states();
    let digest = code::digest(&serde_json::to_vec(sent).map_err(describe)?, &trees);
    let told = serde_json::to_vec(&manifest).map_err(describe)?;
    let password = profile.with_secrets.then(|| password_of(parts, owner)).transpose()?;
    let mut offer = course::Offered { manifest, told, digest, giver, password };
    let passed = course.send(&mut offer, sending)?;
    let blocks = trees.iter().fold(0u64, |sum, tree| sum.saturating_add(tree.blocks));
    let whole = blocks.saturating_mul(BLOCK_SIZE as u64);
    sending.saved_bytes += whole.saturating_sub(passed.raw_bytes);
    sending.unique_bytes += passed.stored_bytes;
    sending.objects += 1;
    sending.marks.push((owner, mark));
    Ok(())
}

/// The password that goes with an object; empty if it has none.
fn password_of(parts: &Parts, owner: Owner) -> Result<Password, Failure> {
    let key = match owner {
        Owner::Dsource(id) => match parts.catalog.get::<Dsource>(id)?.state {
            // Of a copy that is sent on it is the one that came.
            DsourceState::Replica => sent_password_key(id),
            _ => source_password_key(id),
        },
        Owner::Vdb(id) => password_key(id),
    };
    let kept = parts.catalog.secret(&key)?;
    Ok(Password(kept.map(|secret| secret.reveal().to_owned()).unwrap_or_default()))
}
