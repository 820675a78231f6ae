//! TLS of SQL sessions, with libpq's meaning of `sslmode`
//! (<https://www.postgresql.org/docs/current/libpq-ssl.html>). The database's own tools have libpq's.
//!
//! There are two differences: nothing is read from the home directory, and a certificate must name the
//! host as a subject alternative name, not as its common name alone.

use std::path::Path;
use std::sync::Arc;

use offshoot_types::{ErrorKind, Failure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{SourceAddress, TlsMode};

/// Makes TLS with a server.
pub(super) type Connector = MakeRustlsConnect;

/// The TLS connector of a session with `address`. The files are read each time, as they may be
/// replaced.
///
/// # Errors
/// `InvalidInput` naming the file that cannot be used.
pub(super) fn connector(address: &SourceAddress) -> Result<Connector, Failure> {
    let files = &address.tls_files;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::new(address, Arc::clone(&provider))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::internal(format!("TLS: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let config = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => {
            let chain = read_certificates(certificate)?;
            let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| unusable(key, &e))?;
            config.with_client_auth_cert(chain, secret).map_err(|e| unusable(key, &e))?
        }
        _ => config.with_no_client_auth(),
    };
    Ok(Connector::new(config))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(found) if found.is_empty() => Err(unusable(path, &"no certificate in it")),
        Ok(found) => Ok(found),
        Err(error) => Err(unusable(path, &error)),
    }
}

fn unusable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        format!("{} cannot be used for TLS: {why}", path.display()),
        "name a file in PEM that the engine may read",
    )
}

/// Decides whether a server is the requested one.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// Certificates that vouch for servers; each also vouches for a server that has it itself.
    roots: Vec<CertificateDer<'static>>,
    /// Checks chains of them; none: any server is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Whether the certificate must name the host.
    names: bool,
}

impl Verifier {
    fn new(address: &SourceAddress, provider: Arc<CryptoProvider>) -> Result<Verifier, Failure> {
        let names = address.tls == TlsMode::VerifyFull;
        let Some(path) = &address.tls_files.root else {
            return Ok(Verifier { provider, roots: Vec::new(), chain: None, names });
        };
        let roots = read_certificates(path)?;
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots.iter().cloned());
        let chain =
            WebPkiServerVerifier::builder_with_provider(store.into(), Arc::clone(&provider));
        let chain = chain.build().map_err(|error| unusable(path, &error))?;
        Ok(Verifier { provider, roots, chain: Some(chain), names })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // Many servers are set up with a self-signed certificate.
        if self.roots.iter().any(|root| root == certificate) {
            if self.names {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, host)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        match chain.verify_server_cert(certificate, intermediates, host, ocsp, now) {
            // The name is checked last, after the chain.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

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
