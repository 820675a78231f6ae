//! Takes in what another engine sends by a connection: only what is lacking here. What has come of it before it is whole
//! is in a dataset that [`Incoming`] names, so a transfer that was cut goes on, whoever was killed.

use super::{Input, SentBy, admit, becomes, discard, go_on, publish, remember, submission};
use crate::core::job_kind::JobKind;
use crate::core::peers;
use crate::parts::{Call, Context, Parts};
use crate::space::room;
use offshoot_dataset::Intake;
use offshoot_domain::{Dsource, Incoming, Manifest, ObjectName, Peer};
use offshoot_replication::talk::Sent;
use offshoot_types::{BLOCK_SIZE, DatasetId, DsourceId, ErrorKind, Failure, JobId, PeerId};
use offshoot_workflow::Workflow;
use std::sync::Arc;

/// Blocks between two looks at how far it is.
const TOLD_BLOCKS: u64 = 256;
/// Of objects with so many blocks, 256 MiB, it is found out first how much is lacking: both ends can say then how long it takes.
const LONG_BLOCKS: u64 = 1 << 15;

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::ReplicationReceive)
        .step("pull", pull, discard)
        .point_of_no_return()
        .step_without_undo("publish", publish)
}

/// Starts the job.
///
/// # Errors
/// As those of an import.
pub fn submit(
    parts: &Arc<Parts>,
    peer: &Peer,
    call: Call,
    manifest: Manifest,
    digest: String,
) -> Result<JobId, Failure> {
    let (name, present) = admit(parts, &peer.name, &manifest)?;
    let renews = present.is_some();
    let dsource = match present {
        Some(present) => present.id,
        None => match of_name(parts, &name)? {
            Some(incoming) => incoming.id,
            None => parts.catalog.allocate::<Dsource>()?,
        },
    };
    let arrival = parts.calls.put(call);
    let sent = Some(SentBy { peer: peer.id, digest });
    let input = Input { dsource, name, arrival, bytes: None, manifest, sent };
    let submission = submission(JobKind::ReplicationReceive, &input);
    // Renewals come often, and end soon.
    let submitted = parts.submit(if renews { submission.of_engine() } else { submission });
    if submitted.is_err() {
        parts.calls.take(arrival);
    }
    submitted
}

/// Whether something of this name came before, and is not whole.
///
/// # Errors
/// The catalog's.
pub fn is_begun(parts: &Parts, name: &ObjectName) -> Result<bool, Failure> {
    let found = of_name(parts, name)?;
    Ok(found.is_some_and(|one| parts.store.datasets().iter().any(|it| it.id == one.dataset)))
}

fn of_name(parts: &Parts, name: &ObjectName) -> Result<Option<Incoming>, Failure> {
    Ok(parts.catalog.list::<Incoming>()?.into_iter().find(|one| one.name == *name))
}

/// The dataset of what comes; made if nothing came before. A crash before it is recorded leaves it to the next start.
fn begun(parts: &Parts, input: &Input, peer: PeerId) -> Result<DatasetId, Failure> {
    let there = |one: &Incoming| parts.store.datasets().iter().any(|it| it.id == one.dataset);
    if let Some(incoming) = parts.catalog.find::<Incoming>(input.dsource)?.filter(there) {
        return Ok(incoming.dataset);
    }
    let dataset = parts.store.begin_intake().map_err(|error| error.failure())?;
    let (id, name) = (input.dsource, input.name.clone());
    parts.catalog.put(&Incoming { id, name, peer, dataset })?;
    Ok(dataset)
}

/// Gives up what has come of something.
///
/// # Errors
/// Those of the catalog and of the store.
pub fn give_up(parts: &Parts, id: DsourceId) -> Result<(), Failure> {
    let Some(incoming) = parts.catalog.find::<Incoming>(id)? else { return Ok(()) };
    parts.catalog.delete::<Incoming>(id)?;
    match parts.store.datasets().iter().any(|one| one.id == incoming.dataset) {
        true => parts.delete_dataset(incoming.dataset),
        false => Ok(()),
    }
}

fn pull(context: &Context) -> Result<(), Failure> {
    discard(context)?;
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let call = parts.calls.take(input.arrival).ok_or_else(|| {
        let message = "the engine ended while it took this in";
        Failure::new(ErrorKind::Cancelled, message, "what came is kept: the next run goes on")
    })?;
    let sent = input.sent.as_ref().ok_or_else(|| Failure::internal("sent by nobody"))?;
    // It was asked before this job began, and may have changed since. From here on this job keeps it as it is.
    if let Some(peer) = parts.catalog.find::<Peer>(sent.peer)? {
        peers::check_not_taken_over(&peer)?;
    }
    let dataset = begun(parts, &input, sent.peer)?;
    let intake = parts.store.intake(dataset).map_err(|error| error.failure())?;
    let becomes = becomes(&input.manifest, call.states.len());
    let (looked, total) = look_through(context, &input.name, &call, &intake)?;
    let mut tick = |sent: &Sent| {
        if sent.blocks.is_multiple_of(TOLD_BLOCKS) {
            let done = looked.stored_bytes + sent.stored_bytes;
            context.progress(done, if total == 0 { 0 } else { total.max(done) }, "bytes");
        }
        go_on(context)
    };
    let pulled = call.talk.lock().pull(&intake, &call.states, &becomes, &mut tick);
    let (received, sent) = pulled.map_err(|error| error.failure())?;
    let bytes = looked.stored_bytes + sent.stored_bytes;
    context.progress(bytes, bytes, "bytes");
    let blocks = looked.blocks + sent.blocks;
    context.note(format!("{blocks} blocks came, the rest was here already"))?;
    remember(context, &received)?;
    parts.catalog.delete::<Incoming>(input.dsource)?;
    Ok(())
}

/// Finds out how much is lacking, and refuses what there is no room for before it comes: what came for that, and what will have
/// come in all. Nobody looks where that is little, and there is room for all of it.
fn look_through(
    context: &Context,
    name: &ObjectName,
    call: &Call,
    intake: &Intake,
) -> Result<(Sent, u64), Failure> {
    let room = room::left(context.app());
    let blocks = call.states.iter().fold(0u64, |sum, tree| sum.saturating_add(tree.blocks));
    // Half as much again: the nodes, and whatever does not compress.
    if blocks < LONG_BLOCKS && blocks.saturating_mul(BLOCK_SIZE as u64 / 2 * 3) <= room {
        return Ok((Sent::default(), 0));
    }
    let mut tick = |_: &Sent| go_on(context);
    let estimated = call.talk.lock().estimate(intake, &call.states, room, &mut tick);
    let (lacking, sent) = estimated.map_err(|error| error.failure())?;
    if let Err(refused) = room::check_fits(name, lacking, room) {
        intake.checkpoint().map_err(|error| error.failure())?;
        return Err(refused);
    }
    Ok((sent, lacking.coming_bytes))
}
