//! TCP: in the clear on loopback alone.

use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// How long a port may be taken: an engine that ended a moment ago may still have it.
const FREED: Duration = Duration::from_secs(2);
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Listens on an address: one of loopback, unless by TLS.
///
/// # Errors
/// `invalid_input` for an address that is not loopback; `already_exists` if the port is taken.
pub(crate) fn bind(listen: SocketAddr, by_tls: bool) -> Result<TcpListener, Failure> {
    if !by_tls && !listen.ip().is_loopback() {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("will not listen on {listen}: without TLS the token could be read on the way"),
            "listen on loopback, as --listen 127.0.0.1:7640, and reach it from elsewhere through an \
             SSH tunnel",
        ));
    }
    let listener = bind_when_free(listen).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => Failure::new(
            ErrorKind::AlreadyExists,
            format!("another program listens on {listen} already"),
            "choose another port with --listen 127.0.0.1:PORT (0 takes a free one), or stop the other \
             program",
        ),
        _ => Failure::new(
            ErrorKind::HostUnprepared,
            format!("cannot listen on {listen}: {error}"),
            "choose another address with --listen",
        ),
    })?;
    listener
        .set_nonblocking(true)
        .map_err(|error| Failure::internal(format!("the listener cannot be set up: {error}")))?;
    Ok(listener)
}

fn bind_when_free(listen: SocketAddr) -> io::Result<TcpListener> {
    let deadline = SystemClock.elapsed() + FREED;
    loop {
        match TcpListener::bind(listen) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && SystemClock.elapsed() < deadline =>
            {
                SystemClock.sleep(RETRY_PAUSE);
            }
            outcome => return outcome,
        }
    }
}
