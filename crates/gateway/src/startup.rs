//! What a client says before it logs in: whether it wants TLS, who it is, or what to cancel.

use crate::admission::admit;
use crate::backend::ALPN;
use crate::hub::{Hub, Phase};
use crate::messages::{Fatal, NOT_ALLOWED, PROTOCOL_VIOLATION};
use crate::wire::{Client, End, Wire};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Longest packet before the login, in bytes.
const PACKET_BYTES_MAX: usize = 10_000;
/// Longest wait for a packet, and for a handshake.
const PACKET_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest wait for the server of a gateway that has not served yet.
const FIRST_TIMEOUT: Duration = Duration::from_secs(120);
/// Packets before the one that counts: at most one for each kind of encryption, and again without.
const PACKETS_MAX: usize = 4;
/// How a TLS handshake begins. No packet does: it would be longer than any may be.
const HANDSHAKE: u8 = 0x16;

/// Begins a request to cancel.
pub(crate) const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// How a client begins.
#[derive(Debug)]
pub(crate) enum Opening {
    /// It wants a session.
    Session(Client, Startup),
    /// It wants to cancel what the session of this key does.
    Cancel(Wire, Vec<u8>),
}

/// What a client asked for, and how it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Startup {
    /// The whole packet.
    pub(crate) packet: Vec<u8>,
    /// The role.
    pub(crate) user: Vec<u8>,
    /// It is a replication connection.
    pub(crate) replication: bool,
    /// It came by TLS.
    pub(crate) tls: bool,
    /// It came from there.
    pub(crate) peer: SocketAddr,
}

impl Startup {
    /// The role as text.
    pub(crate) fn role(&self) -> String {
        String::from_utf8_lossy(&self.user).into_owned()
    }
}

/// Hears what a client wants. None if it went away, or was told why it may not.
pub(crate) async fn hear(hub: &Arc<Hub>, stream: TcpStream, peer: SocketAddr) -> Option<Opening> {
    let mut wire = match timeout(PACKET_TIMEOUT, begins_tls(&stream)).await.ok()?.ok()? {
        true => secure_at_once(hub, stream).await?,
        false => Wire::Plain(stream),
    };
    for _ in 0..PACKETS_MAX {
        let packet = timeout(PACKET_TIMEOUT, read_packet(&mut wire)).await.ok()?.ok()?;
        let (code, rest) = packet.get(4..)?.split_first_chunk()?;
        match u32::from_be_bytes(*code) {
            TLS if matches!(wire, Wire::Plain(_)) => wire = secure(hub, wire).await?,
            TLS | GSS => wire.write_all(b"N").await.ok()?,
            CANCEL => return Some(Opening::Cancel(wire, rest.to_vec())),
            code => {
                let tls = matches!(wire, Wire::Tls(_));
                let startup = read_startup(&packet, code, tls, peer);
                let admitted = startup.and_then(|startup| {
                    let known = hub.last_target();
                    known.map_or(Ok(()), |known| admit(peer.ip(), tls, &known.allow))?;
                    Ok(startup)
                });
                let mut client: Client = End::new(wire, None);
                match admitted {
                    Ok(startup) => return Some(Opening::Session(client, startup)),
                    Err(fatal) => {
                        refuse(&mut client, &fatal).await;
                        return None;
                    }
                }
            }
        }
    }
    None
}

/// Tells a client why it is turned away, and closes.
pub(crate) async fn refuse(client: &mut Client, fatal: &Fatal) {
    let told = async {
        client.send(&fatal.encode()).await?;
        client.stream.shutdown().await
    };
    // Whoever does not listen is closed all the same.
    let _ = timeout(Duration::from_secs(1), told).await;
}

/// Whether a client begins with a handshake rather than with the wish for one, as PostgreSQL 17's do with `sslnegotiation=direct`.
async fn begins_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    Ok(stream.peek(&mut first).await? == 1 && first == [HANDSHAKE])
}

/// Answers the wish for TLS.
async fn secure(hub: &Arc<Hub>, mut wire: Wire) -> Option<Wire> {
    let Some(acceptor) = acceptor(hub).await? else {
        wire.write_all(b"N").await.ok()?;
        return Some(wire);
    };
    let Wire::Plain(mut stream) = wire else { return None };
    stream.write_all(b"S").await.ok()?;
    handshake(&acceptor, stream).await
}

/// Goes on with a handshake that was not asked for. Its client must name the protocol, as PostgreSQL wants it: so no other
/// program's client can be led here.
async fn secure_at_once(hub: &Arc<Hub>, stream: TcpStream) -> Option<Wire> {
    let wire = handshake(&acceptor(hub).await??, stream).await?;
    match &wire {
        Wire::Tls(tls) if tls.get_ref().1.alpn_protocol() == Some(ALPN) => Some(wire),
        _ => None,
    }
}

/// What shows the certificate, once there is a server: before, whether there is one is not known. None: it takes too long.
async fn acceptor(hub: &Arc<Hub>) -> Option<Option<TlsAcceptor>> {
    if hub.last_target().is_none() {
        let _waiting = hub.wait();
        let mut phase = hub.phase();
        let known = phase.wait_for(|phase| !matches!(phase, Phase::Held { .. }));
        timeout(FIRST_TIMEOUT, known).await.ok()?.ok()?;
    }
    Some(hub.last_target().and_then(|target| target.tls.clone()))
}

async fn handshake(acceptor: &TlsAcceptor, stream: TcpStream) -> Option<Wire> {
    let stream = timeout(PACKET_TIMEOUT, acceptor.accept(stream)).await.ok()?.ok()?;
    Some(Wire::Tls(Box::new(stream)))
}

/// Reads a packet, and nothing beyond: what follows may be a handshake.
async fn read_packet(wire: &mut Wire) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    wire.read_exact(&mut length).await?;
    let count = u32::from_be_bytes(length) as usize;
    if !(8..=PACKET_BYTES_MAX).contains(&count) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut packet = vec![0; count];
    packet[..4].copy_from_slice(&length);
    wire.read_exact(&mut packet[4..]).await?;
    Ok(packet)
}

fn read_startup(packet: &[u8], code: u32, tls: bool, peer: SocketAddr) -> Result<Startup, Fatal> {
    if code >> 16 != 3 {
        let message = format!("unsupported frontend protocol {}.{}", code >> 16, code & 0xffff);
        return Err(Fatal::new(PROTOCOL_VIOLATION, message));
    }
    let mut startup =
        Startup { packet: packet.to_vec(), user: Vec::new(), replication: false, tls, peer };
    let mut texts = packet.get(8..).unwrap_or_default().split(|byte| *byte == 0);
    while let (Some(name), Some(value)) =
        (texts.next().filter(|name| !name.is_empty()), texts.next())
    {
        match name {
            b"user" => startup.user = value.to_vec(),
            b"replication" => {
                startup.replication = !matches!(value, b"off" | b"false" | b"no" | b"0");
            }
            _ => {}
        }
    }
    if startup.user.is_empty() {
        return Err(Fatal::new(NOT_ALLOWED, "no PostgreSQL user name specified in startup packet"));
    }
    Ok(startup)
}

#[cfg(test)]
mod tests;
