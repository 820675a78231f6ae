//! What a gateway is told, and the end of the one who tells it: a line of JSON each way, over a Unix socket.

use ipnet::IpNet;
use offshoot_os::{Clock, SystemClock, local_socket};
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Of the messages below; a gateway says its own in every [`Status`].
pub const VERSION: u32 = 1;
/// Longest that it may take until a session that is at rest is parked, and how much longer for each that is parked before:
/// they are read a few at a time, on hosts that may be busy.
const PARKING_TIMEOUT: Duration = Duration::from_secs(20);
const PARKING_EXTRA: Duration = Duration::from_millis(200);
/// Longest line either way, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 20;

/// What a gateway can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Request {
    /// Pass connections on to this server.
    Serve(Backend),
    /// End all connections to the server and keep those of the clients. The answer comes when none is left. For
    /// [`Why::Asleep`] it is refused while the server is in use.
    Hold(Hold),
    /// Say how it stands.
    Status,
    /// From now on say [`Reply::Wanted`] on this connection whenever a client waits while held.
    Watch,
    /// End everything, the process too.
    End,
}

/// The server to pass connections on to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backend {
    /// On 127.0.0.1.
    pub port: u16,
    /// What the gateway shows to clients that ask for TLS; without it they are told that there is none.
    pub tls: Option<Tls>,
    /// Networks that may connect besides loopback; by TLS and SCRAM alone.
    pub allow: Vec<IpNet>,
    /// What `pg_authid.rolpassword` has for the roles of parked sessions, by role.
    pub logins: BTreeMap<String, String>,
}

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// In PEM, the chain after it.
    pub certificate: String,
    /// In PEM.
    pub key: String,
}

/// Without the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// How to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// How long sessions that are at work may go on, in milliseconds.
    pub grace_ms: u64,
    /// Why the server is away.
    pub why: Why,
}

/// How long after its grace a gateway may take to hold, by the number of connections to the server when it is told to.
#[must_use]
pub fn parking_time_max(connections: u64) -> Duration {
    let extra = PARKING_EXTRA.saturating_mul(u32::try_from(connections).unwrap_or(u32::MAX));
    PARKING_TIMEOUT + extra
}

/// Why the server is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It comes back soon.
    Change,
    /// It was stopped as idle: whoever connects wakes it.
    Asleep,
}

/// How a gateway stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// [`VERSION`] of the gateway.
    pub version: u32,
    /// What it does.
    pub state: State,
    /// Clients that have logged in, parked ones too.
    pub sessions: u64,
    /// Of these: those without a connection to the server.
    pub parked: u64,
    /// Clients that wait for the server.
    pub waiting: u64,
    /// Since a client last sent anything or a session last had a query or a transaction running, in milliseconds; 0
    /// while one has.
    pub idle_ms: u64,
    /// The roles of parked sessions, each once.
    pub parked_roles: Vec<String>,
}

/// What a gateway does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It passes connections on.
    Serving,
    /// It holds, and did so before it was first told to serve.
    Holding,
    /// It holds for [`Why::Asleep`].
    Asleep,
}

/// What a gateway answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It is done; this is how it stands now.
    Done(Status),
    /// A client waits for the server. Only on connections that said [`Request::Watch`].
    Wanted,
    /// It is not done.
    Refused {
        /// Why not.
        message: String,
    },
}

/// The engine's end of a control connection. It blocks.
#[derive(Debug)]
pub struct Control {
    stream: UnixStream,
}

impl Control {
    /// Connects to the gateway that listens at `path`. `timeout` bounds how long each write may block.
    ///
    /// # Errors
    /// `WrongState` when no gateway listens there; `Internal` for anything else the system says.
    pub fn connect(path: &Path, timeout: Duration) -> Result<Control, Failure> {
        let stream = local_socket::connect(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Failure::new(
                ErrorKind::WrongState,
                format!("no gateway listens at {}", path.display()),
                "",
            ),
            _ => lost("connecting", &error),
        })?;
        stream
            .set_write_timeout(Some(timeout.max(Duration::from_millis(1))))
            .map_err(|error| lost("connecting", &error))?;
        Ok(Control { stream })
    }

    /// Asks, and waits for the answer. After an error the connection is of no more use.
    ///
    /// # Errors
    /// `WrongState` with the gateway's words when it refuses; `Internal` when it does not answer in time, or in another
    /// language.
    pub fn ask(&mut self, request: &Request, timeout: Duration) -> Result<Status, Failure> {
        let mut line = serde_json::to_vec(request)
            .map_err(|error| Failure::internal(format!("asking a gateway: {error}")))?;
        line.push(b'\n');
        let sent = self.stream.write_all(&line);
        zeroize::Zeroize::zeroize(&mut line);
        sent.map_err(|error| lost("asking", &error))?;
        let answer = self.read_line(timeout)?;
        match serde_json::from_slice(&answer) {
            Ok(Reply::Done(status)) => Ok(status),
            Ok(Reply::Refused { message }) => Err(Failure::new(ErrorKind::WrongState, message, "")),
            Ok(Reply::Wanted) => Err(Failure::internal("a gateway answers what nobody asked")),
            Err(error) => Err(Failure::internal(format!("a gateway answers gibberish: {error}"))),
        }
    }

    /// Says [`Request::Watch`]. The stream then becomes readable each time a client waits while held: the line
    /// `"wanted"` comes at once, and again every second while so.
    ///
    /// # Errors
    /// As [`Control::ask`].
    pub fn watch(mut self) -> Result<UnixStream, Failure> {
        self.ask(&Request::Watch, Duration::from_secs(10))?;
        self.stream.set_read_timeout(None).map_err(|error| lost("watching", &error))?;
        Ok(self.stream)
    }

    /// Reads up to the end of a line and not beyond: what follows belongs to the next reader.
    fn read_line(&mut self, timeout: Duration) -> Result<Vec<u8>, Failure> {
        let deadline = SystemClock.elapsed() + timeout;
        let mut line = Vec::new();
        while line.len() <= LINE_BYTES_MAX {
            let left = deadline.saturating_sub(SystemClock.elapsed());
            if left.is_zero() {
                return Err(Failure::internal("a gateway does not answer in time"));
            }
            let mut chunk = [0; 1];
            let read = self
                .stream
                .set_read_timeout(Some(left))
                .and_then(|()| self.stream.read(&mut chunk));
            match read {
                Ok(0) => return Err(Failure::internal("a gateway ended before it answered")),
                Ok(_) if chunk[0] == b'\n' => return Ok(line),
                Ok(_) => line.push(chunk[0]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(lost("hearing", &error)),
            }
        }
        Err(Failure::internal("a gateway answers without end"))
    }
}

fn lost(doing: &str, error: &io::Error) -> Failure {
    Failure::internal(format!("{doing} a gateway: {error}"))
}

#[cfg(test)]
mod tests;
