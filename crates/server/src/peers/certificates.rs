//! Which certificates are taken. Nobody vouches for them: the one is known, or who has it is for the engine to know.

use offshoot_api::digest::fingerprint;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    PeerIncompatible, SignatureScheme,
};
use std::fmt;
use std::io;
use std::sync::Arc;

/// What answers shows another certificate than the engine's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherCertificate {
    shown: String,
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

/// That whoever shows a certificate has its key.
fn has_key(
    provider: &CryptoProvider,
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let algorithms = &provider.signature_verification_algorithms;
    verify_tls13_signature(message, certificate, signature, algorithms)
}

fn not_offered() -> Error {
    Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered)
}

/// Takes the certificates that an engine is known by.
#[derive(Debug)]
pub(crate) struct Pinned {
    fingerprints: Vec<String>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    pub(crate) fn new(fingerprints: &[&str], provider: Arc<CryptoProvider>) -> Pinned {
        let fingerprints = fingerprints.iter().map(|one| one.to_lowercase()).collect();
        Pinned { fingerprints, provider }
    }
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
        if self.fingerprints.contains(&shown) {
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
        Err(not_offered())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        has_key(&self.provider, message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Takes any certificate of a caller that has its key: what it may is decided by its fingerprint, afterwards.
#[derive(Debug)]
pub(crate) struct AnyPeer {
    provider: Arc<CryptoProvider>,
}

impl AnyPeer {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> AnyPeer {
        AnyPeer { provider }
    }
}

impl ClientCertVerifier for AnyPeer {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(not_offered())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        has_key(&self.provider, message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
