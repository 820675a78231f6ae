//! Who is at the other end of a connection.

use offshoot_os::process::User;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Who is at the other end of a connection, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A process of this host, by the Unix socket.
    Local {
        /// Its user.
        uid: u32,
        /// Its id.
        pid: i32,
    },
    /// By TCP.
    Remote(SocketAddr),
}

/// Who shares one bound: a user of this host, or an address. In IPv6 everybody has 2^64 of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Share {
    User(u32),
    Address(IpAddr),
}

impl Peer {
    /// Whether it is a process of the engine's own user, or of root: they can do everything with the pool anyway.
    pub(crate) fn is_owner(&self) -> bool {
        matches!(self, Peer::Local { uid, .. } if *uid == 0 || *uid == User::own_uid())
    }

    /// With whom it shares a bound.
    pub(crate) fn share(&self) -> Share {
        match self {
            Peer::Local { uid, .. } => Share::User(*uid),
            Peer::Remote(address) => Share::Address(match address.ip().to_canonical() {
                IpAddr::V6(ip) if !ip.is_loopback() => {
                    let network = u128::from(ip) & (u128::MAX << 64);
                    IpAddr::V6(Ipv6Addr::from(network))
                }
                ip => ip,
            }),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Local { uid, pid } => write!(f, "local user {uid}, process {pid}"),
            Peer::Remote(address) => write!(f, "{address}"),
        }
    }
}

#[cfg(test)]
mod tests;
