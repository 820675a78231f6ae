//! Provisioning a VDB: clone, mount, replay, open, publish.

use crate::core::hooks as kept;
use crate::core::job_kind::JobKind;
use crate::core::keys::{
    database_key, handed_key, kept_key, password_key, sent_password_key, tls_key, vdb_key,
};
use crate::core::kind::Kind;
use crate::ground::ports;
use crate::history::moments::{Resolved, check, resolve};
use crate::history::names;
use crate::history::snapshots;
use crate::images::opening::{
    self, BASE, CLONE_MS, DATASET, MOUNT_MS, PAGES, RECOVER_MS, REPLAY_MS, RESOLVED, START_MS,
};
use crate::jobs::hooks;
use crate::jobs::keepsakes;
use crate::jobs::snapshot;
use crate::parts::{Context, Parts};
use crate::serving::gateways;
use crate::serving::vdb::open_vdb;
use crate::space::shares;
use offshoot_connector::StopMode;
use offshoot_domain::{
    Care, Dsource, Exposure, Gateway, Hook, HookEvent, Kept, Moment, ObjectName, Opened, Origin,
    Owner, Parent, Policy, Position, Secret, SnapshotKind, TiesCut, Timeflow, Timings, User, Vdb,
    VdbState, format_duration, format_size,
};
use offshoot_types::{DatasetId, DsourceId, ErrorKind, Failure, Remote, UserId, VdbId};
use offshoot_workflow::{Key, Submission, Workflow};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// How many ports to try if none was requested.
const PORT_ATTEMPTS: u32 = 5;
/// Ports of other hosts that a VDB may connect to.
const REACHES_MAX: usize = 64;
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
    /// Whether it has a gateway; its server's port is chosen by the job.
    #[serde(default)]
    pub gateway: Option<Gateway>,
    /// Another port will do if that one is taken.
    #[serde(default)]
    pub any_port: bool,
    pub settings: BTreeMap<String, String>,
    pub memory_bytes: Option<u64>,
    pub keep_source_logins: bool,
    #[serde(default)]
    pub superuser: bool,
    #[serde(default)]
    pub keep_foreign_servers: bool,
    #[serde(default)]
    pub exposure: Option<Exposure>,
    #[serde(default)]
    pub reaches: Vec<Remote>,
    /// Whose it is.
    #[serde(default)]
    pub user: Option<UserId>,
    /// Made before anybody asks for it.
    #[serde(default)]
    pub warm: bool,
    /// What its user says about it.
    #[serde(default)]
    pub care: Care,
    /// What runs in it; the texts are kept already.
    #[serde(default)]
    pub hooks: BTreeMap<HookEvent, Hook>,
    /// What a refresh keeps of it.
    #[serde(default)]
    pub refresh_keeps: BTreeSet<Kept>,
    /// A copy of a VDB: the new one has the password that came with it, if one did.
    #[serde(default)]
    pub password_of: Option<DsourceId>,
    /// It is stopped as soon as it is made.
    #[serde(default)]
    pub stopped: bool,
    /// How it is kept; none: as usual.
    #[serde(default)]
    pub policy: Option<Policy>,
    pub requested_ms: u64,
}

impl Input {
    /// A VDB of the latest moment, for which nobody chose anything.
    pub fn of_latest(parts: &Parts, vdb: VdbId, name: ObjectName, parent: Parent) -> Input {
        Input {
            vdb,
            name,
            parent,
            moment: Moment::Latest,
            port: None,
            gateway: None,
            any_port: false,
            settings: BTreeMap::new(),
            memory_bytes: None,
            keep_source_logins: false,
            superuser: false,
            keep_foreign_servers: false,
            exposure: None,
            reaches: Vec::new(),
            user: None,
            warm: false,
            care: Care::default(),
            hooks: BTreeMap::new(),
            refresh_keeps: BTreeSet::new(),
            password_of: None,
            stopped: false,
            policy: None,
            requested_ms: parts.elapsed_ms(),
        }
    }
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::VdbProvision)
        .step("register", register, unregister)
        .step_without_undo("resolve", resolve_parent)
        .step("clone", opening::clone_resolved, opening::delete_clone)
        .step("mount", opening::mount_clone, opening::unmount_clone)
        .step("recover", opening::replay_resolved, opening::unmount_clone)
        .step("hook_before", hooks::before_provision, hooks::undo_before)
        .step("open", open_new, close_new)
        .point_of_no_return()
        .step_without_undo("publish", publish)
        .ending("hook", finish)
}

