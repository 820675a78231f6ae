//! What runs again when the engine starts, and what it stops when it ends.

use crate::core::job_kind::JobKind;
use crate::core::keys::vdb_key;
use crate::core::topic::Topic;
use crate::parts::{Context, Parts};
use crate::serving::gateways;
use crate::serving::vdb::open_vdb;
use offshoot_connector::StopMode;
use offshoot_domain::{Dsource, DsourceState, Vdb, VdbState};
use offshoot_os::spawn_or_run;
use offshoot_types::{ErrorKind, Failure, JobId, VdbId};
use offshoot_workflow::{Submission, Workflow};
use std::sync::Arc;
use std::time::Duration;

/// How long opening waits for servers. The job of one that takes longer continues, and whoever asks for that VDB is told
/// which job holds it: users of a VDB can make its start take as long as a start may, and the others should not wait.
const STARTS: Duration = Duration::from_secs(60);

/// Starts everything that the catalog says should run, in parallel, and waits for it. What does not start is a fault;
/// the rest continues.
///
/// Jobs start VDBs, because a start may outlast the wait and must hold its VDB until then. Every job has its own thread,
/// so all start at the same time; a job adds a few commits of the catalog, some milliseconds in all. dSources are started
/// here, because a job would add nothing: their start waits for nobody (the follower's own threads reach the source and
/// recover staging), leaves nothing to undo, and ends before users can ask for anything.
///
/// # Errors
/// The catalog's.
pub fn start_all(parts: &Arc<Parts>) -> Result<(), Failure> {
    let dsources: Vec<Dsource> = parts.catalog.list()?;
    let vdbs: Vec<Vdb> = parts.catalog.list()?;
    let should_run = vdbs.iter().filter(|vdb| vdb.state == VdbState::Running || vdb.is_asleep());
    let starts: Vec<JobId> = should_run.filter_map(|vdb| begin_start(parts, vdb)).collect();
    std::thread::scope(|scope| {
        for dsource in &dsources {
            spawn_or_run(scope, || start_dsource(parts, dsource));
        }
    });
    let deadline = parts.clock.elapsed() + STARTS;
    for job in starts {
        let left = deadline.saturating_sub(parts.clock.elapsed());
        match parts.runner()?.wait(job, left) {
            Ok(job) if !job.state.is_final() => {
                tracing::warn!(job = %job.id, vdb = %job.object, "it is still being started");
            }
            Ok(_) => {}
            // Where there are very many, the first have been forgotten by now.
            Err(failure) => tracing::debug!(%job, %failure, "a start that has ended"),
        }
    }
    Ok(())
}

/// Submits the job that starts a VDB; none where it runs, or where that has to wait.
fn begin_start(parts: &Arc<Parts>, vdb: &Vdb) -> Option<JobId> {
    // It outlived the engine before, or a job that a crash had interrupted has started it.
    if parts.servers.is_running(&vdb_key(vdb.id)) {
        parts.clear(&vdb.name, Topic::Server);
        return None;
    }
    let submitted = match submit_revival(parts, vdb) {
        // Room was made for the next try, where any was left.
        Err(full) if full.code == ErrorKind::PoolFull => submit_revival(parts, vdb),
        submitted => submitted,
    };
    submitted.unwrap_or_else(|failure| {
        // The watch tries again.
        parts.raise(&vdb.name, Topic::Server, &failure);
        None
    })
}

fn start_dsource(parts: &Arc<Parts>, dsource: &Dsource) {
    // A job that a crash had interrupted may have started it.
    if parts.follower(dsource.id).is_some() {
        return;
    }
    let follow = match dsource.state {
        DsourceState::Active => true,
        DsourceState::Paused | DsourceState::Failed => false,
        DsourceState::Replica if dsource.log_dataset.is_some() => false,
        // Their jobs finish or undo them; a masked one follows nothing.
        DsourceState::Linking
        | DsourceState::Unlinking
        | DsourceState::Masked
        | DsourceState::Replica => return,
    };
    match parts.start(dsource, follow) {
        Ok(()) => parts.clear(&dsource.name, Topic::Start),
        Err(failure) => parts.raise(&dsource.name, Topic::Start, &failure),
    }
}

