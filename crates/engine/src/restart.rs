//! What runs again when the engine starts, and what it stops when it ends.

use crate::core::{Core, vdb_key};
use crate::follower;
use crate::provision::{open_vdb, release_memory_group};
use offshoot_domain::{Dsource, DsourceState, Vdb, VdbState};
use offshoot_postgres::server::StopMode;
use offshoot_types::{ErrorKind, Failure};
use std::sync::Arc;

/// Starts everything the catalog says should run, side by side. What does not start is a fault; the
/// rest goes on.
pub fn start_all(core: &Arc<Core>) -> Result<(), Failure> {
    let dsources: Vec<Dsource> = core.catalog.list()?;
    let vdbs: Vec<Vdb> = core.catalog.list()?;
    std::thread::scope(|scope| {
        for dsource in &dsources {
            scope.spawn(|| start_dsource(core, dsource));
        }
        for vdb in vdbs.iter().filter(|vdb| vdb.state == VdbState::Running) {
            scope.spawn(|| start_vdb(core, vdb));
        }
    });
    Ok(())
}

fn start_dsource(core: &Arc<Core>, dsource: &Dsource) {
    // A job that a crash had interrupted may have started it.
    if core.follower(dsource.id).is_some() {
        return;
    }
    let follow = match dsource.state {
        DsourceState::Active => true,
        DsourceState::Paused | DsourceState::Failed => false,
        // Their jobs finish or undo them.
        DsourceState::Linking | DsourceState::Unlinking => return,
    };
    match follower::start(core, dsource, follow) {
        Ok(()) => core.clear(&dsource.name, "start"),
        Err(failure) => core.raise(&dsource.name, "start", &failure),
    }
}

/// Starts the server of a VDB that should run; a fault where it does not.
pub fn start_vdb(core: &Arc<Core>, vdb: &Vdb) {
    let Some(dataset) = vdb.dataset else { return };
    // It outlived the engine before, or a job that a crash had interrupted has started it.
    if core.servers.is_running(&vdb_key(vdb.id)) {
        core.clear(&vdb.name, "server");
        return;
    }
    let recorded = match open_vdb(core, vdb, dataset, false) {
        Ok(()) => {
            core.clear(&vdb.name, "server");
            core.catalog.update::<Vdb>(vdb.id, |vdb| {
                (vdb.state, vdb.problem) = (VdbState::Running, None);
            })
        }
        // It is tried again as soon as there is room.
        Err(failure) if failure.code == ErrorKind::PoolFull => {
            core.raise(&vdb.name, "server", &failure);
            return;
        }
        Err(failure) => {
            core.raise(&vdb.name, "server", &failure);
            core.catalog.update::<Vdb>(vdb.id, |vdb| {
                (vdb.state, vdb.problem) = (VdbState::Failed, Some(failure));
            })
        }
    };
    if let Err(error) = recorded {
        tracing::error!(vdb = %vdb.name, %error, "the VDB's state could not be recorded");
    }
}

/// Leaves a VDB down whose server ends whenever it is started.
///
/// # Errors
/// The catalog's.
pub fn give_up(core: &Core, vdb: &Vdb) -> Result<(), Failure> {
    let log = core.paths.logs().join(format!("{}.log", vdb_key(vdb.id)));
    let failure = Failure::new(
        ErrorKind::WrongState,
        format!("the server of '{}' has ended too often and is not started again", vdb.name),
        format!("see why: {}; then start it: offshoot vdb start {}", log.display(), vdb.name),
    );
    core.raise(&vdb.name, "server", &failure);
    core.catalog.update::<Vdb>(vdb.id, |vdb| {
        (vdb.state, vdb.problem) = (VdbState::Failed, Some(failure));
    })?;
    Ok(())
}

/// Stops followers and servers cleanly and unmounts everything. Their recorded states stay, so that
/// the next start brings them back.
pub fn stop_all(core: &Arc<Core>) {
    let vdbs: Vec<Vdb> = core.catalog.list().unwrap_or_default();
    std::thread::scope(|scope| {
        scope.spawn(|| stop_followers(core));
        for vdb in &vdbs {
            scope.spawn(|| {
                if let Err(failure) = core.servers.stop(&vdb_key(vdb.id), StopMode::Fast) {
                    tracing::error!(vdb = %vdb.name, %failure, "it did not stop cleanly");
                }
                release_memory_group(vdb.id);
            });
        }
    });
    for key in core.servers.keys() {
        if let Err(failure) = core.servers.stop(&key, StopMode::Immediate) {
            tracing::error!(key, %failure, "a server did not stop");
        }
    }
    core.exports.unmount_all();
}

/// Stops following all sources cleanly.
pub fn stop_followers(core: &Arc<Core>) {
    let followers: Vec<_> = core.followers.lock().drain().map(|(_, follower)| follower).collect();
    std::thread::scope(|scope| {
        for follower in &followers {
            scope.spawn(|| {
                if let Err(failure) = follower.stop() {
                    tracing::error!(%failure, "a follower did not stop cleanly");
                }
            });
        }
    });
}
