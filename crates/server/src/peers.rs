//! Other engines by the network: TLS 1.3 on the port of the API, told apart from clients by ALPN.
//!
//! Both ends show a certificate of their own, which nobody vouches for. The caller takes the one certificate that it
//! knows the other end by; the one who is called takes any, as long as the caller has its key, and lets the engine decide
//! by its fingerprint. So whoever is in between has nothing to show to either.

mod certificates;
mod wire;

use crate::engine_service::LocalEngine;
use crate::listen::Place;
use certificates::{AnyPeer, OtherCertificate, Pinned};
use offshoot_api::digest::fingerprint;
use offshoot_engine::{Network, PeerKey, Reached, Wire};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, ServerConfig};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio_rustls::server::TlsStream;
use wire::{Counted, TlsWire};

/// What callers ask for by ALPN: the talk of engines, and its version.
pub(crate) const ALPN: &[u8] = b"offshoot-peer/1";
/// How callers name by ALPN which certificate they know, by the digits of its fingerprint: an engine may have two for some time.
const KEY_ASKED: &str = "offshoot-key/";
/// How a fingerprint begins.
const FINGERPRINT: &str = "sha256:";
/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The name that callers ask for; nobody looks at it.
const HOST: &str = "offshoot-peer";
/// Peers that may be connected at the same time.
const PEERS_MAX: usize = 32;
/// Others, who may have a code: so few that those who have none take no place from peers.
const STRANGERS_MAX: usize = 4;
/// How long a stranger may stay: long enough to say a code and to hear the answer.
const STRANGERS_WITHIN: Duration = Duration::from_secs(15);

fn read(own: &PeerKey) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), Failure> {
    let wrong = |error: rustls::pki_types::pem::Error| {
        Failure::internal(format!("the certificate for peers is none: {error}"))
    };
    let certificate = CertificateDer::from_pem_slice(own.certificate.as_bytes()).map_err(wrong)?;
    let key = PrivateKeyDer::from_pem_slice(own.key.reveal().as_bytes()).map_err(wrong)?;
    Ok((certificate, key))
}

fn unusable(error: rustls::Error) -> Failure {
    Failure::internal(format!("TLS for peers cannot be set up: {error}"))
}

/// The way to other engines.
pub(crate) struct PeerNetwork;

impl Network for PeerNetwork {
    fn fingerprint(&self, certificate: &str) -> Result<String, Failure> {
        let read = CertificateDer::from_pem_slice(certificate.as_bytes());
        let wrong = |error| Failure::internal(format!("this is no certificate: {error}"));
        Ok(fingerprint(&read.map_err(wrong)?))
    }

    fn call(
        &self,
        address: &str,
        fingerprints: &[&str],
        own: &PeerKey,
    ) -> Result<Reached, Failure> {
        let config = Arc::new(calling(fingerprints, own)?);
        let connected = connect(address).and_then(|stream| handshake(config, stream));
        match connected {
            Ok(reached) => Ok(reached),
            Err(error) => Err(not_reached(address, &error)),
        }
    }
}

fn calling(fingerprints: &[&str], own: &PeerKey) -> Result<ClientConfig, Failure> {
    let (certificate, key) = read(own)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned::new(fingerprints, provider)))
        .with_client_auth_cert(vec![certificate], key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    let digits = fingerprints.first().map(|one| one.trim_start_matches(FINGERPRINT));
    config.alpn_protocols.extend(digits.map(|digits| format!("{KEY_ASKED}{digits}").into_bytes()));
    config.enable_sni = false;
    Ok(config)
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for one in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&one, CONNECT_WITHIN) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The fingerprint of the certificate that a caller asks for by ALPN.
pub(crate) fn asked_for<'a>(protocols: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let mut keys = protocols.filter_map(|one| one.strip_prefix(KEY_ASKED.as_bytes()));
    let digits = std::str::from_utf8(keys.next()?).ok()?;
    Some(format!("{FINGERPRINT}{digits}"))
}

fn handshake(config: Arc<ClientConfig>, stream: TcpStream) -> io::Result<Reached> {
    let name = ServerName::try_from(HOST).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    stream.set_read_timeout(Some(CONNECT_WITHIN))?;
    stream.set_write_timeout(Some(CONNECT_WITHIN))?;
    let mut stream = Counted::new(stream, None);
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    if connection.alpn_protocol() != Some(ALPN) {
        return Err(io::Error::other("it does not speak with engines"));
    }
    let shown = connection.peer_certificates().and_then(<[_]>::first);
    let shown = shown.map(|one| fingerprint(one));
    let fingerprint = shown.ok_or_else(|| io::Error::other("it shows no certificate"))?;
    Ok(Reached { wire: Box::new(TlsWire::new(connection, stream)?), fingerprint })
}

