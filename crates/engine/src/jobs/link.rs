//! Linking a source: checks, reservation of its log, stream, base backup, staging, first snapshot. A new copy of
//! a source is made by the same steps.

use crate::core::job_kind::JobKind;
use crate::core::keys::source_password_key;
use crate::core::keys::staging_key;
use crate::core::kind::Kind;
use crate::following::follower::source_of;
use crate::following::reservations;
use crate::history::bookmarks;
use crate::history::names;
use crate::history::snapshots;
use crate::jobs::reparent;
use crate::jobs::snapshot;
use crate::parts::{Context, Parts};
use crate::serving::servers;
use offshoot_connector::{CheckedSource, Copied, CopyRequest, ServerSpec, StopMode};
use offshoot_domain::{
    Dsource, DsourceState, LogRange, ObjectName, Pace, Policy, Position, Secret, Snapshot,
    SnapshotKind, Timeflow,
};
use offshoot_fs::{Caching, NewFile};
use offshoot_types::{DatasetId, DsourceId, ErrorKind, Failure, JobId, SnapshotId, TimeflowId};
use offshoot_workflow::{Key, Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How long the stream may take to begin.
const STREAM_TIMEOUT: Duration = Duration::from_secs(30);
const CHECKED: Key<CheckedSource> = Key::new("checked");
const COPIED: Key<Copied> = Key::new("backup");
const LOG: Key<DatasetId> = Key::new("log_dataset");
const STAGING: Key<DatasetId> = Key::new("staging_dataset");
/// Key under which a job that copies a source again stores the dSource's earlier record.
pub const BEFORE: Key<Dsource> = Key::new("before");

/// What to link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    pub dsource: DsourceId,
    pub name: ObjectName,
    /// The kind of database; empty in jobs of the first releases.
    #[serde(default)]
    pub connector: String,
    /// Without a password.
    pub source: String,
    #[serde(alias = "settings")]
    pub policy: Policy,
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    copy_steps(Workflow::new(JobKind::DsourceLink).step("register", register, unregister))
        .step_without_undo("activate", activate)
}

/// Adds the steps that copy the source of a dSource whose record names no copy yet, up to the first
/// snapshot. The input of the workflow is [`Input`].
pub fn copy_steps(workflow: Workflow<Parts>) -> Workflow<Parts> {
    workflow
        .step_without_undo("check_source", check_source)
        .step("make_datasets", make_datasets, delete_datasets)
        .step("create_slot", reserve_log, release_log)
        .step("receive", receive, stop_receiving)
        .step_without_undo("copy", copy)
        .step_without_undo("verify", verify)
        .step_without_undo("adopt", adopt)
        .step("stage", stage, stop_staging)
        .step("snapshot", first_snapshot, delete_first_snapshot)
}

/// Starts the job after checking what can be checked immediately.
pub fn submit(
    parts: &Arc<Parts>,
    input: Input,
    password: Option<Secret>,
) -> Result<JobId, Failure> {
    names::check_free(parts, &input.name)?;
    let key = source_password_key(input.dsource);
    if let Some(password) = &password {
        parts.catalog.put_secret(&key, password)?;
    }
    let submission = Submission::new(JobKind::DsourceLink, &input.name, &input)
        .exclusive(format!("name:{}", input.name))
        .exclusive(input.dsource);
    let submitted = parts.submit(submission);
    if submitted.is_err() {
        parts.catalog.delete_secret(&key)?;
    }
    submitted
}

fn dsource_of(context: &Context) -> Result<Dsource, Failure> {
    let input: Input = context.input()?;
    Ok(context.app().catalog.get(input.dsource)?)
}

fn register(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let input: Input = context.input()?;
    let dsource = Dsource {
        id: input.dsource,
        name: input.name,
        state: DsourceState::Linking,
        problem: None,
        connector: parts.connectors.find(&input.connector)?.kind().to_owned(),
        source: input.source,
        server_version: String::new(),
        identity: String::new(),
        connector_state: Default::default(),
        reservation: None,
        created_at: parts.now(),
        policy: input.policy,
        log_dataset: None,
        staging_dataset: None,
        timeflow: None,
        synced_to: None,
        warnings: Vec::new(),
        pace: Pace::default(),
    };
    Ok(parts.catalog.put(&dsource)?)
}

fn unregister(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let input: Input = context.input()?;
    parts.catalog.delete::<Dsource>(input.dsource)?;
    parts.catalog.delete_secret(&source_password_key(input.dsource))?;
    parts.clear_all(&input.name)
}

