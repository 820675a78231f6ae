//! Continues where an engine was that was killed, or that makes room for this one.
//!
//! A VDB is taken over as it runs if its mount and the log of what it was told are complete, its
//! server is alive and no job was about to change it. Everything else is restarted, as after a crash
//! of the host: the server is stopped, the mount ends, recovery brings back what was committed.

use crate::core::job_kind::JobKind;
use crate::core::keys::{gateway_key, vdb_key};
use crate::core::kind::Kind;
use crate::ground::custody::Custody;
use crate::ground::paths::{Paths, keeper_socket};
use crate::parts::Parts;
use crate::serving::vdb::favour_vital;
use crate::serving::{direct, gateways, servers};
use offshoot_catalog::Job;
use offshoot_dataset::VolatileLog;
use offshoot_direct::Table;
use offshoot_domain::{Vdb, VdbState};
use offshoot_keeper::{Held, Keeper};
use offshoot_os::process::{ProcessId, Signal};
use offshoot_types::{DatasetId, ErrorKind, Failure};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long an engine that was killed may take to end: the kernel takes its memory back first.
const KILLED: Duration = Duration::from_secs(60);
/// How long an engine may take to end its jobs and make room.
const MAKE_ROOM: Duration = Duration::from_secs(180);

/// What an earlier engine left at the keeper.
#[derive(Default)]
pub struct Survivors {
    /// What their deliveries handed over.
    handovers: BTreeMap<DatasetId, Vec<OwnedFd>>,
    /// The logs of what its programs were told.
    pub logs: Vec<(DatasetId, Arc<VolatileLog>)>,
}

impl Survivors {
    /// Asks the keeper.
    pub fn of(custody: &Custody) -> Survivors {
        let mut survivors = Survivors::default();
        for Held { key, mut descriptors } in custody.held() {
            let dataset = DatasetId(key);
            // In the order of `Volumes::keep`: the log comes last.
            match descriptors.pop().map(VolatileLog::open) {
                Some(Ok(log)) => survivors.logs.push((dataset, Arc::new(log))),
                Some(Err(error)) => tracing::warn!(%dataset, %error, "left by another version"),
                None => tracing::warn!(%dataset, "the keeper holds nothing of it"),
            }
            survivors.handovers.insert(dataset, descriptors);
        }
        survivors
    }
}

/// What continues, and must not be cleaned up.
#[derive(Default)]
pub struct TakenOver {
    /// Keys of servers.
    pub servers: Vec<String>,
    /// Mount points.
    pub mounts: Vec<PathBuf>,
}

/// Takes over what it can, and releases the rest.
pub fn take_over(parts: &Arc<Parts>, survivors: Survivors) -> Result<TakenOver, Failure> {
    let Survivors { mut handovers, logs } = survivors;
    drop(logs);
    let vdbs: Vec<Vdb> = parts.catalog.list()?;
    // Before any VDB goes on, and so before anything that servers read directly can change.
    let mut tables = parts.volumes.adopt_tables(&mut handovers, |dataset| {
        let vdb = vdbs.iter().find(|vdb| vdb.dataset == Some(dataset))?;
        direct::group_of(parts, vdb).ok()
    });
    let mut taken = TakenOver::default();
    // They hold clients also of those that are begun anew.
    let gateways = vdbs.iter().filter(|vdb| vdb.gateway.is_some());
    taken.servers.extend(gateways.map(|vdb| gateway_key(vdb.id)));
    for vdb in &vdbs {
        let left = vdb.dataset.and_then(|id| handovers.remove_entry(&id));
        let Some((dataset, handover)) = left else { continue };
        let table = tables.remove(&dataset).transpose();
        match take_over_vdb(parts, vdb, dataset, handover, table) {
            Ok(()) => {
                tracing::info!(vdb = %vdb.name, "goes on");
                taken.servers.push(vdb_key(vdb.id));
                taken.mounts.push(parts.paths.mount(dataset));
            }
            Err(failure) => {
                tracing::warn!(vdb = %vdb.name, %failure, "is begun anew");
                let_go(parts, dataset)?;
            }
        }
    }
    for (dataset, handover) in handovers {
        drop(handover);
        let_go(parts, dataset)?;
    }
    Ok(taken)
}