/// Starts the job; refuses immediately what is known to fail.
pub fn submit(parts: &Arc<Parts>, input: Input) -> Result<offshoot_types::JobId, Failure> {
    check_input(parts, &input)?;
    if !is_present_of_vdb(input.parent.owner, &input.moment) {
        check(parts, input.parent.owner, &input.moment)?;
    }
    let submission = Submission::new(JobKind::VdbProvision, &input.name, &input)
        .exclusive(format!("name:{}", input.name))
        .exclusive(input.vdb)
        .shared(input.parent.owner);
    parts.submit(if input.warm { submission.of_engine() } else { submission })
}

/// Refuses what is known to fail, whatever the moment.
pub fn check_input(parts: &Parts, input: &Input) -> Result<(), Failure> {
    names::check_free(parts, &input.name)?;
    check_share(parts, input.user, input.vdb)?;
    if let (Some(port), false) = (input.port, input.any_port) {
        choose_port(parts, Some(port))?;
    }
    let kind = Kind::of(parts, input.parent.owner)?;
    check_memory(&kind, input.memory_bytes)?;
    kind.connector.check_programs(&kind.version)?;
    kind.connector.validate_settings(&kind.version, &input.settings)?;
    if input.gateway.is_some() {
        gateways::check(&kind)?;
    }
    keepsakes::check(&kind, &input.refresh_keeps)?;
    check_reaches(&input.reaches)?;
    check_exposure(&kind, input.exposure.as_ref())
}

/// Whether its user may have one more VDB. Of those that are being provisioned only one at a time counts itself in.
pub fn check_share(parts: &Parts, user: Option<UserId>, id: VdbId) -> Result<(), Failure> {
    let Some(user) = user else { return Ok(()) };
    let gone = || {
        let message = "the user who asked for it has been removed";
        Failure::new(ErrorKind::Forbidden, message, "ask an administrator")
    };
    let user = parts.catalog.find::<User>(user)?.ok_or_else(gone)?;
    let all = parts.catalog.all::<Vdb>()?;
    let own = all.iter().filter(|vdb| vdb.owner == Some(user.id) && vdb.id != id).count();
    match user.vdbs_max {
        Some(most) if own >= most as usize => Err(Failure::new(
            ErrorKind::Forbidden,
            format!("'{}' has {own} VDBs, and may have {most}", user.name),
            "delete one that is no longer needed: offshoot vdb delete NAME",
        )),
        _ => shares::check(parts, Some(user.id)),
    }
}

/// Refuses less memory than a server runs in.
pub fn check_memory(kind: &Kind, wanted: Option<u64>) -> Result<(), Failure> {
    let (size, least) = (wanted.unwrap_or(u64::MAX), kind.connector.memory_min());
    if size >= least {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        format!("a server does not run in {} of memory", format_size(size)),
        format!("give --memory at least {}", format_size(least)),
    ))
}

fn check_reaches(reaches: &[Remote]) -> Result<(), Failure> {
    if reaches.len() > REACHES_MAX {
        let message = format!("a VDB may connect to {REACHES_MAX} ports at most");
        return Err(Failure::new(ErrorKind::InvalidInput, message, "name fewer"));
    }
    reaches.iter().try_for_each(|remote| {
        (remote.host.as_str(), remote.port).to_socket_addrs().map(drop).map_err(|error| {
            Failure::new(
                ErrorKind::InvalidInput,
                format!("the host of {remote} is not found: {error}"),
                "check its name, or write its address",
            )
        })
    })
}

