//! Which engine to talk to, and how it is found.

use crate::KnownEngines;
use offshoot_api::rendezvous::SOCKET_FILE;
use offshoot_types::{ErrorKind, Failure};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Which engine to talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The engine of a pool on this host, by the Unix socket in the pool directory.
    Pool {
        /// The pool directory.
        dir: PathBuf,
        /// A file with a token, for others than the engine's user and root.
        token_file: Option<PathBuf>,
    },
    /// An engine elsewhere.
    Server {
        /// Its address, as `https://engine.example:7640`; `http://127.0.0.1:7640` or `127.0.0.1:7640` in the clear.
        url: String,
        /// A file with a token.
        token_file: PathBuf,
        /// The file of what certificates engines are known by.
        known: PathBuf,
    },
}

/// Where requests go, and what they show.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) route: Route,
    /// None where the kernel tells the engine who asks.
    pub(crate) token: Option<String>,
}

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// To the Unix socket at this path.
    Socket(PathBuf),
    /// To this scheme, host and port, without a trailing slash.
    Url(String),
    /// By TLS to this scheme, host and port, and to nobody but the owner of this certificate.
    Tls { base: String, fingerprint: String },
}

/// As errors name it.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Socket(path) => path.display().fmt(f),
            Route::Url(base) | Route::Tls { base, .. } => base.fmt(f),
        }
    }
}

impl Target {
    /// Finds the engine; does not talk to it.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Failure> {
        match self {
            Target::Pool { dir, token_file } => {
                let token = token_file.as_deref().map(read_token).transpose()?;
                Ok(Endpoint { route: Route::Socket(find_socket(self, dir)?), token })
            }
            Target::Server { url, token_file, known } => {
                let base = normal_url(url)?;
                let route = match base.strip_prefix("https://") {
                    None => Route::Url(base),
                    Some(host) => {
                        let found = KnownEngines::new(known.clone()).find(host)?;
                        let fingerprint = found.ok_or_else(|| unknown(&base))?;
                        Route::Tls { base, fingerprint }
                    }
                };
                Ok(Endpoint { route, token: Some(read_token(token_file)?) })
            }
        }
    }

    /// What to do when nothing answers.
    pub(crate) fn start_hint(&self) -> String {
        match self {
            Target::Pool { dir, .. } => format!(
                "start it with: offshoot serve --pool {}; or name another pool with --pool",
                dir.display()
            ),
            Target::Server { .. } => {
                "check the address, and that the engine runs there (offshoot serve)".to_owned()
            }
        }
    }
}

fn unknown(base: &str) -> Failure {
    Failure::new(
        ErrorKind::Unauthorized,
        format!("the certificate of {base} is not known"),
        format!(
            "offshoot login {base} --fingerprint sha256:…, with what `offshoot status` says on its host"
        ),
    )
}

fn find_socket(target: &Target, pool: &Path) -> Result<PathBuf, Failure> {
    let socket = pool.join(SOCKET_FILE);
    match std::fs::symlink_metadata(&socket) {
        Ok(_) => Ok(socket),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Failure::new(
            ErrorKind::EngineUnreachable,
            format!("no engine runs on the pool {}", pool.display()),
            target.start_hint(),
        )),
        Err(error) => Err(unreadable("socket of the engine", &socket, &error)),
    }
}

fn read_token(file: &Path) -> Result<String, Failure> {
    match std::fs::read_to_string(file) {
        Ok(text) => {
            let token = text.trim();
            let sendable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
            sendable.then(|| token.to_owned()).ok_or_else(|| {
                Failure::new(
                    ErrorKind::Unauthorized,
                    format!("{} holds no token", file.display()),
                    "name the file `token` of the engine's pool with --token-file",
                )
            })
        }
        Err(error) => Err(unreadable("token", file, &error)),
    }
}

fn unreadable(what: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        ErrorKind::Unauthorized,
        format!("the {what} in {} cannot be read: {error}", file.display()),
        "run the command as the user who runs the engine, or name a readable copy of the token \
         with --server URL --token-file FILE",
    )
}

pub(crate) fn normal_url(url: &str) -> Result<String, Failure> {
    let wrong = |why: &str| {
        Failure::new(
            ErrorKind::InvalidInput,
            format!("'{url}' is not the address of an engine: {why}"),
            "write it as http://127.0.0.1:7640",
        )
    };
    let (scheme, host) = match url.split_once("://") {
        None => ("http", url),
        Some((scheme @ ("http" | "https"), host)) => (scheme, host),
        Some(_) => return Err(wrong("only https:// and http:// are spoken")),
    };
    let host = host.trim_end_matches('/');
    if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
        return Err(wrong("it must be a host and a port"));
    }
    if scheme == "https"
        && host.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_err())
    {
        return Err(wrong("it has no port"));
    }
    Ok(format!("{scheme}://{}", host.to_lowercase()))
}

#[cfg(test)]
mod tests;
