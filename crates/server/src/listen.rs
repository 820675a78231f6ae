//! Where the API listens, and how many connections each caller may have.
//!
//! Clients of the same host use a Unix socket: the kernel says who calls, and tells clients who answers. TCP is on
//! loopback, or by TLS. A connection has to make progress: headers, bodies and answers each have a time, so that nobody
//! holds a place by doing nothing.

mod accept;
mod connection;
mod local;
mod peer;
mod places;
mod tcp;

pub(crate) use accept::{Listeners, accept_until};
pub use local::LocalSocket;
pub(crate) use peer::{Peer, Share};
pub(crate) use places::Place;
pub(crate) use tcp::bind as bind_tcp;

use crate::tls::Identity;
use std::net::SocketAddr;

/// Where an engine answers.
#[derive(Debug, Clone)]
pub struct Listen {
    /// On loopback, unless by TLS. Port 0 picks a free one.
    pub tcp: SocketAddr,
    /// What the engine proves itself with there; none: it speaks in the clear.
    pub tls: Option<Identity>,
    /// For clients of this host.
    pub local: Option<LocalSocket>,
    /// Names that this host is called by, besides its addresses.
    pub names: Vec<String>,
}

impl From<SocketAddr> for Listen {
    fn from(tcp: SocketAddr) -> Self {
        Listen { tcp, tls: None, local: None, names: Vec::new() }
    }
}