fn check_exposure(kind: &Kind, wanted: Option<&Exposure>) -> Result<(), Failure> {
    let Some(exposure) = wanted else { return Ok(()) };
    for address in &exposure.listen {
        TcpListener::bind((*address, 0)).map_err(|error| {
            Failure::new(
                ErrorKind::InvalidInput,
                format!("nothing can listen on {address}: {error}"),
                "name an address of the engine's host; ip address lists them",
            )
        })?;
    }
    kind.connector.check_network(&kind.version)
}

/// A port for a VDB: the wanted one, if given.
pub fn choose_port(parts: &Parts, wanted: Option<u16>) -> Result<u16, Failure> {
    ports::choose(&parts.catalog.all::<Vdb>()?, parts.paths.pool_number(), wanted)
}

/// The gateway of a VDB with this port, with a port for the server behind it.
pub fn on_port(parts: &Parts, gateway: &Gateway, port: u16) -> Result<Gateway, Failure> {
    let all = parts.catalog.all::<Vdb>()?;
    let server_port = ports::choose_another(&all, parts.paths.pool_number(), port)?;
    Ok(Gateway { server_port, ..gateway.clone() })
}

fn wanted_port(parts: &Parts, input: &Input) -> Result<u16, Failure> {
    match choose_port(parts, input.port) {
        Err(_) if input.any_port => choose_port(parts, None),
        chosen => chosen,
    }
}

/// Whether the present state of a VDB is asked for: a snapshot is taken for it.
pub fn is_present_of_vdb(owner: Owner, moment: &Moment) -> bool {
    matches!((owner, moment), (Owner::Vdb(_), Moment::Latest))
}

/// Step: its record, with a port and a password.
pub fn register(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let input: Input = context.input()?;
    let _one_at_a_time = REGISTRATION.lock();
    check_share(parts, input.user, input.vdb)?;
    let kind = Kind::of(parts, input.parent.owner)?;
    let port = wanted_port(parts, &input)?;
    let gateway = input.gateway.as_ref().map(|one| on_port(parts, one, port)).transpose()?;
    let vdb = Vdb {
        id: input.vdb,
        name: input.name,
        state: VdbState::Provisioning,
        problem: None,
        connector: kind.connector.kind().to_owned(),
        server_version: kind.version,
        ties: ties_of(parts, input.parent.owner)?,
        parent: input.parent,
        source_identity: String::new(),
        moment: None,
        port,
        gateway,
        slept: false,
        user: kind.connector.login().to_owned(),
        settings: input.settings,
        memory_bytes: input.memory_bytes,
        keep_source_logins: input.keep_source_logins,
        superuser: input.superuser,
        keep_foreign_servers: input.keep_foreign_servers,
        exposure: input.exposure,
        reaches: input.reaches,
        certificate: String::new(),
        owner: input.user,
        warm: input.warm,
        care: input.care,
        hooks: input.hooks,
        hook_failure: None,
        refresh_keeps: input.refresh_keeps,
        policy: input.policy.unwrap_or_else(Policy::of_vdb),
        dataset: None,
        timeflow: None,
        created_at: parts.now(),
        timings: Timings::default(),
    };
    let sent = input.password_of.map(|copy| parts.catalog.secret(&sent_password_key(copy)));
    let sent = sent.transpose()?.flatten().filter(|sent| !sent.reveal().is_empty());
    let password = sent.unwrap_or_else(|| Secret::new(kind.connector.new_password()));
    parts.catalog.put_secret(&password_key(vdb.id), &password)?;
    Ok(parts.catalog.put(&vdb)?)
}

