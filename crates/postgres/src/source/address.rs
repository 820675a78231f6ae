//! The address of a source, parsed from a URI.

use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

use super::Password;

/// What a source's `sslmode` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// No encryption.
    Disable,
    /// Encryption only where the server insists.
    Allow,
    /// Encryption where the server offers it.
    #[default]
    Prefer,
    /// Encryption. The server's identity is checked only if a root certificate is given, as with
    /// [`TlsMode::VerifyCa`].
    Require,
    /// Encryption with a server whose certificate the root certificate vouches for.
    VerifyCa,
    /// The same, and the certificate names the host.
    VerifyFull,
}

impl TlsMode {
    const ALL: [TlsMode; 6] = [
        TlsMode::Disable,
        TlsMode::Allow,
        TlsMode::Prefer,
        TlsMode::Require,
        TlsMode::VerifyCa,
        TlsMode::VerifyFull,
    ];

    /// As libpq calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            TlsMode::Disable => "disable",
            TlsMode::Allow => "allow",
            TlsMode::Prefer => "prefer",
            TlsMode::Require => "require",
            TlsMode::VerifyCa => "verify-ca",
            TlsMode::VerifyFull => "verify-full",
        }
    }
}

/// Files of certificates and keys in PEM, on the engine's host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TlsFiles {
    /// The certificates that vouch for servers (`sslrootcert`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// The certificate of the role that logs in (`sslcert`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Its key (`sslkey`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

impl TlsFiles {
    /// The given ones, by their parameters' names.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let all =
            [("sslrootcert", &self.root), ("sslcert", &self.certificate), ("sslkey", &self.key)];
        all.into_iter().filter_map(|(name, file)| Some((name, file.as_ref()?)))
    }
}

/// Where a host keeps the certificates that it trusts.
const HOST_TRUST: [&str; 2] = ["/etc/ssl/certs", "/etc/pki/tls/certs"];

/// Whether a file lies right in a directory of [`HOST_TRUST`].
fn is_host_trust(file: &Path) -> bool {
    file.file_name().is_some() && HOST_TRUST.iter().any(|dir| file.parent() == Some(Path::new(dir)))
}

/// Where a source is and who logs in. It never holds a password, so it may be stored and shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceAddress {
    /// A host name, an IP address, or the absolute path of a socket directory.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The role that logs in.
    pub user: String,
    /// The database that SQL statements run in.
    pub database: String,
    /// The encryption asked for; over a socket there is none.
    pub tls: TlsMode,
    /// What it is done with.
    #[serde(default)]
    pub tls_files: TlsFiles,
}

impl SourceAddress {
    /// Parses `postgresql://user[:password]@host[:port]/[database][?sslmode=…&host=…]`, and the
    /// password that it may contain.
    ///
    /// # Errors
    /// `InvalidInput` that says what is wrong.
    pub fn parse(uri: &str) -> Result<(Self, Option<Password>), Failure> {
        let rest = uri
            .strip_prefix("postgresql://")
            .or_else(|| uri.strip_prefix("postgres://"))
            .ok_or_else(|| invalid("the source must be given as a URI"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decode(password)?)),
            None => (login, None),
        };
        let (host, port) = split_port(place)?;
        let mut address = SourceAddress {
            host: decode(host)?,
            port,
            user: decode(user)?,
            database: decode(path)?,
            tls: TlsMode::default(),
            tls_files: TlsFiles::default(),
        };
        let mut password = password.filter(|password| !password.is_empty()).map(Password::new);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| invalid(format!("the parameter '{pair}' has no value")))?;
            address.set_parameter(key, decode(value)?, &mut password)?;
        }
        address.complete()?;
        Ok((address, password))
    }

    fn set_parameter(
        &mut self,
        key: &str,
        value: String,
        password: &mut Option<Password>,
    ) -> Result<(), Failure> {
        match key {
            "host" => self.host = value,
            "port" => self.port = parse_port(&value)?,
            "user" => self.user = value,
            "dbname" => self.database = value,
            "password" => *password = Some(Password::new(value)),
            "sslmode" => self.tls = parse_tls(&value)?,
            "sslrootcert" => self.tls_files.root = Some(parse_file(key, value)?),
            "sslcert" => self.tls_files.certificate = Some(parse_file(key, value)?),
            "sslkey" => self.tls_files.key = Some(parse_file(key, value)?),
            // Harmless here: our own timeouts and names apply.
            "application_name" | "connect_timeout" => {}
            _ => return Err(invalid(format!("the parameter '{key}' is not supported"))),
        }
        Ok(())
    }

    /// Fills in what was left out, and refuses what is impossible.
    fn complete(&mut self) -> Result<(), Failure> {
        if self.host.is_empty() {
            return Err(invalid("the URI names no host"));
        }
        if self.host.contains(',') {
            return Err(invalid("the URI names several hosts; name the one to link"));
        }
        if self.user.is_empty() {
            return Err(invalid("the URI names no user"));
        }
        if self.database.is_empty() {
            self.database = "postgres".to_owned();
        }
        if self.tls_files.certificate.is_some() != self.tls_files.key.is_some() {
            return Err(invalid("sslcert and sslkey go together"));
        }
        if matches!(self.tls, TlsMode::VerifyCa | TlsMode::VerifyFull)
            && self.tls_files.root.is_none()
        {
            return Err(Failure::new(
                ErrorKind::InvalidInput,
                format!("sslmode={} needs sslrootcert", self.tls.as_str()),
                "name the file, on the engine's host, of the certificates that vouch for the source: \
                 &sslrootcert=/etc/ssl/certs/ca-certificates.crt",
            ));
        }
        for text in [&self.host, &self.user, &self.database] {
            if text.contains('\0') {
                return Err(invalid("the URI contains a zero byte"));
            }
        }
        Ok(())
    }

    /// Whether the server may be told the password in the clear, or a hash of it that can be guessed
    /// from (md5), if it asks so: by a socket of this host, or where the URI insists on TLS. Anybody on the way
    /// can turn down TLS that is only preferred.
    pub(crate) fn may_expose_password(&self) -> bool {
        let insists =
            matches!(self.tls, TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull);
        insists || self.host.starts_with('/')
    }

    /// How libpq may answer when it is asked for a password: `PGREQUIREAUTH`. Versions before 16 do not
    /// know it.
    pub(crate) fn allowed_methods(&self) -> &'static str {
        if self.may_expose_password() {
            "none,scram-sha-256,password,md5"
        } else {
            "none,scram-sha-256"
        }
    }

    /// Whether the source is on this host, where nobody sits on the way.
    pub(crate) fn is_local(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host.starts_with('/')
            || self.host == "localhost"
            || address.is_ok_and(|address| address.is_loopback())
    }

    /// What it names of the engine's host: the socket, by which the source learns the user of the engine, the
    /// certificate of a role with its key, and files that an answer would tell something of. Not among them: what
    /// the host trusts, which is everybody's to read.
    pub(crate) fn local_ways(&self) -> Vec<String> {
        let socket = self.host.starts_with('/').then(|| format!("the socket in {}", self.host));
        let files = self.tls_files.named();
        let files = files.filter(|(name, file)| *name != "sslrootcert" || !is_host_trust(file));
        let files = files.map(|(name, file)| format!("{name}={}", file.display()));
        socket.into_iter().chain(files).collect()
    }

    /// The connection string of libpq for child processes, without a password. The keep-alive
    /// settings end a connection whose peer has vanished within about half a minute.
    pub fn conninfo(&self, application_name: &str) -> String {
        let mut text = format!(
            "host={} port={} user={} dbname={} sslmode={} application_name={} \
             connect_timeout=5 keepalives_idle=10 keepalives_interval=5 keepalives_count=3 \
             tcp_user_timeout=25000",
            quote(&self.host),
            self.port,
            quote(&self.user),
            quote(&self.database),
            self.tls.as_str(),
            quote(application_name),
        );
        for (name, file) in self.tls_files.named() {
            text.push_str(&format!(" {name}={}", quote(&file.to_string_lossy())));
        }
        text
    }
}

