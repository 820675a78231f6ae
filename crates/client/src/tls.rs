//! Requests by TLS to an engine that is known by its certificate: whatever else answers is sent nothing.

use crate::known::KnownEngine;
use crate::stream::StreamTransport;
use offshoot_api::digest::fingerprint;
use offshoot_types::{ErrorKind, Failure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, OtherError,
    PeerIncompatible, SignatureScheme, StreamOwned,
};
use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use ureq::unversioned::transport::{ConnectionDetails, Connector};

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// What answers shows another certificate than the engine's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherCertificate {
    pub(crate) shown: String,
}

impl fmt::Display for OtherCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it shows the certificate {}", self.shown)
    }
}

impl std::error::Error for OtherCertificate {}

impl OtherCertificate {
    /// The one in an error of a connection.
    pub(crate) fn of(error: &io::Error) -> Option<&OtherCertificate> {
        match error.get_ref()?.downcast_ref::<Error>()? {
            Error::InvalidCertificate(CertificateError::Other(OtherError(why))) => {
                why.downcast_ref()
            }
            _ => None,
        }
    }
}

/// Takes the one certificate that an engine is known by.
#[derive(Debug)]
struct Pinned {
    fingerprint: String,
    provider: CryptoProvider,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _host: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = fingerprint(certificate);
        if shown == self.fingerprint {
            return Ok(ServerCertVerified::assertion());
        }
        let why = OtherError(Arc::new(OtherCertificate { shown }));
        Err(Error::InvalidCertificate(CertificateError::Other(why)))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
    }

    /// That whoever shows the certificate has its key.
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn config(fingerprint: &str) -> Result<Arc<ClientConfig>, Failure> {
    let provider = aws_lc_rs::default_provider();
    let verifier = Pinned { fingerprint: fingerprint.to_lowercase(), provider: provider.clone() };
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| Failure::internal(format!("TLS cannot be set up: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Connects to an engine that is known by its certificate.
#[derive(Debug)]
pub(crate) struct TlsConnector {
    config: Arc<ClientConfig>,
}

impl TlsConnector {
    pub(crate) fn new(fingerprint: &str) -> Result<Self, Failure> {
        Ok(TlsConnector { config: config(fingerprint)? })
    }
}

fn handshake(config: Arc<ClientConfig>, host: &str, stream: TcpStream) -> io::Result<TlsStream> {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    let mut stream = stream;
    stream.set_read_timeout(Some(CONNECT_WITHIN))?;
    stream.set_write_timeout(Some(CONNECT_WITHIN))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(connection, stream))
}

fn connect(addresses: impl Iterator<Item = std::net::SocketAddr>) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What answers at an address, `https://HOST:PORT`, shows of itself. Nothing is sent to it.
///
/// # Errors
/// `invalid_input` for another address, `engine_unreachable` if nothing there speaks TLS 1.3.
pub fn shown_fingerprint(url: &str) -> Result<KnownEngine, Failure> {
    let base = crate::target::normal_url(url)?;
    let Some(host) = base.strip_prefix("https://") else {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("'{url}' is not by TLS: there is no certificate to remember"),
            "write it as https://HOST:PORT",
        ));
    };
    let failed = |why: io::Error| {
        Failure::new(
            ErrorKind::EngineUnreachable,
            format!("what answers at {url} cannot be asked for its certificate: {why}"),
            "check the address, and that the engine listens there by TLS (offshoot status)",
        )
    };
    let host = host.to_owned();
    let stream = host.to_socket_addrs().and_then(connect).map_err(failed)?;
    let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
    // No certificate is taken: the handshake ends when it has been seen.
    match handshake(config("")?, name, stream) {
        Err(error) => match OtherCertificate::of(&error) {
            Some(OtherCertificate { shown }) => {
                Ok(KnownEngine { host, fingerprint: shown.clone() })
            }
            None => Err(failed(error)),
        },
        Ok(_) => Err(Failure::internal("an empty fingerprint was taken")),
    }
}

impl Connector for TlsConnector {
    type Out = StreamTransport<TlsStream>;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _chained: Option<()>,
    ) -> Result<Option<StreamTransport<TlsStream>>, ureq::Error> {
        let host = details.uri.host().unwrap_or_default();
        let stream = connect(details.addrs.iter().copied())?;
        stream.set_nodelay(true)?;
        let stream = handshake(self.config.clone(), host, stream)?;
        Ok(Some(StreamTransport::new(stream, details)))
    }
}
