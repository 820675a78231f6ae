//! Jobs by which the engine stops a VDB that nobody uses, and starts it for whoever connects.

use crate::core::job_kind::JobKind;
use crate::core::keys::vdb_key;
use crate::jobs::vdb;
use crate::parts::{Context, Parts};
use crate::serving::gateways;
use offshoot_connector::Absence;
use offshoot_domain::{Vdb, VdbState};
use offshoot_types::{ErrorKind, Failure, JobId};
use offshoot_workflow::Workflow;
use std::sync::Arc;

/// The workflow that stops one. Clients are parked before there is no way back: one that has begun to use it in the
/// meantime keeps it awake.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::VdbSleep)
        .step("park", park, serve_again)
        .point_of_no_return()
        .step_without_undo("stop", vdb::stop)
        .step_without_undo("publish", publish)
}

/// Stops a VDB that nobody uses.
///
/// # Errors
/// `Busy` if a job holds it.
pub fn submit_sleep(parts: &Arc<Parts>, vdb: &Vdb) -> Result<JobId, Failure> {
    vdb::submit_of_engine(parts, JobKind::VdbSleep, vdb)
}

/// Starts one for whoever waits for it.
///
/// # Errors
/// `Busy` if a job holds it.
pub fn submit_wake(parts: &Arc<Parts>, vdb: &Vdb) -> Result<JobId, Failure> {
    vdb::submit_of_engine(parts, JobKind::VdbStart, vdb)
}

fn park(context: &Context) -> Result<(), Failure> {
    let (parts, input) = (context.app(), context.input::<vdb::Input>()?);
    let vdb: Vdb = parts.catalog.get(input.vdb)?;
    let in_use = || {
        let message = format!("'{}' is used again", vdb.name);
        Failure::new(ErrorKind::Busy, message, "it is stopped when it is idle")
    };
    let gateway = parts.gateways.get(vdb.id).filter(|_| vdb.state == VdbState::Running);
    gateway.ok_or_else(in_use)?.hold(Absence::Asleep)
}

fn serve_again(context: &Context) -> Result<(), Failure> {
    let (parts, input) = (context.app(), context.input::<vdb::Input>()?);
    match parts.servers.get(&vdb_key(input.vdb)) {
        Some(server) => gateways::serve(parts, &parts.catalog.get(input.vdb)?, &*server),
        // It ended together with the engine; the watch starts it.
        None => Ok(()),
    }
}

fn publish(context: &Context) -> Result<(), Failure> {
    let (parts, input) = (context.app(), context.input::<vdb::Input>()?);
    let vdb = parts.catalog.update(input.vdb, |vdb: &mut Vdb| {
        (vdb.state, vdb.problem, vdb.slept) = (VdbState::Stopped, None, true);
    })?;
    gateways::rest(parts, &vdb)
}
