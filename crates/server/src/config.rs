//! The configuration file of an engine: lines of `key = value`, `#` begins a comment.
//!
//! ```text
//! listen           = 127.0.0.1:7640
//! socket_group     = dba                       # may connect to the Unix socket
//! host_name        = engine.example            # may be there several times
//! tls_cert         = /etc/offshoot/cert.pem    # with tls_key
//! tls_key          = /etc/offshoot/key.pem
//! cache_size       = 4GiB
//! direct_size      = 1GiB                      # memory from which servers read without asking
//! capacity         = 500GiB
//! secret_key       = /etc/offshoot/key         # seals passwords in the catalog
//! encrypt          = no                        # yes: a new pool is encrypted with that key
//! postgres_bin_dir = /opt/postgresql/17/bin    # may be there several times
//! unconfined       = no                        # yes: servers run as plain processes
//! traces           = http://127.0.0.1:4318     # a collector of OpenTelemetry
//! ```

use crate::ServeOptions;
use offshoot_domain::parse_size;
use offshoot_types::{ErrorKind, Failure};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

impl ServeOptions {
    /// Takes over what a configuration file says.
    ///
    /// # Errors
    /// `invalid_input`, naming file and line, for invalid lines; unknown keys are errors.
    pub fn read_config(&mut self, file: &Path) -> Result<(), Failure> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::new(
                ErrorKind::InvalidInput,
                format!("the configuration {} cannot be read: {error}", file.display()),
                "name a readable file with --config, or leave the option out",
            )
        })?;
        let mut tls = (None, None);
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                self.read_line(line, &mut tls).map_err(|why| {
                    Failure::new(
                        ErrorKind::InvalidInput,
                        format!("{} line {}: {}", file.display(), index + 1, why.message),
                        why.hint,
                    )
                })?;
            }
        }
        match tls {
            (Some(certificate), Some(key)) => self.tls_files = Some((certificate, key)),
            (None, None) => {}
            _ => {
                return Err(Failure::new(
                    ErrorKind::InvalidInput,
                    format!("{} has only one of tls_cert and tls_key", file.display()),
                    "name both, or neither: the engine makes a certificate where it needs one",
                ));
            }
        }
        Ok(())
    }

    fn read_line(
        &mut self,
        line: &str,
        tls: &mut (Option<PathBuf>, Option<PathBuf>),
    ) -> Result<(), Failure> {
        let wrong = |message: String| {
            let hint = "keys are listen, socket_group, host_name, tls_cert, tls_key, cache_size, direct_size, capacity, secret_key, encrypt, postgres_bin_dir, unconfined, traces, written as key = value";
            Failure::new(ErrorKind::InvalidInput, message, hint)
        };
        let (key, value) =
            line.split_once('=').ok_or_else(|| wrong(format!("'{line}' has no '='")))?;
        match (key.trim(), value.trim()) {
            (key, "") => return Err(wrong(format!("{key} has no value"))),
            ("listen", value) => self.listen = parse_listen(value)?,
            ("socket_group", value) => self.socket_group = Some(value.to_owned()),
            ("host_name", value) => self.host_names.push(value.to_owned()),
            ("tls_cert", value) => tls.0 = Some(value.into()),
            ("tls_key", value) => tls.1 = Some(value.into()),
            ("capacity", value) => self.capacity_bytes = Some(parse_size(value)?),
            ("direct_size", value) => self.direct_size_bytes = parse_size(value)?,
            ("cache_size", value) => self.cache_size_bytes = Some(parse_size(value)?),
            ("secret_key", value) => self.secret_key = Some(PathBuf::from(value)),
            ("postgres_bin_dir", value) => self.postgres_bin_dirs.push(PathBuf::from(value)),
            ("traces", value) => self.traces = Some(value.to_owned()),
            ("unconfined", "yes") => self.unconfined = true,
            ("unconfined", "no") => self.unconfined = false,
            ("encrypt", "yes") => self.encrypt = true,
            ("encrypt", "no") => self.encrypt = false,
            ("unconfined" | "encrypt", value) => {
                return Err(wrong(format!("'{value}' is neither yes nor no")));
            }
            (key, _) => return Err(wrong(format!("'{key}' is not a key"))),
        }
        Ok(())
    }
}

/// Reads an address to listen on, as `127.0.0.1:7640` or `localhost:7640`.
///
/// # Errors
/// `invalid_input` if the text is not an address.
pub fn parse_listen(text: &str) -> Result<SocketAddr, Failure> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numeric.parse().map_err(|_| {
        Failure::new(
            ErrorKind::InvalidInput,
            format!("'{text}' is not an address to listen on"),
            "write it as 127.0.0.1:7640",
        )
    })
}

#[cfg(test)]
mod tests;
