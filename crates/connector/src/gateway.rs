//! What holds the connections of a VDB while its server is away.

use crate::{Network, Server};
use offshoot_types::Failure;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Where a gateway is.
#[derive(Debug, Clone)]
pub struct GatewaySpec {
    /// The VDB's name, for people.
    pub name: String,
    /// A directory for this gateway alone. Made when missing.
    pub runtime_dir: PathBuf,
    /// What it has to say is appended here.
    pub log_file: PathBuf,
    /// The addresses that it listens on.
    pub addresses: Vec<IpAddr>,
    /// The port that it listens on.
    pub port: u16,
    /// The port of the server on loopback.
    pub server_port: u16,
}

/// Why a server is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// It is being replaced or restarted.
    Change,
    /// Nobody used it: whoever connects wants it back.
    Asleep,
}

/// Gateways of a kind of database. A gateway is a process of its own that outlives the engine.
pub trait Gateways: Send + Sync {
    /// The gateway of a runtime directory: the one that runs there, or else a new one, which holds whoever connects.
    ///
    /// # Errors
    /// `AlreadyExists` for a port that is taken; `HostUnprepared`.
    fn open(&self, spec: &GatewaySpec) -> Result<Box<dyn OpenGateway>, Failure>;
}

/// A gateway that runs. Dropping this leaves it running. All methods may be called from several threads.
pub trait OpenGateway: Send + Sync {
    /// Passes clients on to a server that is ready. Those that were parked get a session there when they send something.
    ///
    /// # Errors
    /// When the gateway does not answer.
    fn serve(&self, server: &dyn Server, network: Option<&Network>) -> Result<(), Failure>;

    /// Parks sessions that are idle, ends all others, and holds whoever comes. No session on the server is left then.
    ///
    /// # Errors
    /// `Busy` if it should be parked because it is idle, and is not; when the gateway does not answer.
    fn hold(&self, why: Absence) -> Result<(), Failure>;

    /// How long nobody has used the server; nothing while somebody does.
    ///
    /// # Errors
    /// When the gateway does not answer.
    fn idle(&self) -> Result<Duration, Failure>;

    /// Can be read from, without waiting, whenever a client waits for the server.
    ///
    /// # Errors
    /// When the gateway does not answer.
    fn wishes(&self) -> Result<UnixStream, Failure>;

    /// Ends it, and all sessions.
    ///
    /// # Errors
    /// If it does not end even when killed.
    fn end(&self) -> Result<(), Failure>;
}