/// The programs of a mount get errors from here on.
fn let_go(parts: &Parts, dataset: DatasetId) -> Result<(), Failure> {
    parts.volumes.custody().drop_held(dataset);
    match parts.store.dataset(dataset) {
        Ok(files) => {
            files.survive_no_longer();
            Ok(())
        }
        Err(offshoot_dataset::Error::NoDataset(_) | offshoot_dataset::Error::Lost(_)) => Ok(()),
        Err(error) => Err(error.failure()),
    }
}

fn take_over_vdb(
    parts: &Arc<Parts>,
    vdb: &Vdb,
    dataset: DatasetId,
    handover: Vec<OwnedFd>,
    table: io::Result<Option<Arc<Table>>>,
) -> Result<(), Failure> {
    let refused = |reason: &str| Err(Failure::internal(reason.to_owned()));
    let (key, lock) = (vdb_key(vdb.id), vdb.id.to_string());
    if vdb.state != VdbState::Running {
        return refused("it was not running");
    }
    let jobs = parts.catalog.unsettled_jobs()?;
    // One that only started its server has changed nothing: what runs of that is found below.
    let changes = |job: &&Job| JobKind::is_on_vdb(job) && !JobKind::VdbRevive.is_of(job);
    if jobs.iter().filter(changes).any(|job| job.locks.contains(&lock)) {
        return refused("a job was changing it");
    }
    if parts.store.dataset(dataset).map_err(|error| error.failure())?.volatile().is_none() {
        return refused("not everything it was told was kept");
    }
    let table = table.map_err(|error| {
        Failure::internal(format!("the table of its server cannot be used: {error}"))
    })?;
    let kind = Kind::of_vdb(parts, vdb)?;
    let title = format!("vdb {}", vdb.name);
    let spec = servers::spec(parts, &key, title, &kind, dataset, Some(vdb.server_port()))?;
    let Some(server) = kind.connector.adopt(spec)? else { return refused("its server has ended") };
    // What is not stored must be set again before anything is written.
    favour_vital(&*parts.volumes.files(dataset)?, kind.connector.layout())?;
    parts.volumes.take_over(dataset, handover, table)?;
    if let Err(failure) = gateways::mend(parts, vdb, &*server) {
        // It is tried again soon.
        tracing::warn!(vdb = %vdb.name, %failure, "its gateway is not there");
    }
    parts.servers.add(&key, server);
    Ok(())
}

/// Waits for the end of a pool's engine that was killed: until then it keeps the pool's lock and its port, and clients
/// of VDBs wait for the next one. An engine that lives is not waited for.
pub fn outlast_killed(pool: &Path) {
    let Some(engine) = engine_of(pool).filter(ProcessId::is_dying) else { return };
    tracing::info!(pid = engine.pid, "waiting for the end of an engine that was killed");
    if !engine.wait_end(KILLED) {
        tracing::warn!(pid = engine.pid, "it does not end");
    }
}

/// The process of a pool's engine, as its keeper knows it.
fn engine_of(pool: &Path) -> Option<ProcessId> {
    // Nobody serves a pool that is not there.
    let paths = Paths::of(pool).ok()?;
    let keeper = Keeper::connect(&keeper_socket(paths.runtime())).ok()?;
    ProcessId::of(keeper.engine().ok()??)
}

/// Makes the engine of a pool, if one runs, give way: it leaves its VDBs running and ends.
///
/// # Errors
/// `Busy` when it does not end in time.
pub fn displace(pool: &Path) -> Result<(), Failure> {
    let Some(engine) = engine_of(pool) else { return Ok(()) };
    let pid = engine.pid;
    tracing::info!(pid, "taking over from an engine");
    let asked = engine.signal(Signal::User1);
    asked.map_err(|error| Failure::internal(format!("the engine cannot be asked: {error}")))?;
    if engine.wait_end(MAKE_ROOM) {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::Busy,
        format!("the engine with pid {pid} does not make room"),
        "see its log; it is still serving",
    ))
}
