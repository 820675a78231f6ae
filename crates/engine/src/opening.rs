//! Opening an image: clone, mount, replay to a position, settle. Shared by provisioning and by making
//! snapshots ready.

use crate::core::{Context, Core, job_key};
use crate::data_files::DataFiles;
use crate::moments::Resolved;
use crate::servers;
use offshoot_domain::Owner;
use offshoot_postgres::recovery::{self, Target, Timeline};
use offshoot_postgres::server::{Server, StopMode};
use offshoot_postgres::{config, control, settle, superuser};
use offshoot_types::{DatasetId, DsourceId, ErrorKind, Failure, JobId, Lsn, SnapshotId};
use std::sync::Arc;
use std::time::Duration;

/// How long a replay may take.
const REPLAY_DEADLINE: Duration = Duration::from_secs(3600);

/// Key under which jobs note the dataset they made.
pub const DATASET: &str = "dataset";
/// Key under which jobs note what they open.
pub const RESOLVED: &str = "resolved";

/// Clones an image and notes the dataset.
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
    context.set("clone_ms", &(context.app().elapsed_ms() - started))
}

/// Undo: unmounts and deletes the dataset that was noted.
pub fn delete_clone(context: &Context) -> Result<(), Failure> {
    match context.get(DATASET)? {
        Some(dataset) => delete_dataset(context.app(), dataset),
        None => Ok(()),
    }
}

/// Unmounts and deletes a dataset; one that is gone is no error.
pub fn delete_dataset(core: &Core, dataset: DatasetId) -> Result<(), Failure> {
    core.exports.unmount(dataset)?;
    match core.store.delete_dataset(dataset) {
        Ok(()) | Err(offshoot_dataset::Error::NoDataset(_)) => Ok(()),
        Err(error) => Err(error.failure()),
    }
}

/// Deletes a snapshot of the store; one that is gone is no error.
pub fn delete_image(core: &Core, image: SnapshotId) -> Result<(), Failure> {
    match core.store.delete_snapshot(image) {
        Ok(()) | Err(offshoot_dataset::Error::NoSnapshot(_)) => Ok(()),
        Err(error) => Err(error.failure()),
    }
}

/// Step: mounts the clone.
pub fn mount_clone(context: &Context) -> Result<(), Failure> {
    let started = context.app().elapsed_ms();
    context.app().exports.mount(context.need(DATASET)?)?;
    context.set("mount_ms", &(context.app().elapsed_ms() - started))
}

/// Undo: stops the job's own server and unmounts the clone.
pub fn unmount_clone(context: &Context) -> Result<(), Failure> {
    context.app().servers.stop(&job_key(context.job_id()), StopMode::Immediate)?;
    match context.get(DATASET)? {
        Some(dataset) => context.app().exports.unmount(dataset),
        None => Ok(()),
    }
}

/// Replays a mounted clone of an image as taken to a position, cuts its ties with the source and stops
/// it cleanly. Repeating it on a clone that was opened before is refused: clone anew.
pub fn replay(
    context: &Context,
    dsource: DsourceId,
    major: u32,
    dataset: DatasetId,
    to: Lsn,
) -> Result<(), Failure> {
    let core = context.app();
    let key = job_key(context.job_id());
    let mut spec = servers::spec(core, &key, format!("recovery {key}"), major, dataset, None)?;
    let control = control::read(&spec.bin_dir, &spec.data_dir, spec.user.as_ref())?;
    let files = core.exports.files(dataset)?;
    let follower = core.follower(dsource).ok_or_else(|| {
        Failure::new(
            ErrorKind::WrongState,
            "the log of the dSource is not open",
            "resume the dSource",
        )
    })?;
    // Replay must pass the position up to which pages of this image were written.
    let to = to.max(control.min_recovery_lsn);
    follower.log.place(&files, control.redo_lsn, to)?;
    let data = DataFiles::new(files);
    spec.superusers = superuser::candidates(&data);
    let total = to.0.saturating_sub(control.redo_lsn.0);
    context.progress(0, total, "bytes");
    let mut tick = |_: &recovery::Progress| !context.is_cancelled();
    let recovered = recovery::run(
        &data,
        spec,
        &control,
        Target::EndOfWal,
        Timeline::Latest,
        REPLAY_DEADLINE,
        &mut tick,
    )?;
    let end = recovered.end_lsn;
    core.servers.keep(&key, recovered.server);
    if end > to {
        return Err(Failure::internal(format!("recovery went to {end}, past {to}")));
    }
    settle_and_stop(core, &key, &data, context.job_id())
}

fn settle_and_stop(
    core: &Arc<Core>,
    key: &str,
    data: &DataFiles,
    job: JobId,
) -> Result<(), Failure> {
    let shared = core.servers.get(key).ok_or_else(|| Failure::internal("no server to settle"))?;
    let report = settle::settle(&mut shared.lock(), data)?;
    for warning in &report.warnings {
        tracing::warn!(%job, warning, "settling the copy");
    }
    drop(shared);
    stop_clean(core, key)?;
    recovery::finish(data)
}

/// Stops a job's server and makes sure that what it leaves is clean.
pub fn stop_clean(core: &Core, key: &str) -> Result<(), Failure> {
    if core.servers.stop(key, StopMode::Fast)? {
        return Ok(());
    }
    Err(Failure::internal("the server of the copy did not stop cleanly"))
}

/// Step: replays the clone where what was resolved asks for it.
pub fn replay_resolved(context: &Context) -> Result<(), Failure> {
    let started = context.app().elapsed_ms();
    let resolved: Resolved = context.need(RESOLVED)?;
    let (owner, major): (Owner, u32) = context.need("base")?;
    if let (Some(to), Owner::Dsource(dsource)) = (resolved.recover_to, owner) {
        replay(context, dsource, major, context.need(DATASET)?, to)?;
        context.set("recover_ms", &(context.app().elapsed_ms() - started))?;
    }
    Ok(())
}

/// A server of a job for a mounted dataset, ready for connections on its private socket.
pub fn start_private(
    core: &Arc<Core>,
    key: &str,
    major: u32,
    dataset: DatasetId,
    deadline: Duration,
) -> Result<(), Failure> {
    let spec = servers::spec(core, key, format!("check {key}"), major, dataset, None)?;
    let control = control::read(&spec.bin_dir, &spec.data_dir, spec.user.as_ref())?;
    // A clone of a running VDB brings that server's pid file along, and its settings.
    config::write_private(&DataFiles::new(core.exports.files(dataset)?), &control)?;
    let mut server: Server = offshoot_postgres::server::start(spec)?;
    let ready = server.wait_ready(deadline);
    core.servers.keep(key, server);
    ready.map(drop)
}
