//! Ports of this host.

use crate::random_bytes;
use std::net::{Ipv4Addr, TcpListener};

/// Where ports are sought: below those that Linux hands out by itself (32768 to 60999), so that the
/// port is not somebody's outgoing connection by the time a server is started on it.
const RANGE: std::ops::Range<u16> = 10_000..30_000;

/// A TCP port of the loopback address on which nobody listens at present; none where all are taken.
pub fn unused_port() -> Option<u16> {
    let begin = u16::from_ne_bytes(random_bytes()) % (RANGE.end - RANGE.start) + RANGE.start;
    (begin..RANGE.end)
        .chain(RANGE.start..begin)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}
