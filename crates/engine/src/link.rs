//! Linking a source: checks, slot, stream, base backup, staging, first snapshot. [`crate::resync`] copies
//! a source anew by the same steps.

use crate::core::{Context, Core, staging_key};
use crate::data_files::DataFiles;
use crate::follower::{Follower, password_key, source_of};
use crate::opening::{delete_dataset, delete_image};
use crate::paths::DATA_DIR;
use crate::{left_slots, snapshots};
use offshoot_domain::{
    Dsource, DsourceState, LogRange, ObjectName, Policy, Position, Secret, Snapshot, SnapshotKind,
    Timeflow,
};
use offshoot_fs::NewFile;
use offshoot_postgres::base_backup::{
    BaseBackup, BaseBackupRequest, take_base_backup, verify_base_backup,
};
use offshoot_postgres::config::{self, SOURCE_SETTINGS_SQL};
use offshoot_postgres::server::StopMode;
use offshoot_postgres::slot::{create_slot, slot_name};
use offshoot_postgres::source::{Password, SourceFacts, precheck};
use offshoot_types::{DatasetId, DsourceId, ErrorKind, Failure, JobId, SnapshotId, TimeflowId};
use offshoot_workflow::{Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How long the stream may take to begin.
const STREAM_TIMEOUT: Duration = Duration::from_secs(30);
/// The workflow's name.
const KIND: &str = "dsource_link";

const FACTS: &str = "facts";
const BACKUP: &str = "backup";
const LOG: &str = "log_dataset";
const STAGING: &str = "staging_dataset";
/// Key under which a job that copies a source anew notes the dSource's record as it was.
pub const BEFORE: &str = "before";

/// What to link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    pub dsource: DsourceId,
    pub name: ObjectName,
    /// Without a password.
    pub source: String,
    #[serde(alias = "settings")]
    pub policy: Policy,
}

/// The workflow.
pub fn workflow() -> Workflow<Core> {
    copy_steps(Workflow::new(KIND).step("register", register, unregister))
        .check("activate", activate)
}

/// Adds the steps that copy the source of a dSource whose record names no copy yet, up to the first
/// snapshot. The input of the workflow is [`Input`].
pub fn copy_steps(workflow: Workflow<Core>) -> Workflow<Core> {
    workflow
        .check("check_source", check_source)
        .step("make_datasets", make_datasets, delete_datasets)
        .step("create_slot", make_slot, remove_slot)
        .step("receive", receive, stop_receiving)
        .check("copy", copy)
        .check("verify", verify)
        .check("adopt", adopt)
        .step("stage", stage, stop_staging)
        .step("snapshot", first_snapshot, delete_first_snapshot)
}

/// Starts the job after checking what can be checked at once.
pub fn submit(
    core: &Arc<Core>,
    input: Input,
    password: Option<Password>,
) -> Result<JobId, Failure> {
    if let Some(owner) = core.catalog.find_owner(&input.name)? {
        let message = format!("the name '{}' is taken by {owner}", input.name);
        return Err(Failure::new(ErrorKind::AlreadyExists, message, "choose another name"));
    }
    let key = password_key(input.dsource);
    if let Some(password) = &password {
        core.catalog.put_secret(&key, &Secret::new(password.expose()))?;
    }
    let submission = Submission::new(KIND, &input.name, &input)
        .exclusive(format!("name:{}", input.name))
        .exclusive(input.dsource);
    let submitted = core.submit(submission);
    if submitted.is_err() {
        core.catalog.delete_secret(&key)?;
    }
    submitted
}

fn dsource_of(context: &Context) -> Result<Dsource, Failure> {
    let input: Input = context.input()?;
    Ok(context.app().catalog.get(input.dsource)?)
}

fn register(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let input: Input = context.input()?;
    let dsource = Dsource {
        id: input.dsource,
        name: input.name,
        state: DsourceState::Linking,
        problem: None,
        connector: "postgres".to_owned(),
        source: input.source,
        server_version: String::new(),
        system_identifier: 0,
        timeline: 0,
        wal_segment_bytes: 0,
        slot: None,
        created_at: core.now(),
        policy: input.policy,
        log_dataset: None,
        staging_dataset: None,
        timeflow: None,
        synced_to: None,
    };
    Ok(core.catalog.put(&dsource)?)
}

fn unregister(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let input: Input = context.input()?;
    core.catalog.delete::<Dsource>(input.dsource)?;
    core.catalog.delete_secret(&password_key(input.dsource))?;
    Ok(core.catalog.clear_faults(&input.name)?)
}