/// Starts the server of a VDB that should run; raises a fault if it does not start.
fn start_vdb(parts: &Arc<Parts>, vdb: &Vdb) {
    let Some(dataset) = vdb.dataset else { return };
    // Somebody was quicker, or it is its gateway that is to be started.
    if let Some(server) = parts.servers.get(&vdb_key(vdb.id)).filter(|server| server.running()) {
        parts.clear(&vdb.name, Topic::Server);
        if let Err(failure) = gateways::mend(parts, vdb, &*server) {
            tracing::warn!(vdb = %vdb.name, %failure, "nobody reaches it");
        }
        return;
    }
    let recorded = match open_vdb(parts, vdb, dataset, false) {
        Ok(()) => {
            parts.clear(&vdb.name, Topic::Server);
            parts.catalog.update::<Vdb>(vdb.id, |vdb| {
                (vdb.state, vdb.problem) = (VdbState::Running, None);
            })
        }
        // It is retried as soon as there is room.
        Err(failure) if failure.code == ErrorKind::PoolFull => {
            parts.raise(&vdb.name, Topic::Server, &failure);
            return;
        }
        Err(failure) => {
            parts.raise(&vdb.name, Topic::Server, &failure);
            parts.catalog.update::<Vdb>(vdb.id, |vdb| {
                (vdb.state, vdb.problem) = (VdbState::Failed, Some(failure));
            })
        }
    };
    if let Err(error) = recorded {
        tracing::error!(vdb = %vdb.name, %error, "the VDB's state could not be recorded");
    }
}

/// The workflow that starts a VDB that should run, or the gateway of one that is asleep: when the engine opens, and when
/// one of them has ended.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::VdbRevive).step_without_undo("start", revive)
}

/// Starts a VDB that should run, as a job: it holds the VDB, so it cannot conflict with its user. None if another job
/// holds it.
///
/// # Errors
/// The catalog's.
pub fn submit_revival(parts: &Arc<Parts>, vdb: &Vdb) -> Result<Option<JobId>, Failure> {
    let submission = Submission::new(JobKind::VdbRevive, &vdb.name, &vdb.id).exclusive(vdb.id);
    match parts.runner()?.submit(parts, submission.of_engine()) {
        // Its user was quicker.
        Err(failure) if failure.code == ErrorKind::Busy => Ok(None),
        submitted => submitted.map(Some),
    }
}

fn revive(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    // It may have been stopped or deleted since.
    match parts.catalog.find::<Vdb>(context.input::<VdbId>()?)? {
        Some(vdb) if vdb.state == VdbState::Running => start_vdb(parts, &vdb),
        Some(vdb) if vdb.is_asleep() => gateways::rest(parts, &vdb)?,
        _ => {}
    }
    Ok(())
}

/// Leaves a VDB down if its server ends whenever it is started.
///
/// # Errors
/// The catalog's.
pub fn give_up(parts: &Parts, vdb: &Vdb) -> Result<(), Failure> {
    let log = parts.paths.log(&vdb_key(vdb.id));
    let failure = Failure::new(
        ErrorKind::WrongState,
        format!("the server of '{}' has ended too often and is not started again", vdb.name),
        format!("see why: {}; then start it: offshoot vdb start {}", log.display(), vdb.name),
    );
    parts.raise(&vdb.name, Topic::Server, &failure);
    parts.catalog.update::<Vdb>(vdb.id, |vdb| {
        (vdb.state, vdb.problem) = (VdbState::Failed, Some(failure));
    })?;
    Ok(())
}

/// Stops followers and servers cleanly and unmounts everything. Their recorded states stay, so that
/// the next start brings them back.
pub fn stop_all(parts: &Arc<Parts>) {
    let vdbs: Vec<Vdb> = parts.catalog.list().unwrap_or_default();
    std::thread::scope(|scope| {
        spawn_or_run(scope, || parts.stop_all());
        for vdb in &vdbs {
            spawn_or_run(scope, || {
                if let Err(failure) = gateways::end(parts, vdb.id) {
                    tracing::error!(vdb = %vdb.name, %failure, "its gateway did not stop");
                }
                if let Err(failure) = parts.servers.stop(&vdb_key(vdb.id), StopMode::Fast) {
                    tracing::error!(vdb = %vdb.name, %failure, "it did not stop cleanly");
                }
            });
        }
    });
    for key in parts.servers.keys() {
        if let Err(failure) = parts.servers.stop(&key, StopMode::Immediate) {
            tracing::error!(key, %failure, "a server did not stop");
        }
    }
    parts.volumes.unmount_all();
}
