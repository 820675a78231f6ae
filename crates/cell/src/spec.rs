//! What a cell contains.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// What a cell contains. It is an argument of the program that builds the cell: never a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSpec {
    /// Who the server runs as; none: whoever builds the cell.
    pub user: Option<CellUser>,
    /// Directories that can be read, at the same path as outside, beside [`SYSTEM_DIRS`](offshoot_os::process::SYSTEM_DIRS).
    pub read_only: Vec<PathBuf>,
    /// Directories that belong to the server, at the same path as outside.
    pub own: Vec<PathBuf>,
    /// The one TCP port that it may listen on.
    pub port: Option<u16>,
    /// The TCP ports that it may connect to, of whatever host: only for programs that users do not choose.
    #[serde(default)]
    pub connects: Vec<u16>,
    /// How many processes and threads it may have; none: no limit. Only for a cell with a user namespace of its own, or
    /// others are counted.
    pub processes_max: Option<u64>,
    /// What it may connect to.
    #[serde(default)]
    pub reaches: Vec<SocketAddr>,
    /// The names of those.
    #[serde(default)]
    pub hosts: Vec<(IpAddr, String)>,
    /// Whether UDP is allowed: a few old servers talk to themselves by it.
    pub udp: bool,
}

/// A user, as far as a cell knows users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellUser {
    /// Its name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Group id; it has no other groups.
    pub gid: u32,
}

/// What programs need of the host's configuration: nothing of it is secret.
pub(crate) const CONFIGURATION: [&str; 5] = [
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/nsswitch.conf",
    "/etc/alternatives",
];

/// Devices.
pub(crate) const DEVICES: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Keeps the builder's heap (jemalloc) from starting a thread: a process with threads gets no user
/// namespace.
pub(crate) const HEAP: (&str, &str) = ("MALLOC_CONF", "background_thread:false");
