//! Opening an image: clone, mount, replay to a position, settle. Shared by provisioning and by making
//! snapshots ready.

use crate::core::keys::job_key;
use crate::core::kind::Kind;
use crate::history::moments::Resolved;
use crate::images::durable_soon::DurableSoon;
use crate::parts::{Context, Parts};
use crate::serving::servers;
use offshoot_connector::{Replay, Replayed, Role, Server, ServerSpec, StopMode};
use offshoot_domain::{Dsource, Owner};
use offshoot_types::{DatasetId, DsourceId, Failure, LogPosition, Share, SnapshotId, TimeflowId};
use offshoot_workflow::Key;
use std::sync::Arc;
use std::time::Duration;

/// How long crash recovery of an image may take.
pub const RECOVERY_DEADLINE: Duration = Duration::from_secs(3600);
/// How long a replay may take.
const REPLAY_DEADLINE: Duration = Duration::from_secs(3600);

/// Key under which jobs store the dataset they made.
pub const DATASET: Key<DatasetId> = Key::new("dataset");
/// Key under which jobs store whose history they open a moment of.
pub const BASE: Key<Owner> = Key::new("base_owner");
/// Key under which jobs store what they open.
pub const RESOLVED: Key<Resolved> = Key::new("resolved");
/// Keys under which jobs note how long a step took, in milliseconds.
pub const CLONE_MS: Key<u64> = Key::new("clone_ms");
pub const MOUNT_MS: Key<u64> = Key::new("mount_ms");
pub const RECOVER_MS: Key<u64> = Key::new("recover_ms");
pub const REPLAY_MS: Key<u64> = Key::new("replay_ms");
/// Key under which they note how many pages were written into the clone.
pub const PAGES: Key<u64> = Key::new("pages");
pub const START_MS: Key<u64> = Key::new("start_ms");

/// Clones an image and records the dataset.
pub fn clone_image(context: &Context, image: SnapshotId) -> Result<DatasetId, Failure> {
    if let Some(dataset) = context.get(DATASET)? {
        return Ok(dataset);
    }
    let dataset = context.app().store.clone_snapshot(image).map_err(|e| e.failure())?;
    context.set(DATASET, &dataset)?;
    Ok(dataset)
}

/// Step: clones what was resolved.
pub fn clone_resolved(context: &Context) -> Result<(), Failure> {
    let started = context.app().elapsed_ms();
    let resolved: Resolved = context.need(RESOLVED)?;
    clone_image(context, resolved.image)?;
    context.set(CLONE_MS, &(context.app().elapsed_ms() - started))
}

/// Undo: unmounts and deletes the recorded dataset.
pub fn delete_clone(context: &Context) -> Result<(), Failure> {
    match context.get(DATASET)? {
        Some(dataset) => context.app().delete_dataset(dataset),
        None => Ok(()),
    }
}

/// Step: mounts the clone. What writes to it before somebody gets it writes much, and all of it again after a crash: its
/// writes are gathered.
pub fn mount_clone(context: &Context) -> Result<(), Failure> {
    let started = context.app().elapsed_ms();
    let replays = context.get(RESOLVED)?.is_none_or(|resolved| resolved.recover_to.is_some());
    let (volumes, dataset) = (&context.app().volumes, context.need(DATASET)?);
    if replays {
        volumes.mount_gathering(dataset)?
    } else {
        volumes.mount(dataset)?
    };
    context.set(MOUNT_MS, &(context.app().elapsed_ms() - started))
}

/// Undo: stops the job's own server and unmounts the clone.
pub fn unmount_clone(context: &Context) -> Result<(), Failure> {
    context.app().servers.stop(&job_key(context.job_id()), StopMode::Immediate)?;
    match context.get(DATASET)? {
        Some(dataset) => context.app().volumes.unmount(dataset),
        None => Ok(()),
    }
}

/// A replay of a mounted clone of a snapshot of staging, from one position to another. The log is that of a timeflow, by
/// default the present one.
pub struct Replaying<'a> {
    /// What its server is kept under.
    pub key: &'a str,
    pub kind: &'a Kind,
    pub dataset: DatasetId,
    pub log: (DsourceId, Option<TimeflowId>),
    pub to: LogPosition,
    /// Somebody waits for it.
    pub urgent: bool,
}

