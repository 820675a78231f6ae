//! Messages to webhooks, by HTTP/1.1 and TLS.
//!
//! Nothing of an answer is used but its status. The certificates that the host trusts are read for each message, so that they
//! can be renewed; a certificate that none of them vouches for is refused, and so is one of another name.

use offshoot_engine::{Poster, Posting};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// How long a message may take, from the look-up of its host's name to the status of the answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Names the file with the certificates to trust, as to other programs.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";
/// Where distributions have it: Debian and Ubuntu; Fedora and its kin; SUSE; Alpine.
const ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Sends messages to webhooks.
pub(crate) struct HttpPoster {
    /// The file with the certificates to trust.
    roots: Option<PathBuf>,
    within: Duration,
}

impl HttpPoster {
    /// One that trusts what this host trusts.
    pub(crate) fn of_host() -> HttpPoster {
        let named = std::env::var_os(ROOTS_VARIABLE).filter(|file| !file.is_empty());
        let found = || ROOTS.iter().map(PathBuf::from).find(|file| file.exists());
        HttpPoster { roots: named.map(PathBuf::from).or_else(found), within: ANSWER_WITHIN }
    }

    fn agent(&self, by_tls: bool) -> Result<ureq::Agent, String> {
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()));
        let roots = if by_tls { self.trusted()? } else { Vec::new() };
        let tls = tls.root_certs(RootCerts::from(roots)).build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(self.within))
            .http_status_as_error(false)
            // An administrator has named one address: nobody else may name another one.
            .max_redirects(0)
            .proxy(None)
            .max_idle_connections(0)
            .user_agent(concat!("offshoot/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(config.into())
    }

    fn trusted(&self) -> Result<Vec<Certificate<'static>>, String> {
        let Some(file) = &self.roots else {
            return Err(format!(
                "this host has no certificates to trust (package ca-certificates, or {ROOTS_VARIABLE})"
            ));
        };
        read_roots(file).map_err(|error| {
            format!("the certificates to trust cannot be read from {}: {error}", file.display())
        })
    }
}

/// The certificates in a file, but for those that are none.
fn read_roots(file: &Path) -> io::Result<Vec<Certificate<'static>>> {
    let found = CertificateDer::pem_file_iter(file).map_err(io::Error::other)?;
    Ok(found.flatten().map(|one| Certificate::from_der(&one).to_owned()).collect())
}

impl Poster for HttpPoster {
    fn post(&self, posting: &Posting) -> Result<u16, String> {
        let agent = self.agent(posting.url.starts_with("https:"))?;
        let mut request = Request::post(posting.url.as_str())
            .header("content-type", "application/json")
            .header("connection", "close");
        for (name, value) in &posting.headers {
            request = request.header(*name, value);
        }
        let request = request.body(posting.body.as_slice()).map_err(|_| unsendable())?;
        match agent.run(request) {
            Ok(answer) => Ok(answer.status().as_u16()),
            Err(error) => Err(self.reason(&error)),
        }
    }
}

fn unsendable() -> String {
    "its address cannot be used".to_owned()
}

impl HttpPoster {
    /// Why there was no answer, without the address.
    fn reason(&self, error: &ureq::Error) -> String {
        match error {
            ureq::Error::Timeout(_) => format!("no answer within {} s", self.within.as_secs()),
            ureq::Error::HostNotFound => "the name of its host is not known".to_owned(),
            ureq::Error::Http(_) | ureq::Error::BadUri(_) => unsendable(),
            ureq::Error::Rustls(error) => by_tls(error),
            ureq::Error::Io(error) => match error.get_ref().and_then(|it| it.downcast_ref()) {
                Some(error) => by_tls(error),
                None if error.kind() == io::ErrorKind::ConnectionRefused => {
                    "nothing listens there".to_owned()
                }
                None => error.to_string(),
            },
            ureq::Error::Protocol(_) => "the answer is not HTTP".to_owned(),
            other => other.to_string(),
        }
    }
}

fn by_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => {
            format!("its certificate is not trusted: {why}")
        }
        other => format!("TLS failed: {other}"),
    }
}

#[cfg(test)]
mod tests;