fn check_source(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let dsource = dsource_of(context)?;
    let source = source_of(parts, &dsource)?;
    let checked = source.check()?;
    for warning in &checked.warnings {
        tracing::warn!(dsource = %dsource.name, %warning, hint = warning.hint, "source");
    }
    if let Some(before) = context.get(BEFORE)?
        && before.identity != checked.identity
    {
        return Err(Failure::new(
            ErrorKind::SourceRefused,
            format!(
                "{} is now another cluster than the one '{}' was copied from",
                dsource.source, dsource.name
            ),
            "link it as a dSource of its own: offshoot dsource link; or bring the old one back",
        ));
    }
    parts.catalog.update::<Dsource>(dsource.id, |dsource| {
        dsource.server_version = checked.version.clone();
        dsource.identity = checked.identity.clone();
        dsource.connector_state = checked.state.clone();
        dsource.warnings = checked.warnings.clone();
        let unique = format!("{}_{:x}", dsource.id.0, checked.clock.as_millisecond());
        dsource.reservation = source.reservation_name(&unique);
    })?;
    context.set(CHECKED, &checked)
}

fn make_datasets(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    for key in [LOG, STAGING] {
        if context.get(key)?.is_none() {
            let dataset = parts.store.create_dataset().map_err(|e| e.failure())?;
            context.set(key, &dataset)?;
        }
    }
    let (log, staging) = (context.need(LOG)?, context.need(STAGING)?);
    let dsource = dsource_of(context)?;
    let kind = Kind::of_dsource(parts, &dsource)?;
    let (uid, gid) = kind.server_owner();
    let data = kind.connector.layout().data;
    parts.volumes.files(staging)?.create_dirs(data, NewFile::private_directory(uid, gid))?;
    parts.catalog.update::<Dsource>(dsource.id, |dsource| {
        dsource.log_dataset = Some(log);
        dsource.staging_dataset = Some(staging);
    })?;
    Ok(())
}

fn delete_datasets(context: &Context) -> Result<(), Failure> {
    for key in [LOG, STAGING] {
        if let Some(dataset) = context.get(key)? {
            context.app().delete_dataset(dataset)?;
        }
    }
    Ok(())
}

fn reserve_log(context: &Context) -> Result<(), Failure> {
    let dsource = dsource_of(context)?;
    match &dsource.reservation {
        Some(reservation) => source_of(context.app(), &dsource)?.reserve_log(reservation),
        None => Ok(()),
    }
}

fn release_log(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    match context.app().catalog.find::<Dsource>(input.dsource)? {
        Some(dsource) => reservations::release(context.app(), &dsource),
        None => Ok(()),
    }
}

fn receive(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let dsource = dsource_of(context)?;
    let follower = parts.open(&dsource)?;
    follower.start_stream(&dsource)?;
    follower.wait_streaming(STREAM_TIMEOUT)
}

fn stop_receiving(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    context.app().stop(input.dsource)
}

/// The staging data directory, with no server on it.
fn staged(context: &Context, dsource: &Dsource) -> Result<ServerSpec, Failure> {
    let (parts, staging) = (context.app(), context.need(STAGING)?);
    let kind = Kind::of_dsource(parts, dsource)?;
    servers::spec(parts, &staging_key(dsource.id), dsource.name.to_string(), &kind, staging, None)
}

fn copy(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let dsource = dsource_of(context)?;
    let checked: CheckedSource = context.need(CHECKED)?;
    let staging: DatasetId = context.need(STAGING)?;
    let source = source_of(parts, &dsource)?;
    let files = parts.volumes.files(staging)?;
    let by_path = source.copies_by_path(&checked);
    if by_path {
        parts.volumes.mount(staging)?;
    }
    files.cache_commits(Caching::Past);
    let copied = source.copy(&CopyRequest {
        checked: &checked,
        target: &staged(context, &dsource)?,
        progress: &|done, total| context.progress(done, total, "bytes"),
        cancelled: &|| context.is_cancelled(),
    });
    files.cache_commits(Caching::Usual);
    let copied = copied?;
    if by_path {
        // What a program made belongs to the engine's user; from here on it belongs to the servers'
        // user.
        let kind = Kind::of_dsource(parts, &dsource)?;
        let (uid, gid) = kind.server_owner();
        files.set_owner(kind.connector.layout().data, uid, gid)?;
    }
    context.set(COPIED, &copied)
}

fn verify(context: &Context) -> Result<(), Failure> {
    if context.need(COPIED)?.verified {
        return Ok(());
    }
    let dsource = dsource_of(context)?;
    let source = source_of(context.app(), &dsource)?;
    match source.verify(&staged(context, &dsource)?, &|| context.is_cancelled()) {
        // The tool is missing or does not run here: use the copy anyway, as every snapshot of it is
        // checked.
        Err(failure) if failure.code == ErrorKind::HostUnprepared => {
            let message = format!("the copy was not compared with its manifest: {failure}");
            tracing::warn!(dsource = %dsource.name, message, "source");
            let warning = Failure { message, ..failure };
            let add = |dsource: &mut Dsource| dsource.warnings.push(warning.clone());
            Ok(context.app().catalog.update(dsource.id, add).map(drop)?)
        }
        other => other,
    }
}

