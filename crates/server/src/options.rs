//! How an engine is to be run.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The address an engine answers on unless told otherwise.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7640);

/// How an engine is to be run: the command line overrides the configuration file, which overrides
/// defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// The pool directory; created if there is none.
    pub pool: PathBuf,
    /// Where to listen: by TLS, if it is not on loopback. Port 0 picks a free one.
    pub listen: SocketAddr,
    /// The group of this host whose members may connect to the Unix socket.
    pub socket_group: Option<String>,
    /// The certificate to answer with by TLS, and its key; the engine makes one where it needs one.
    pub tls_files: Option<(PathBuf, PathBuf)>,
    /// Names that this host is called by, besides its addresses.
    pub host_names: Vec<String>,
    /// What the shared block cache may hold, in bytes; the engine chooses if absent.
    pub cache_size_bytes: Option<u64>,
    /// Memory from which the servers of a trust group read without asking, in bytes; 0: they ask.
    pub direct_size_bytes: u64,
    /// The most that data may take of the pool's file system, in bytes; all of it if absent.
    pub capacity_bytes: Option<u64>,
    /// The file with the key that secrets are sealed with.
    pub secret_key: Option<PathBuf>,
    /// Whether secrets whose key is lost are forgotten.
    pub forget_secrets: bool,
    /// Whether a pool that is made is encrypted; one that is there has to be.
    pub encrypt: bool,
    /// Directories with PostgreSQL's programs, searched before the usual places.
    pub postgres_bin_dirs: Vec<PathBuf>,
    /// Whether servers run as plain processes, without cells around them.
    pub unconfined: bool,
    /// A collector that is sent traces of jobs, as OTLP by HTTP.
    pub traces: Option<String>,
    /// Whether an engine that serves the pool is asked to make room.
    pub takeover: bool,
}

impl ServeOptions {
    /// The defaults for a pool.
    pub fn new(pool: impl Into<PathBuf>) -> Self {
        ServeOptions {
            pool: pool.into(),
            listen: DEFAULT_LISTEN,
            socket_group: None,
            tls_files: None,
            host_names: Vec::new(),
            cache_size_bytes: None,
            direct_size_bytes: 0,
            capacity_bytes: None,
            secret_key: None,
            forget_secrets: false,
            encrypt: false,
            postgres_bin_dirs: Vec::new(),
            unconfined: false,
            traces: None,
            takeover: false,
        }
    }
}
