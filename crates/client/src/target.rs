//! Which engine to talk to, and how it is found.

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
        /// Its address, as `http://127.0.0.1:7640` or `127.0.0.1:7640`.
        url: String,
        /// A file with the token of its pool.
        token_file: PathBuf,
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
}

/// As errors name it.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Socket(path) => path.display().fmt(f),
            Route::Url(base) => base.fmt(f),
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
            Target::Server { url, token_file } => {
                let token = Some(read_token(token_file)?);
                Ok(Endpoint { route: Route::Url(normal_url(url)?), token })
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

fn normal_url(url: &str) -> Result<String, Failure> {
    let wrong = |why: &str| {
        Failure::new(
            ErrorKind::InvalidInput,
            format!("'{url}' is not the address of an engine: {why}"),
            "write it as http://127.0.0.1:7640",
        )
    };
    let host = match url.split_once("://") {
        None => url,
        Some(("http", host)) => host,
        Some(("https", _)) => {
            return Err(wrong(
                "engines listen on loopback without TLS; reach one through a tunnel",
            ));
        }
        Some(_) => return Err(wrong("only http:// is spoken")),
    };
    let host = host.trim_end_matches('/');
    if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
        return Err(wrong("it must be a host and a port"));
    }
    Ok(format!("http://{host}"))
}

#[cfg(test)]
mod tests;