fn check_source(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let dsource = dsource_of(context)?;
    let source = source_of(core, &dsource)?;
    let checked = precheck(&source, &core.host.installations());
    for warning in &checked.warnings {
        tracing::warn!(dsource = %dsource.name, %warning, hint = warning.hint, "source");
    }
    let facts: SourceFacts = checked.into_result()?;
    if let Some(before) = context.get::<Dsource>(BEFORE)?
        && before.system_identifier != facts.system_identifier
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
    core.catalog.update::<Dsource>(dsource.id, |dsource| {
        dsource.server_version = facts.version.clone();
        dsource.system_identifier = facts.system_identifier;
        dsource.timeline = facts.timeline;
        dsource.wal_segment_bytes = facts.wal_segment_bytes;
        dsource.slot =
            Some(slot_name(&format!("{}_{:x}", dsource.id.0, facts.clock.as_millisecond())));
    })?;
    context.set(FACTS, &facts)
}

fn make_datasets(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    for key in [LOG, STAGING] {
        if context.get::<DatasetId>(key)?.is_none() {
            let dataset = core.store.create_dataset().map_err(|e| e.failure())?;
            context.set(key, &dataset)?;
        }
    }
    let (log, staging) = (context.need(LOG)?, context.need(STAGING)?);
    let owner = core.host.owner();
    let private = NewFile::private_directory(owner.0, owner.1);
    core.exports.files(staging)?.create_dirs(DATA_DIR, private)?;
    core.catalog.update::<Dsource>(dsource_of(context)?.id, |dsource| {
        dsource.log_dataset = Some(log);
        dsource.staging_dataset = Some(staging);
    })?;
    Ok(())
}

fn delete_datasets(context: &Context) -> Result<(), Failure> {
    for key in [LOG, STAGING] {
        if let Some(dataset) = context.get(key)? {
            delete_dataset(context.app(), dataset)?;
        }
    }
    Ok(())
}

fn make_slot(context: &Context) -> Result<(), Failure> {
    let dsource = dsource_of(context)?;
    let session = source_of(context.app(), &dsource)?.connect()?;
    create_slot(&session, dsource.slot.as_deref().unwrap_or_default()).map(drop)
}

fn remove_slot(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    match context.app().catalog.find::<Dsource>(input.dsource)? {
        Some(dsource) => left_slots::release(context.app(), &dsource),
        None => Ok(()),
    }
}

fn receive(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let dsource = dsource_of(context)?;
    let follower = Follower::open(core, &dsource)?;
    core.followers.lock().insert(dsource.id, follower.clone());
    let slot = dsource.slot.as_deref().unwrap_or_default();
    follower.start_receiver(source_of(core, &dsource)?, slot)?;
    follower.wait_streaming(STREAM_TIMEOUT)
}

fn stop_receiving(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    let follower = context.app().followers.lock().remove(&input.dsource);
    match follower {
        Some(follower) => follower.stop(),
        None => Ok(()),
    }
}

fn copy(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let dsource = dsource_of(context)?;
    let facts: SourceFacts = context.need(FACTS)?;
    let staging: DatasetId = context.need(STAGING)?;
    let source = source_of(core, &dsource)?;
    let tools = core.host.tools(facts.major)?;
    let target = core.paths.data_dir(staging);
    let staged = core.exports.files(staging)?;
    let files = DataFiles::new(staged.clone());
    let request = BaseBackupRequest {
        tools: &tools,
        source: &source,
        facts: &facts,
        target: &target,
        files: &files,
    };
    if request.needs_target() {
        core.exports.mount(staging)?;
    }
    staged.dataset().write_past_cache(true);
    let backup = take_base_backup(
        &request,
        &|progress| context.progress(progress.done_bytes, progress.total_bytes, "bytes"),
        &|| context.is_cancelled(),
    );
    staged.dataset().write_past_cache(false);
    let backup = backup?;
    if request.needs_target() {
        // What the tool made belongs to the engine's user; from here on it is the servers'.
        let (uid, gid) = core.host.owner();
        core.exports.files(staging)?.set_owner(DATA_DIR, uid, gid)?;
    }
    context.set(BACKUP, &backup)
}

fn verify(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let facts: SourceFacts = context.need(FACTS)?;
    let backup: BaseBackup = context.need(BACKUP)?;
    if backup.verified {
        return Ok(());
    }
    let target = core.paths.data_dir(context.need(STAGING)?);
    let checked =
        verify_base_backup(&core.host.tools(facts.major)?, &target, &|| context.is_cancelled());
    match checked {
        // The tool is missing or does not run here: the copy is used, and every snapshot of it is checked.
        Err(failure) if failure.code == ErrorKind::HostUnprepared => {
            tracing::warn!(%failure, "the copy was not compared with its manifest");
            Ok(())
        }
        other => other,
    }
}