impl fmt::Display for SourceAddress {
    /// The URI without a password; [`SourceAddress::parse`] reads it back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = encode(&self.user);
        let database = encode(&self.database);
        let mut separator = '?';
        if self.host.starts_with('/') {
            write!(f, "postgresql://{user}@:{}/{database}?host={}", self.port, encode(&self.host))?;
            separator = '&';
        } else if self.host.contains(':') {
            write!(f, "postgresql://{user}@[{}]:{}/{database}", self.host, self.port)?;
        } else {
            write!(f, "postgresql://{user}@{}:{}/{database}", encode(&self.host), self.port)?;
        }
        if self.tls != TlsMode::default() {
            write!(f, "{separator}sslmode={}", self.tls.as_str())?;
            separator = '&';
        }
        for (name, file) in self.tls_files.named() {
            let file = encode(&file.to_string_lossy()).replace("%2F", "/");
            write!(f, "{separator}{name}={file}")?;
            separator = '&';
        }
        Ok(())
    }
}

/// Splits `host:port`, `[v6]:port` or `host`.
fn split_port(place: &str) -> Result<(&str, u16), Failure> {
    const PORT: u16 = 5432;
    if let Some(rest) = place.strip_prefix('[') {
        let (host, rest) = rest
            .split_once(']')
            .ok_or_else(|| invalid("the address in brackets does not end with ']'"))?;
        return match rest.strip_prefix(':') {
            Some("") => Ok((host, PORT)),
            Some(port) => Ok((host, parse_port(port)?)),
            None if rest.is_empty() => Ok((host, PORT)),
            None => Err(invalid("after the address in brackets only ':PORT' may follow")),
        };
    }
    match place.split_once(':') {
        Some((host, "")) => Ok((host, PORT)),
        Some((host, port)) => Ok((host, parse_port(port)?)),
        None => Ok((place, PORT)),
    }
}

fn parse_port(text: &str) -> Result<u16, Failure> {
    text.parse()
        .ok()
        .filter(|port| *port != 0)
        .ok_or_else(|| invalid(format!("'{text}' is not a port (1 to 65535)")))
}

fn parse_tls(mode: &str) -> Result<TlsMode, Failure> {
    let found = TlsMode::ALL.into_iter().find(|one| one.as_str() == mode);
    found.ok_or_else(|| invalid(format!("'{mode}' is not an sslmode")))
}

fn parse_file(key: &str, value: String) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(value);
    if path.is_absolute() && !path.to_string_lossy().contains('\0') {
        return Ok(path);
    }
    let message = format!("{key} must be a path from the root of the engine's host");
    Err(invalid(message))
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        message,
        "write the source as postgresql://USER@HOST:PORT/DATABASE",
    )
}

/// Quotes a value of a libpq connection string.
fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Undoes percent encoding.
fn decode(text: &str) -> Result<String, Failure> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .ok_or_else(|| {
                invalid("the URI contains a '%' that two hexadecimal digits must follow")
            })?;
        bytes.push(byte);
        rest = tail.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).map_err(|_| invalid("the URI is not UTF-8"))
}

/// Percent-encodes all but unreserved characters.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