/// What of the source is not in what is made from an object: an image says it when it is opened, a VDB has it on record.
fn ties_of(parts: &Parts, parent: Owner) -> Result<TiesCut, Failure> {
    let Owner::Vdb(id) = parent else { return Ok(TiesCut::default()) };
    Ok(parts.catalog.find::<Vdb>(id)?.map(|vdb| vdb.ties).unwrap_or_default())
}

/// Undo: removes them.
pub fn unregister(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    kept::forget(context.app(), input.hooks.values())?;
    forget_vdb(context.app(), input.vdb)
}

/// Removes a VDB's record and secrets.
pub fn forget_vdb(parts: &Parts, id: VdbId) -> Result<(), Failure> {
    if let Some(vdb) = parts.catalog.find::<Vdb>(id)? {
        kept::forget(parts, vdb.hooks.values())?;
    }
    parts.catalog.delete::<Vdb>(id)?;
    parts.catalog.delete_secret(&password_key(id))?;
    parts.catalog.delete_secret(&database_key(id))?;
    parts.catalog.delete_secret(&tls_key(id))?;
    parts.catalog.delete_secret(&handed_key(id))?;
    parts.catalog.delete_secret(&kept_key(id))?;
    Ok(())
}

fn resolve_parent(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    resolve_from(context, input.parent.owner, &input.moment)
}

/// Decides what to open and records it; for the present state of a VDB it takes a snapshot.
pub fn resolve_from(context: &Context, owner: Owner, moment: &Moment) -> Result<(), Failure> {
    let parts = context.app();
    if let (Owner::Vdb(id), Moment::Latest) = (owner, moment) {
        snapshots::take_of_vdb(parts, id, SnapshotKind::Policy)?;
    }
    context.set(BASE, &owner)?;
    let mut missed = None;
    let resolved = resolve(parts, owner, moment, &mut |follower| {
        let asked = snapshot::catch_up_with(context, follower, moment);
        missed = asked.as_ref().err().cloned();
        asked.map(drop)
    })?;
    if let (Moment::Latest, Some(why)) = (moment, missed) {
        let time = resolved.position.time;
        let age = parts.now().duration_since(time).as_secs().max(0).unsigned_abs();
        let age = format_duration(Duration::from_secs(age));
        let name = names::of(parts, owner)?;
        context.note(format!("it shows '{name}' as of {time:.0}, {age} ago: {}", why.message))?;
    }
    context.set(RESOLVED, &resolved)
}

/// Step: starts its server.
pub fn open_new(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let started = parts.elapsed_ms();
    let input: Input = context.input()?;
    open_on_free_port(parts, &input, context.need(DATASET)?)?;
    context.set(START_MS, &(parts.elapsed_ms() - started))
}

/// Opens it; on another port if somebody has taken the chosen one since.
fn open_on_free_port(parts: &Arc<Parts>, input: &Input, dataset: DatasetId) -> Result<(), Failure> {
    let mut vdb: Vdb = parts.catalog.get(input.vdb)?;
    let any_port = input.port.is_none() || input.any_port;
    let mut attempts = if any_port { PORT_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        match open_vdb(parts, &vdb, dataset, true) {
            Err(taken) if taken.code == ErrorKind::AlreadyExists && attempts > 0 => {
                let _one_at_a_time = REGISTRATION.lock();
                let port = choose_port(parts, None)?;
                let gateway = vdb.gateway.as_ref().map(|one| on_port(parts, one, port));
                let gateway = gateway.transpose()?;
                vdb = parts.catalog.update(vdb.id, |vdb: &mut Vdb| {
                    (vdb.port, vdb.gateway) = (port, gateway);
                })?;
            }
            opened => return opened,
        }
    }
}

/// Undo: stops it.
pub fn close_new(context: &Context) -> Result<(), Failure> {
    let (parts, input) = (context.app(), context.input::<Input>()?);
    gateways::end(parts, input.vdb)?;
    parts.servers.stop(&vdb_key(input.vdb), StopMode::Immediate).map(drop)
}

