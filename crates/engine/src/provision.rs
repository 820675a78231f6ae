//! Provisioning a VDB: clone, mount, replay, open, publish.

use crate::core::{Context, Core, vdb_key};
use crate::data_files::DataFiles;
use crate::moments::{Resolved, resolve};
use crate::opening::{self, DATASET, RESOLVED};
use crate::{ports, room, servers, snapshots};
use offshoot_domain::{
    Dsource, Moment, ObjectName, Opened, Origin, Owner, Parent, Policy, Position, Secret,
    SnapshotKind, Timeflow, Timings, Vdb, VdbState,
};
use offshoot_os::cgroup::MemoryGroup;
use offshoot_postgres::server::StopMode;
use offshoot_postgres::session::Session;
use offshoot_postgres::{access, config, control, server, vdb_role};
use offshoot_types::{DatasetId, ErrorKind, Failure, VdbId};
use offshoot_workflow::{Submission, Workflow};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a VDB may take until it accepts connections; crash recovery of a branch included.
const READY_DEADLINE: Duration = Duration::from_secs(300);
/// How many ports are tried where none was asked for.
const PORT_ATTEMPTS: u32 = 5;
/// The workflow's name.
pub const KIND: &str = "vdb_provision";

/// Ports are chosen and recorded by one job at a time.
static REGISTRATION: Mutex<()> = Mutex::new(());

/// What a provision was asked to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    pub vdb: VdbId,
    pub name: ObjectName,
    pub parent: Parent,
    pub moment: Moment,
    pub port: Option<u16>,
    pub settings: BTreeMap<String, String>,
    pub memory_bytes: Option<u64>,
    pub keep_source_logins: bool,
    pub requested_ms: u64,
}

/// The workflow.
pub fn workflow() -> Workflow<Core> {
    Workflow::new(KIND)
        .step("register", register, unregister)
        .check("resolve", resolve_parent)
        .step("clone", opening::clone_resolved, opening::delete_clone)
        .step("mount", opening::mount_clone, opening::unmount_clone)
        .step("recover", opening::replay_resolved, opening::unmount_clone)
        .step("open", open_new, close_new)
        .point_of_no_return()
        .check("publish", publish)
}

/// Starts the job; refuses at once what can be known to fail.
pub fn submit(core: &Arc<Core>, input: Input) -> Result<offshoot_types::JobId, Failure> {
    if let Some(owner) = core.catalog.find_owner(&input.name)? {
        return Err(Failure::new(
            ErrorKind::AlreadyExists,
            format!("the name '{}' is taken by {owner}", input.name),
            "choose another name",
        ));
    }
    if let Some(port) = input.port {
        ports::choose(core, Some(port))?;
    }
    let major = major_of(core, input.parent.owner)?;
    let tools = core.host.tools(major)?;
    config::validate(&tools.installation.bin_dir, tools.user.as_ref(), &input.settings)?;
    if !is_present_of_vdb(input.parent.owner, &input.moment) {
        resolve(core, input.parent.owner, &input.moment)?;
    }
    let submission = Submission::new(KIND, &input.name, &input)
        .exclusive(format!("name:{}", input.name))
        .exclusive(input.vdb)
        .shared(input.parent.owner);
    core.submit(submission)
}

/// Whether the present state of a VDB is asked for: a snapshot is taken for it.
pub fn is_present_of_vdb(owner: Owner, moment: &Moment) -> bool {
    matches!((owner, moment), (Owner::Vdb(_), Moment::Latest))
}

/// The major version of a dSource or VDB.
pub fn major_of(core: &Core, owner: Owner) -> Result<u32, Failure> {
    let version = version_of(core, owner)?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().map_err(|_| Failure::internal(format!("{owner} has the version '{version}'")))
}

fn version_of(core: &Core, owner: Owner) -> Result<String, Failure> {
    Ok(match owner {
        Owner::Dsource(id) => core.catalog.get::<Dsource>(id)?.server_version,
        Owner::Vdb(id) => core.catalog.get::<Vdb>(id)?.server_version,
    })
}

fn register(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let input: Input = context.input()?;
    let _one_at_a_time = REGISTRATION.lock();
    let vdb = Vdb {
        id: input.vdb,
        name: input.name,
        state: VdbState::Provisioning,
        problem: None,
        server_version: version_of(core, input.parent.owner)?,
        parent: input.parent,
        moment: None,
        port: ports::choose(core, input.port)?,
        user: offshoot_postgres::settle::VDB_ROLE.to_owned(),
        settings: input.settings,
        memory_bytes: input.memory_bytes,
        keep_source_logins: input.keep_source_logins,
        policy: Policy::of_vdb(),
        dataset: None,
        timeflow: None,
        created_at: core.now(),
        timings: Timings::default(),
    };
    core.catalog.put_secret(&password_key(vdb.id), &Secret::new(vdb_role::new_password()))?;
    Ok(core.catalog.put(&vdb)?)
}