fn adopt(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let dsource = dsource_of(context)?;
    let target = staged(context, &dsource)?;
    for (setting, reason) in source_of(parts, &dsource)?.adopt_settings(&target)? {
        tracing::info!(setting, reason, "a setting of the source is not kept");
    }
    parts.volumes.make_durable(context.need(STAGING)?)
}

fn stage(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let dsource = dsource_of(context)?;
    let follower = parts.need_follower(&dsource)?;
    let copied: Copied = context.need(COPIED)?;
    follower.start_staging(&dsource)?;
    follower.wait_staging(&|| context.is_cancelled())?;
    snapshot::wait_replayed(context, &follower, copied.end, snapshot::REPLAY_TIMEOUT, true)
}

fn stop_staging(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    context.app().servers.stop(&staging_key(input.dsource), StopMode::Immediate).map(drop)
}

fn first_snapshot(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let dsource = dsource_of(context)?;
    let (copied, checked): (Copied, CheckedSource) =
        (context.need(COPIED)?, context.need(CHECKED)?);
    let timeflow = match dsource.timeflow {
        Some(timeflow) => timeflow,
        None => {
            let from = Position { log: copied.start, time: checked.clock };
            let timeflow = Timeflow {
                id: parts.catalog.allocate::<Timeflow>()?,
                owner: dsource.id.into(),
                parent: context.get(BEFORE)?.and_then(|before| before.timeflow),
                origin: None,
                dataset: dsource.staging_dataset,
                log: vec![LogRange { from, to: from }],
                log_dataset: None,
                started_at: parts.now(),
                ended_at: None,
            };
            parts.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
                tx.put(&timeflow)?;
                tx.update::<Dsource>(dsource.id, |one| one.timeflow = Some(timeflow.id))?;
                Ok(())
            })?;
            timeflow.id
        }
    };
    let dsource = Dsource { timeflow: Some(timeflow), ..dsource };
    let snapshot: SnapshotId = snapshots::take_of_dsource(parts, &dsource, SnapshotKind::Link)?;
    context.set(snapshot::SNAPSHOT, &snapshot)
}

fn delete_first_snapshot(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let input: Input = context.input()?;
    if let Some(image) = context.get(snapshot::SNAPSHOT)? {
        parts.delete_image(image)?;
    }
    let dsource = parts.catalog.find::<Dsource>(input.dsource)?;
    let Some(timeflow) = dsource.and_then(|dsource| dsource.timeflow) else { return Ok(()) };
    forget_timeflow(parts, input.dsource, timeflow)?;
    parts.catalog.update::<Dsource>(input.dsource, |dsource| dsource.timeflow = None)?;
    Ok(())
}

/// Deletes the snapshots and timeflows of a dSource.
pub fn forget_history(parts: &Parts, id: DsourceId) -> Result<(), Failure> {
    bookmarks::forget_of(parts, id)?;
    for timeflow in parts.catalog.list_of::<Timeflow>(id)? {
        forget_timeflow(parts, id, timeflow.id)?;
    }
    Ok(())
}

fn forget_timeflow(parts: &Parts, id: DsourceId, timeflow: TimeflowId) -> Result<(), Failure> {
    for snapshot in parts.catalog.list_of::<Snapshot>(id)? {
        if snapshot.timeflow == timeflow {
            snapshots::free(parts, &snapshot)?;
        }
    }
    if let Some(log) = parts.catalog.find::<Timeflow>(timeflow)?.and_then(|one| one.log_dataset) {
        parts.close_log(timeflow);
        parts.delete_dataset(log)?;
    }
    parts.catalog.delete::<Timeflow>(timeflow)?;
    Ok(())
}

/// Step: the copy is complete and followed.
pub fn activate(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let dsource = dsource_of(context)?;
    // Users ask for the latest moment as soon as the link is done: there must be one.
    // However much a busy source writes meanwhile.
    let indexed = parts
        .need_follower(&dsource)?
        .receive_all(STREAM_TIMEOUT, &mut snapshot::receiving(context))?;
    parts.catalog.update::<Dsource>(dsource.id, |dsource| {
        dsource.state = DsourceState::Active;
        dsource.synced_to = Some(indexed);
    })?;
    let orphans = reparent::orphans_of(parts, &dsource.identity)?;
    if orphans.is_empty() {
        return Ok(());
    }
    context.note(format!(
        "VDBs of this database that have no parent: {}; they can follow it again: offshoot vdb reparent VDB \
         --to {}",
        orphans.join(", "),
        dsource.name
    ))
}
