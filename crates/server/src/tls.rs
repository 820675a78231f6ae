//! What the engine proves itself with off loopback: a certificate of the administrator's, or one that it makes for its pool.
//! Clients pin the fingerprint of either (`offshoot login`).

use crate::peers::Door;
use crate::rendezvous::replace;
use offshoot_api::digest::fingerprint;
use offshoot_api::rendezvous::{TLS_CERTIFICATE_FILE, TLS_KEY_FILE};
use offshoot_types::{ErrorKind, Failure};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A certificate with its key.
#[derive(Clone)]
pub struct Identity {
    pub(crate) config: Arc<ServerConfig>,
    fingerprint: String,
    /// Where other engines come in; none: they do not.
    pub(crate) door: Option<Arc<Door>>,
}

/// Leaves out the key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl Identity {
    /// Of two files, in PEM: the certificate with those that vouch for it, and the key.
    ///
    /// # Errors
    /// `invalid_input` naming the file that cannot be used.
    pub fn of_files(certificate: &Path, key: &Path) -> Result<Identity, Failure> {
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unusable(certificate, &error))?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
        let Some(first) = chain.first() else { return Err(unusable(certificate, &"it is empty")) };
        let fingerprint = fingerprint(first);
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|error| unusable(certificate, &error))?;
        Ok(Identity { config: Arc::new(config), fingerprint, door: None })
    }

    /// That of a pool, made if there is none: its key is readable by the engine's user alone.
    ///
    /// # Errors
    /// `host_unprepared` if the files cannot be made; as [`Identity::of_files`] if they cannot be used.
    pub fn of_pool(pool: &Path, names: &[String]) -> Result<Identity, Failure> {
        let (certificate, key) = (pool.join(TLS_CERTIFICATE_FILE), pool.join(TLS_KEY_FILE));
        if !certificate.exists() || !key.exists() {
            let names: Vec<String> =
                names.iter().cloned().chain(["localhost".to_owned()]).collect();
            let made = rcgen::generate_simple_self_signed(names).map_err(|error| {
                let message = format!("no certificate can be made: {error}");
                Failure::new(ErrorKind::InvalidInput, message, "check the names of --host-name")
            })?;
            replace(&key, &made.signing_key.serialize_pem(), 0o600)?;
            replace(&certificate, &made.cert.pem(), 0o644)?;
        }
        Identity::of_files(&certificate, &key)
    }

    /// Lets other engines in, too.
    pub(crate) fn with_door(self, door: Arc<Door>) -> Identity {
        Identity { door: Some(door), ..self }
    }

    /// What clients pin: `sha256:` and 64 hexadecimal digits, of the certificate.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

fn unusable(file: &Path, why: &dyn fmt::Display) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        format!("{} cannot be used: {why}", file.display()),
        "name PEM files that belong together with --tls-cert and --tls-key, readable for the engine",
    )
}

#[cfg(test)]
mod tests;