fn not_reached(address: &str, error: &io::Error) -> Failure {
    if let Some(other) = OtherCertificate::of(error) {
        return Failure::new(
            ErrorKind::Forbidden,
            format!("what answers at {address} is another engine: {other}"),
            "check the address; an older engine is upgraded first; otherwise somebody is in between: make a new code there",
        );
    }
    let kind = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
    if let Some(rustls::Error::InvalidMessage(_)) = kind {
        return Failure::new(
            ErrorKind::EngineUnreachable,
            format!("what answers at {address} does not speak TLS"),
            "let that engine listen by TLS: offshoot serve --listen ADDRESS:PORT with an address that is not loopback",
        );
    }
    Failure::new(
        ErrorKind::EngineUnreachable,
        format!("no engine answers at {address}: {error}"),
        "check the address, HOST:PORT as 'offshoot status' shows it there, and that the engine runs",
    )
}

/// Where other engines come in.
pub(crate) struct Door {
    engine: Arc<LocalEngine>,
    peers: Arc<Room>,
    strangers: Arc<Room>,
    ending: AtomicBool,
}

/// What a caller is shown.
pub(crate) struct Shown {
    pub(crate) config: Arc<ServerConfig>,
    /// The fingerprint of the certificate.
    pub(crate) own: String,
}

/// A place for some, and no more.
struct Room {
    taken: AtomicUsize,
    places: usize,
}

impl Room {
    fn of(places: usize) -> Arc<Room> {
        Arc::new(Room { taken: AtomicUsize::new(0), places })
    }

    fn enter(self: &Arc<Self>) -> Option<Inside> {
        let inside = Inside(self.clone());
        (self.taken.fetch_add(1, Ordering::Relaxed) < self.places).then_some(inside)
    }
}

/// Somebody's place, until it is dropped.
struct Inside(Arc<Room>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Door {
    pub(crate) fn new(engine: Arc<LocalEngine>) -> Arc<Door> {
        let (peers, strangers) = (Room::of(PEERS_MAX), Room::of(STRANGERS_MAX));
        Arc::new(Door { engine, peers, strangers, ending: AtomicBool::new(false) })
    }

    /// Lets nobody in any more, and those go who are.
    pub(crate) fn close(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// What a caller is shown who asks for the certificate of a fingerprint, and what he has to show. Reads the catalog.
    pub(crate) fn config(&self, asked: Option<&str>) -> Result<Shown, Failure> {
        let (certificate, key) = read(&self.engine.engine().peers().key_to_show(asked)?)?;
        let own = fingerprint(&certificate);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(Arc::new(AnyPeer::new(provider)))
            .with_single_cert(vec![certificate], key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Shown { config: Arc::new(config), own })
    }

    /// Speaks with an engine on a thread of its own, until it has said all.
    pub(crate) fn let_in(
        self: &Arc<Self>,
        stream: TlsStream<tokio::net::TcpStream>,
        place: Place,
        own: String,
    ) -> io::Result<()> {
        let (stream, connection) = stream.into_inner();
        let shown = connection.peer_certificates().and_then(<[_]>::first);
        let shown = shown.map(|one| fingerprint(one));
        let Some(shown) = shown else { return Ok(()) };
        let stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        let wire = TlsWire::new(connection, Counted::new(stream, Some(place)))?;
        let door = Arc::clone(self);
        let talk = move || {
            if let Err(failure) = door.talk(wire, &shown, &own) {
                tracing::warn!(fingerprint = shown, %failure, "another engine was not let in");
            }
        };
        std::thread::Builder::new().name("peer".to_owned()).spawn(talk).map(drop)
    }

    fn talk(&self, wire: impl Wire + 'static, shown: &str, own: &str) -> Result<(), Failure> {
        let engine = self.engine.engine();
        let known = engine.peers().knows(shown)?;
        let room = if known { &self.peers } else { &self.strangers };
        let Some(_inside) = room.enter() else {
            let who = if known { "peers" } else { "engines that are no peers" };
            let message = format!("{} {who} are connected already", room.places);
            return Err(Failure::new(ErrorKind::Busy, message, "try again later"));
        };
        let until = SystemClock.elapsed() + STRANGERS_WITHIN;
        let in_time = || known || SystemClock.elapsed() < until;
        let alive = || in_time() && !self.ending.load(Ordering::Relaxed);
        engine.peers().answer(Box::new(wire), shown, own, &alive);
        Ok(())
    }
}

/// Leaves out everything: there is a key.
impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
