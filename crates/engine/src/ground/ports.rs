//! TCP ports of VDBs.

use offshoot_domain::Vdb;
use offshoot_types::{ErrorKind, Failure};
use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};

/// Ports given to VDBs that name none. Each pool begins at a different one, so that VDBs of an engine
/// that is down find their ports still free although another engine runs on the host.
const RANGE: std::ops::Range<u16> = 6500..10_000;

/// A port that no VDB has and nobody listens on: the wanted one, if given.
///
/// # Errors
/// `AlreadyExists` for a wanted port that is taken, `HostUnprepared` when none is free.
pub fn choose(vdbs: &[Vdb], pool_number: u64, wanted: Option<u16>) -> Result<u16, Failure> {
    if let Some(port) = wanted {
        let hint = "choose another port, or leave --port out";
        if let Some(vdb) = vdbs.iter().find(|vdb| ports_of(vdb).contains(&port)) {
            let message = format!("port {port} belongs to the VDB '{}'", vdb.name);
            return Err(Failure::new(ErrorKind::AlreadyExists, message, hint));
        }
        return match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => Ok(port),
            Err(error) => {
                let message = format!("port {port} cannot be used: {error}");
                Err(Failure::new(ErrorKind::AlreadyExists, message, hint))
            }
        };
    }
    choose_another(vdbs, pool_number, 0)
}

fn ports_of(vdb: &Vdb) -> [u16; 2] {
    [vdb.port, vdb.server_port()]
}

/// A port that no VDB has, other than this one, and nobody listens on.
///
/// # Errors
/// `HostUnprepared` when none is free.
pub fn choose_another(vdbs: &[Vdb], pool_number: u64, port: u16) -> Result<u16, Failure> {
    let given: HashSet<u16> = vdbs.iter().flat_map(ports_of).chain([port]).collect();
    let begin = RANGE.start + (pool_number % RANGE.len() as u64) as u16;
    (begin..RANGE.end)
        .chain(RANGE.start..begin)
        .filter(|port| !given.contains(port))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| {
            let message = format!("no port from {} to {} is free", RANGE.start, RANGE.end - 1);
            Failure::new(ErrorKind::HostUnprepared, message, "give one with --port")
        })
}
