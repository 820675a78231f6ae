//! The server that connections are passed on to.

use crate::control::{Backend, Tls};
use ipnet::IpNet;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use zeroize::Zeroizing;

/// What PostgreSQL's protocol is called in a handshake, by clients that name it.
pub(crate) const ALPN: &[u8] = b"postgresql";

/// A [`Backend`] ready for use.
pub(crate) struct Target {
    /// On 127.0.0.1.
    pub(crate) port: u16,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) allow: Vec<IpNet>,
    logins: BTreeMap<String, Zeroizing<String>>,
}

impl Target {
    /// Reads certificate and key.
    ///
    /// # Errors
    /// What is wrong with them; never their content.
    pub(crate) fn new(backend: Backend) -> Result<Target, String> {
        let Backend { port, tls, allow, logins } = backend;
        let tls = tls.map(acceptor).transpose()?;
        let logins =
            logins.into_iter().map(|(role, verifier)| (role, Zeroizing::new(verifier))).collect();
        Ok(Target { port, tls, allow, logins })
    }

    /// What is known of a role's password; empty if nothing is.
    pub(crate) fn login(&self, role: &str) -> &str {
        self.logins.get(role).map_or("", |verifier| verifier.as_str())
    }
}

/// Without what it knows of passwords.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("port", &self.port).finish_non_exhaustive()
    }
}

fn acceptor(tls: Tls) -> Result<TlsAcceptor, String> {
    let key = Zeroizing::new(tls.key);
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(tls.certificate.as_bytes()).collect();
    let chain = chain.map_err(|error| format!("the certificate cannot be read: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|_| "the key of the certificate cannot be read".to_owned())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| format!("the certificate and its key do not fit: {error}"))?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