fn unregister(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    forget_vdb(context.app(), input.vdb)
}

/// Removes a VDB's record and secrets.
pub fn forget_vdb(core: &Core, id: VdbId) -> Result<(), Failure> {
    core.catalog.delete::<Vdb>(id)?;
    core.catalog.delete_secret(&password_key(id))?;
    core.catalog.delete_secret(&database_key(id))?;
    Ok(())
}

/// Where the catalog keeps a VDB's password.
pub fn password_key(id: VdbId) -> String {
    format!("{id}/password")
}

/// Where the catalog keeps the name of the database a VDB's URI opens.
pub fn database_key(id: VdbId) -> String {
    format!("{id}/database")
}

fn resolve_parent(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    resolve_from(context, input.parent.owner, &input.moment)
}

/// Decides what to open and notes it; the present state of a VDB is snapshotted for that.
pub fn resolve_from(context: &Context, owner: Owner, moment: &Moment) -> Result<(), Failure> {
    let core = context.app();
    if let (Owner::Vdb(id), Moment::Latest) = (owner, moment) {
        snapshots::take_of_vdb(core, id, SnapshotKind::Policy)?;
    }
    context.set("base", &(owner, major_of(core, owner)?))?;
    context.set(RESOLVED, &resolve(core, owner, moment)?)
}

fn open_new(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    let started = core.elapsed_ms();
    let input: Input = context.input()?;
    open_on_free_port(core, &input, context.need(DATASET)?)?;
    context.set("start_ms", &(core.elapsed_ms() - started))
}

/// Opens it; on another port where somebody took the one that was chosen for it since.
fn open_on_free_port(core: &Arc<Core>, input: &Input, dataset: DatasetId) -> Result<(), Failure> {
    let mut vdb: Vdb = core.catalog.get(input.vdb)?;
    let mut attempts = if input.port.is_none() { PORT_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        match open_vdb(core, &vdb, dataset, true) {
            Err(taken) if taken.code == ErrorKind::AlreadyExists && attempts > 0 => {
                let _one_at_a_time = REGISTRATION.lock();
                let port = ports::choose(core, None)?;
                vdb = core.catalog.update(vdb.id, |vdb: &mut Vdb| vdb.port = port)?;
            }
            opened => return opened,
        }
    }
}

fn close_new(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    context.app().servers.stop(&vdb_key(input.vdb), StopMode::Immediate).map(drop)
}

/// Opens a VDB on one of its datasets: mount, configuration, server. On a dataset that is new to it
/// (`fresh`), its role and password are set too.
pub fn open_vdb(
    core: &Arc<Core>,
    vdb: &Vdb,
    dataset: DatasetId,
    fresh: bool,
) -> Result<(), Failure> {
    core.exports.mount(dataset)?;
    core.exports.keep(dataset);
    let key = vdb_key(vdb.id);
    let major = major_of(core, vdb.id.into())?;
    let title = format!("vdb {}", vdb.name);
    let spec = servers::spec(core, &key, title, major, dataset, Some(vdb.port))?;
    let files = core.exports.files(dataset)?;
    room::favour_vital(&files)?;
    let data = DataFiles::new(files);
    let control = control::read(&spec.bin_dir, &spec.data_dir, spec.user.as_ref())?;
    let options =
        config::VdbOptions { settings: vdb.settings.clone(), memory_bytes: vdb.memory_bytes };
    config::write_vdb(&data, &control, &options)?;
    access::write_vdb(&data, vdb.keep_source_logins)?;
    let mut server = server::start(spec)?;
    limit_memory(vdb, &server);
    let opened = server.wait_ready(READY_DEADLINE).and_then(|mut session| {
        if fresh { give_access(core, vdb, &mut session, &data) } else { Ok(()) }
    });
    if let Err(failure) = opened {
        // It may have been started although it cannot be used.
        let _ = server.stop(StopMode::Immediate, READY_DEADLINE);
        return Err(failure);
    }
    core.servers.keep(&key, server);
    Ok(())
}

