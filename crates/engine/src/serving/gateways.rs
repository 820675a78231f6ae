//! The gateways of VDBs: they hold the clients while a server is stopped, replaced or asleep.
//!
//! A gateway is no part of what a VDB is: it can be made anew at any time. So one that does not answer holds up no job;
//! its clients are gone anyway.

use crate::core::keys::gateway_key;
use crate::core::kind::Kind;
use crate::serving::{Serving, exposure, servers};
use offshoot_connector::{Absence, GatewaySpec, Gateways as Maker, OpenGateway, Server};
use offshoot_domain::{Exposure, Gateway, Vdb};
use offshoot_types::{ErrorKind, Failure, VdbId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a gateway that nobody needs may take to end.
const END_DEADLINE: Duration = Duration::from_secs(10);

/// The gateways that run now.
#[derive(Default)]
pub struct Gateways {
    open: Mutex<HashMap<VdbId, Arc<dyn OpenGateway>>>,
}

impl Gateways {
    /// That of a VDB.
    pub fn get(&self, id: VdbId) -> Option<Arc<dyn OpenGateway>> {
        self.open.lock().get(&id).cloned()
    }
}

/// Whether a VDB of this kind can have a gateway.
///
/// # Errors
/// `InvalidInput` if it cannot.
pub fn check(kind: &Kind) -> Result<(), Failure> {
    maker(kind).map(drop)
}

fn maker(kind: &Kind) -> Result<&dyn Maker, Failure> {
    kind.connector.gateways().ok_or_else(|| {
        Failure::new(
            ErrorKind::InvalidInput,
            format!("there are no gateways for databases of the kind {}", kind.connector.kind()),
            "leave out --gateway and --stop-when-idle",
        )
    })
}

/// Before a VDB's server is started, or while it is asleep: its gateway holds whoever comes. A VDB that has none any
/// more gives back its port.
///
/// # Errors
/// `AlreadyExists` for a port that is taken; what a gateway needs and the host has not.
pub fn prepare(serving: &Serving, vdb: &Vdb) -> Result<(), Failure> {
    let Some(gateway) = &vdb.gateway else { return end(serving, vdb.id) };
    let kind = Kind::of_vdb(serving, vdb)?;
    let opened = maker(&kind)?.open(&spec(serving, vdb, gateway))?;
    serving.gateways.open.lock().insert(vdb.id, opened.into());
    Ok(())
}

fn spec(serving: &Serving, vdb: &Vdb, gateway: &Gateway) -> GatewaySpec {
    let key = gateway_key(vdb.id);
    GatewaySpec {
        name: vdb.name.to_string(),
        runtime_dir: serving.paths.server(&key),
        log_file: serving.paths.log(&key),
        addresses: Exposure::listening(vdb.exposure.as_ref()),
        port: vdb.port,
        server_port: gateway.server_port,
    }
}

/// A VDB's server is ready: its clients go on.
///
/// # Errors
/// If they cannot: nobody reaches the VDB then.
pub fn serve(serving: &Serving, vdb: &Vdb, server: &dyn Server) -> Result<(), Failure> {
    if vdb.gateway.is_none() {
        return Ok(());
    }
    let network = exposure::network(serving, vdb)?;
    let serve = || match serving.gateways.get(vdb.id) {
        Some(gateway) => gateway.serve(server, network.as_ref()),
        None => Err(Failure::internal("a gateway that was not prepared")),
    };
    serve().or_else(|failure| {
        tracing::warn!(vdb = %vdb.name, %failure, "its gateway is started anew");
        prepare(serving, vdb)?;
        serve()
    })
}

/// Makes sure that the gateway of a VDB whose server runs is there.
///
/// # Errors
/// As [`prepare`] and [`serve`].
pub fn mend(serving: &Serving, vdb: &Vdb, server: &dyn Server) -> Result<(), Failure> {
    let answers = |id| serving.gateways.get(id).is_some_and(|gateway| gateway.idle().is_ok());
    if vdb.gateway.is_none() || answers(vdb.id) {
        return Ok(());
    }
    prepare(serving, vdb)?;
    serve(serving, vdb, server)
}

/// Before a VDB's server is stopped: its clients are held, where it has a gateway.
pub fn hold(serving: &Serving, id: VdbId, why: Absence) {
    let Some(gateway) = serving.gateways.get(id) else { return };
    if let Err(failure) = gateway.hold(why) {
        tracing::warn!(vdb = %id, %failure, "its gateway does not hold its clients");
    }
}

/// The gateway of a VDB whose server does not run: where the VDB is asleep, whoever connects wakes it; else there is
/// none.
///
/// # Errors
/// As [`prepare`] and [`end`].
pub fn rest(serving: &Serving, vdb: &Vdb) -> Result<(), Failure> {
    if !vdb.is_asleep() {
        return end(serving, vdb.id);
    }
    prepare(serving, vdb)?;
    hold(serving, vdb.id, Absence::Asleep);
    Ok(())
}

/// Nobody waits for a VDB any more. That there is no gateway is no error.
///
/// # Errors
/// If it does not end even when killed.
pub fn end(serving: &Serving, id: VdbId) -> Result<(), Failure> {
    let open = serving.gateways.open.lock().remove(&id);
    if let Some(gateway) = open {
        gateway.end()?;
    }
    let runtime_dir = serving.paths.server(&gateway_key(id));
    if !runtime_dir.exists() {
        return Ok(());
    }
    serving.connectors.stop_leftover(&runtime_dir, END_DEADLINE)?;
    servers::remove_runtime_dir(&runtime_dir);
    Ok(())
}