impl Replaying<'_> {
    /// Replays it, cuts its ties with the source and leaves its server running. Repeating it on a clone that was opened
    /// before is refused: make a new clone.
    pub fn run(
        &self,
        parts: &Parts,
        tick: &mut dyn FnMut(Option<LogPosition>) -> bool,
    ) -> Result<Arc<dyn Server>, Failure> {
        let server = self.replay(parts, tick)?.server;
        self.cut_ties(&*server)?;
        Ok(server)
    }

    fn replay(
        &self,
        parts: &Parts,
        tick: &mut dyn FnMut(Option<LogPosition>) -> bool,
    ) -> Result<Replayed, Failure> {
        let Replaying { key, kind, dataset, log: (dsource, timeflow), to, urgent } = *self;
        let spec = servers::spec_of_copy(parts, key, format!("recovery {key}"), kind, dataset)?;
        let share = if urgent { Share::First } else { Share::Usual };
        let spec = ServerSpec { share, ..spec };
        let dsource: Dsource = parts.catalog.get(dsource)?;
        let follower = match timeflow {
            Some(timeflow) => parts.log_of(&dsource, timeflow)?,
            None => parts.need_follower(&dsource)?,
        };
        let replayed = kind.connector.replay(
            spec,
            Replay {
                log: follower.log(),
                target: &follower.target(parts.volumes.files(dataset)?),
                to,
                deadline: REPLAY_DEADLINE,
                flush: &|| parts.volumes.flush(dataset),
                tick,
            },
        )?;
        parts.servers.add(key, replayed.server.clone());
        Ok(replayed)
    }

    fn cut_ties(&self, server: &dyn Server) -> Result<(), Failure> {
        for warning in server.cut_ties()?.warnings {
            tracing::warn!(self.key, warning, "cutting the ties of the copy");
        }
        Ok(())
    }
}

/// Replays the job's clone and stops it cleanly. What it writes is not durable yet.
fn replay(
    context: &Context,
    log: (DsourceId, Option<TimeflowId>),
    kind: &Kind,
    (dataset, urgent): (DatasetId, bool),
    (from, to): (LogPosition, LogPosition),
) -> Result<(), Failure> {
    let parts = context.app();
    let key = &job_key(context.job_id());
    let total = to.bytes_since(from);
    context.progress(0, total, "bytes");
    let replaying = Replaying { key, kind, dataset, log, to, urgent };
    let Replayed { server, took, .. } = replaying.replay(parts, &mut |reached| {
        if let Some(reached) = reached {
            context.progress(reached.bytes_since(from).min(total), total, "bytes");
        }
        !context.is_cancelled()
    })?;
    context.progress(total, total, "bytes");
    context.set(REPLAY_MS, &(took.as_millis() as u64))?;
    replaying.cut_ties(&*server)?;
    drop(server);
    stop_clean(parts, key, dataset)?;
    kind.connector.finish_image(&*servers::files_of_copy(parts, kind, dataset)?)
}

/// Stops a job's server and makes sure that what it leaves is clean, and in the dataset.
pub fn stop_clean(parts: &Parts, key: &str, dataset: DatasetId) -> Result<(), Failure> {
    if parts.servers.stop(key, StopMode::Fast)? {
        return parts.volumes.flush(dataset);
    }
    Err(Failure::internal("the server of the copy did not stop cleanly"))
}

/// Step: replays the clone if the resolved moment needs it.
pub fn replay_resolved(context: &Context) -> Result<(), Failure> {
    let started = context.app().elapsed_ms();
    let resolved: Resolved = context.need(RESOLVED)?;
    let owner: Owner = context.need(BASE)?;
    if let (Some(to), Owner::Dsource(dsource)) = (resolved.recover_to, owner) {
        let kind = Kind::of(context.app(), owner)?;
        let range = (resolved.replay_from, to);
        let log = (dsource, resolved.timeflow);
        let (dataset, urgent) = (context.need(DATASET)?, !context.is_of_engine());
        // The engine's own work as well, until all is durable.
        let _hurry = urgent.then(offshoot_os::hurry);
        let soon = urgent.then(|| DurableSoon::begin(context.app(), dataset));
        replay(context, log, &kind, (dataset, urgent), range)?;
        drop(soon);
        // From here on somebody may have it.
        context.app().volumes.make_durable(dataset)?;
        context.set(PAGES, &context.app().volumes.files(dataset)?.written_blocks())?;
        context.set(RECOVER_MS, &(context.app().elapsed_ms() - started))?;
    }
    Ok(())
}

/// A server of a job for a mounted dataset, ready for connections on its private socket.
pub fn start_private(
    parts: &Arc<Parts>,
    key: &str,
    kind: &Kind,
    dataset: DatasetId,
    deadline: Duration,
) -> Result<Arc<dyn Server>, Failure> {
    let spec = servers::spec_of_copy(parts, key, format!("check {key}"), kind, dataset)?;
    let server = kind.connector.start(spec, Role::Private)?;
    parts.servers.add(key, server.clone());
    server.wait_ready(deadline)?;
    Ok(server)
}
