//! Ports of this host.

use crate::random_bytes;
use std::net::{Ipv4Addr, TcpListener};

/// Where to look for ports: below those that Linux hands out (32768 to 60999), so that no outgoing
/// connection has the port by the time a server starts on it.
const RANGE: std::ops::Range<u16> = 10_000..30_000;

/// A TCP port of the loopback address that nobody listens on at present; none if all are taken.
pub fn unused_port() -> Option<u16> {
    let begin = u16::from_ne_bytes(random_bytes()) % (RANGE.end - RANGE.start) + RANGE.start;
    (begin..RANGE.end)
        .chain(RANGE.start..begin)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}