fn adopt(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let facts: SourceFacts = context.need(FACTS)?;
    let session = source_of(core, &dsource_of(context)?)?.connect()?;
    let mut settings = config::Settings::new();
    for row in session.rows(SOURCE_SETTINGS_SQL)? {
        if let [Some(name), Some(value)] = row.as_slice() {
            settings.insert(name.clone(), value.clone());
        }
    }
    let files = core.exports.files(context.need(STAGING)?)?;
    let tools = core.host.tools(facts.major)?;
    let bin = &tools.installation.bin_dir;
    let data = DataFiles::new(files.clone());
    let adopted = config::adopt(&data, bin, tools.user.as_ref(), &settings)?;
    for (setting, reason) in &adopted.dropped {
        tracing::info!(setting, reason, "a setting of the source is not kept");
    }
    files.sync().map_err(|e| e.failure())
}

fn stage(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let dsource = dsource_of(context)?;
    let follower = core.need_follower(&dsource)?;
    let backup: BaseBackup = context.need(BACKUP)?;
    follower.start_staging(&dsource)?;
    follower.wait_staging(&|| context.is_cancelled())?;
    snapshots::wait_replayed(context, &follower, backup.end)
}

fn stop_staging(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    context.app().servers.stop(&staging_key(input.dsource), StopMode::Immediate).map(drop)
}

fn first_snapshot(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let dsource = dsource_of(context)?;
    let (backup, facts): (BaseBackup, SourceFacts) = (context.need(BACKUP)?, context.need(FACTS)?);
    let timeflow = match dsource.timeflow {
        Some(timeflow) => timeflow,
        None => {
            let from = Position { lsn: backup.start, time: facts.clock };
            let timeflow = Timeflow {
                id: core.catalog.allocate::<Timeflow>()?,
                owner: dsource.id.into(),
                parent: context.get::<Dsource>(BEFORE)?.and_then(|before| before.timeflow),
                origin: None,
                dataset: dsource.staging_dataset,
                log: vec![LogRange { from, to: from }],
                started_at: core.now(),
                ended_at: None,
            };
            core.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
                tx.put(&timeflow)?;
                tx.update::<Dsource>(dsource.id, |one| one.timeflow = Some(timeflow.id))?;
                Ok(())
            })?;
            timeflow.id
        }
    };
    let dsource = Dsource { timeflow: Some(timeflow), ..dsource };
    let snapshot: SnapshotId = snapshots::take_of_dsource(core, &dsource, SnapshotKind::Link)?;
    context.set(snapshots::SNAPSHOT, &snapshot)
}

fn delete_first_snapshot(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let input: Input = context.input()?;
    if let Some(image) = context.get(snapshots::SNAPSHOT)? {
        delete_image(core, image)?;
    }
    let dsource = core.catalog.find::<Dsource>(input.dsource)?;
    let Some(timeflow) = dsource.and_then(|dsource| dsource.timeflow) else { return Ok(()) };
    forget_timeflow(core, input.dsource, timeflow)?;
    core.catalog.update::<Dsource>(input.dsource, |dsource| dsource.timeflow = None)?;
    Ok(())
}

/// Deletes the snapshots and timeflows of a dSource.
pub fn forget_history(core: &Core, id: DsourceId) -> Result<(), Failure> {
    crate::bookmarks::forget_of(core, id)?;
    for timeflow in core.catalog.list_of::<Timeflow>(id)? {
        forget_timeflow(core, id, timeflow.id)?;
    }
    Ok(())
}

fn forget_timeflow(core: &Core, id: DsourceId, timeflow: TimeflowId) -> Result<(), Failure> {
    for snapshot in core.catalog.list_of::<Snapshot>(id)? {
        if snapshot.timeflow == timeflow {
            snapshots::free(core, &snapshot)?;
        }
    }
    core.catalog.delete::<Timeflow>(timeflow)?;
    Ok(())
}

/// Step: the copy is complete and followed.
pub fn activate(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let dsource = dsource_of(context)?;
    // Who is told that the link is done asks for the latest moment next: there must be one.
    let indexed = core.need_follower(&dsource)?.ask_now(STREAM_TIMEOUT)?;
    core.catalog.update::<Dsource>(dsource.id, |dsource| {
        dsource.state = DsourceState::Active;
        dsource.synced_to = Some(indexed);
    })?;
    Ok(())
}