/// Puts the server under its memory limit, where this host allows that; without, only the sizes of its
/// own buffers follow the limit.
fn limit_memory(vdb: &Vdb, server: &server::Server) {
    let Some(limit) = vdb.memory_bytes else { return };
    let group = MemoryGroup::create(&memory_group(vdb.id), limit);
    if let Err(error) = group.and_then(|group| group.add(server.process_id().pid)) {
        tracing::warn!(vdb = %vdb.name, %error, "its memory is not limited by a control group");
    }
}

/// The name of a VDB's control group; the process id keeps engines apart.
fn memory_group(id: VdbId) -> String {
    format!("offshoot-{}-{id}", std::process::id())
}

/// Removes the control group of a VDB that was stopped.
pub fn release_memory_group(id: VdbId) {
    if let Some(group) = MemoryGroup::find(&memory_group(id))
        && let Err(error) = group.remove()
    {
        tracing::debug!(%id, %error, "a control group stays");
    }
}

fn give_access(
    core: &Core,
    vdb: &Vdb,
    session: &mut Session,
    data: &DataFiles,
) -> Result<(), Failure> {
    let password = core
        .catalog
        .secret(&password_key(vdb.id))?
        .ok_or_else(|| Failure::internal(format!("'{}' has no password", vdb.name)))?;
    vdb_role::set_password(session, password.reveal())?;
    if vdb.keep_source_logins {
        vdb_role::restore_source_logins(session, data)?;
    }
    let preferred = source_database(core, vdb)?;
    let database = vdb_role::main_database(session, preferred.as_deref())?;
    Ok(core.catalog.put_secret(&database_key(vdb.id), &Secret::new(database))?)
}

/// The database that the source's URI names, which users of the VDB will look for first.
fn source_database(core: &Core, vdb: &Vdb) -> Result<Option<String>, Failure> {
    let mut owner = vdb.parent.owner;
    loop {
        match owner {
            Owner::Vdb(id) => match core.catalog.find::<Vdb>(id)? {
                Some(parent) => owner = parent.parent.owner,
                None => return Ok(None),
            },
            Owner::Dsource(id) => {
                let dsource: Option<Dsource> = core.catalog.find(id)?;
                let path = dsource.and_then(|one| {
                    one.source.rsplit_once('/').map(|(_, database)| database.to_owned())
                });
                return Ok(path.filter(|database| !database.is_empty()));
            }
        }
    }
}

fn publish(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    publish_opened(context, input.vdb, input.requested_ms)
}

/// How long the steps of a job took, as they noted it.
pub fn timings(context: &Context, requested_ms: u64) -> Result<Timings, Failure> {
    let milliseconds = |key: &str| Ok::<u64, Failure>(context.get(key)?.unwrap_or_default());
    Ok(Timings {
        total_ms: context.app().elapsed_ms().saturating_sub(requested_ms),
        clone_ms: milliseconds("clone_ms")?,
        mount_ms: milliseconds("mount_ms")?,
        recover_ms: milliseconds("recover_ms")?,
        start_ms: milliseconds("start_ms")?,
    })
}

/// Records what was opened as the VDB's present state, on a timeflow of its own.
pub fn publish_opened(context: &Context, id: VdbId, requested_ms: u64) -> Result<(), Failure> {
    let core = context.app();
    let resolved: Resolved = context.need(RESOLVED)?;
    let dataset: DatasetId = context.need(DATASET)?;
    let now = core.now();
    let timings = timings(context, requested_ms)?;
    let Position { lsn, time } = resolved.position;
    core.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
        let mut vdb: Vdb = tx.get(id)?;
        if vdb.dataset == Some(dataset) {
            return Ok(());
        }
        let timeflow = Timeflow {
            id: tx.allocate::<Timeflow>()?,
            owner: id.into(),
            parent: vdb.timeflow,
            origin: Some(Origin { snapshot: resolved.snapshot, position: resolved.position }),
            dataset: Some(dataset),
            log: Vec::new(),
            started_at: now,
            ended_at: None,
        };
        tx.put(&timeflow)?;
        if let Some(old) = vdb.timeflow {
            tx.update::<Timeflow>(old, |old| old.ended_at = Some(now))?;
        }
        vdb.timeflow = Some(timeflow.id);
        vdb.dataset = Some(dataset);
        vdb.state = VdbState::Running;
        vdb.problem = None;
        vdb.moment = Some(Opened { snapshot: resolved.snapshot, lsn, time });
        vdb.timings = timings;
        tx.put(&vdb)
    })?;
    Ok(())
}