/// Step: what was opened is its state.
pub fn publish(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    publish_opened(context, input.vdb, input.requested_ms)
}

/// Ending: its hook runs. Then it is stopped, if that is how it is wanted.
pub fn finish(context: &Context) -> Result<(), Failure> {
    hooks::after_provision(context)?;
    let input: Input = context.input()?;
    if !input.stopped {
        return Ok(());
    }
    let parts = context.app();
    gateways::end(parts, input.vdb)?;
    parts.servers.stop(&vdb_key(input.vdb), StopMode::Fast)?;
    parts.volumes.unmount(context.need(DATASET)?)?;
    parts.catalog.update(input.vdb, |vdb: &mut Vdb| vdb.state = VdbState::Stopped)?;
    Ok(())
}

/// How long the steps of a job took, as they recorded it.
pub fn timings(context: &Context, requested_ms: u64) -> Result<Timings, Failure> {
    let milliseconds = |key: Key<u64>| Ok::<u64, Failure>(context.get(key)?.unwrap_or_default());
    Ok(Timings {
        total_ms: context.app().elapsed_ms().saturating_sub(requested_ms),
        clone_ms: milliseconds(CLONE_MS)?,
        mount_ms: milliseconds(MOUNT_MS)?,
        recover_ms: milliseconds(RECOVER_MS)?,
        replay_ms: milliseconds(REPLAY_MS)?,
        log_bytes: context.get(RESOLVED)?.map_or(0, |resolved: Resolved| resolved.log_bytes()),
        start_ms: milliseconds(START_MS)?,
    })
}

/// Records what was opened as the VDB's present state, on its own timeflow.
pub fn publish_opened(context: &Context, id: VdbId, requested_ms: u64) -> Result<(), Failure> {
    let parts = context.app();
    let resolved: Resolved = context.need(RESOLVED)?;
    let dataset: DatasetId = context.need(DATASET)?;
    let now = parts.now();
    let timings = timings(context, requested_ms)?;
    let Position { log, time } = resolved.position;
    let base: Option<Owner> = context.get(BASE)?;
    let identity = match base {
        Some(Owner::Dsource(base)) => parts.catalog.find::<Dsource>(base)?.map(|one| one.identity),
        Some(Owner::Vdb(base)) => parts.catalog.find::<Vdb>(base)?.map(|one| one.source_identity),
        None => None,
    };
    parts.catalog.transaction(|tx| -> Result<(), offshoot_catalog::Error> {
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
            log_dataset: None,
            started_at: now,
            ended_at: None,
        };
        tx.put(&timeflow)?;
        if let Some(old) = vdb.timeflow {
            tx.update::<Timeflow>(old, |old| old.ended_at = Some(now))?;
        }
        vdb.timeflow = Some(timeflow.id);
        vdb.dataset = Some(dataset);
        if let Some(identity) = &identity {
            vdb.source_identity.clone_from(identity);
        }
        vdb.state = VdbState::Running;
        vdb.problem = None;
        // An earlier state of its own lacks what it lacked.
        if base != Some(id.into()) {
            vdb.hook_failure = None;
        }
        vdb.moment = Some(Opened { snapshot: resolved.snapshot, log, time });
        vdb.timings = timings;
        tx.put(&vdb)
    })?;
    match base {
        Some(Owner::Dsource(base)) => learn_pace(context, base, &timings),
        _ => Ok(()),
    }
}

/// What was opened shows how fast moments open; what waited for the source does not count.
fn learn_pace(context: &Context, dsource: DsourceId, timings: &Timings) -> Result<(), Failure> {
    let Timings { clone_ms, mount_ms, recover_ms, log_bytes, start_ms, .. } = *timings;
    let took_ms = clone_ms + mount_ms + recover_ms + start_ms;
    let pages = context.get(PAGES)?.unwrap_or_default();
    snapshots::learn(context.app(), dsource, |pace| pace.opened(log_bytes, pages, took_ms))
}
