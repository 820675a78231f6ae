//! Planned failover, on the side that takes over: the engine that sends is asked to stop and to send the last of what it
//! has, by the answers to its calls. `jobs::replicate::handover` is the other side.
//!
//! # Invariants
//! 1. Nothing is taken over before the peer has said that it has stopped.
//! 2. One that gives up, as one that was killed does, no longer waits before anybody learns that it has ended: then the peer
//!    starts again.

use super::{Copies, Input, intakes};
use crate::parts::Context;
use offshoot_domain::{Awaited, Peer, format_duration};
use offshoot_types::{ErrorKind, Failure, PeerId};
use std::time::Duration;

/// How long the peer may say nothing.
const SILENT: Duration = Duration::from_secs(10 * 60);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Step: waits until the peer has stopped, and everything of it is here. From then on this job has all of it alone.
pub fn wait(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    let (true, Some(peer)) = (input.planned, input.peer) else { return Ok(()) };
    let parts = context.app();
    let job = context.job_id();
    let begin = |peer: &mut Peer| {
        // The engine may have ended since it heard.
        let known = peer.awaited.filter(|awaited| awaited.job == job);
        peer.awaited = Some(known.unwrap_or(Awaited { job, ready: false }));
    };
    let name = parts.catalog.update(peer, begin)?.name;
    context.note(format!(
        "'{name}' is asked to stop when it calls next; to have it call now: offshoot replication run PROFILE, there"
    ))?;
    heard(context, peer)?;
    context.note(format!("'{name}' has stopped, and all of it is here"))?;
    context.have_alone(peer, Duration::ZERO)?;
    for one in Copies::of(parts, &input.namespace, &input.rename)?.dsources {
        context.have_alone(one.id, Duration::ZERO)?;
        for name in [&one.from, &one.to] {
            context.have_alone(format!("name:{name}"), Duration::ZERO)?;
        }
    }
    Ok(())
}

fn heard(context: &Context, id: PeerId) -> Result<(), Failure> {
    let (parts, clock) = (context.app(), context.clock());
    let mut since = clock.elapsed();
    loop {
        context.check_cancelled()?;
        let peer: Peer = parts.catalog.get(id)?;
        if peer.awaited.is_some_and(|awaited| awaited.ready) {
            return Ok(());
        }
        if !intakes(parts, id)?.is_empty() {
            since = clock.elapsed();
        }
        if clock.elapsed().saturating_sub(since) > SILENT {
            return Err(Failure::new(
                ErrorKind::WrongState,
                format!("'{}' has not handed over within {}", peer.name, format_duration(SILENT)),
                "see its jobs, and run its profile there: offshoot replication run; if it is lost: --force instead of --planned",
            ));
        }
        clock.sleep(LOOK);
    }
}

/// Undo: the peer may start again.
pub fn wait_no_longer(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let Some(peer) = input.peer else { return Ok(()) };
    let job = context.job_id();
    if parts.catalog.find::<Peer>(peer)?.is_some() {
        let give_up = |peer: &mut Peer| {
            peer.awaited = peer.awaited.filter(|awaited| awaited.job != job);
        };
        parts.catalog.update(peer, give_up)?;
    }
    Ok(())
}
