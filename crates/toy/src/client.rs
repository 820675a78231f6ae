//! Talks to a server: one line asks, one line answers, sometimes followed by bytes.

use offshoot_types::{ErrorKind, Failure};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest answer with bytes.
const BYTES_MAX: usize = 1 << 30;

/// Why there is no answer.
#[derive(Debug)]
pub enum Refused {
    /// Nobody answers.
    Unreachable(io::Error),
    /// The name or secret is wrong.
    Denied(String),
    /// The journal asked for is not kept.
    Gone(String),
    /// Anything else that the server said.
    Error(String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Unreachable(error) => error.fmt(f),
            Refused::Denied(text) | Refused::Gone(text) | Refused::Error(text) => f.write_str(text),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Unreachable(error)
    }
}

impl Refused {
    /// As a user of a source sees it.
    pub(crate) fn of_source(self, place: &str) -> Failure {
        match self {
            Refused::Unreachable(error) => Failure::new(
                ErrorKind::SourceUnreachable,
                format!("{place} cannot be reached: {error}"),
                "check that the source runs and listens there",
            ),
            Refused::Denied(text) => Failure::new(
                ErrorKind::SourceRefused,
                format!("{place} refuses: {text}"),
                "give a login of the source and its secret",
            ),
            Refused::Gone(text) | Refused::Error(text) => {
                Failure::new(ErrorKind::SourceRefused, format!("{place} says: {text}"), "")
            }
        }
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection.
pub struct Client {
    stream: BufReader<Box<dyn Stream>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Client {
    /// By a server's socket, without a login.
    ///
    /// # Errors
    /// [`Refused::Unreachable`].
    pub fn local(socket: &Path) -> Result<Client, Refused> {
        Client::local_within(socket, ANSWER_TIMEOUT)
    }

    /// The same, with a time limit for an answer.
    pub(crate) fn local_within(socket: &Path, timeout: Duration) -> Result<Client, Refused> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Client { stream: BufReader::new(Box::new(stream)) })
    }

    /// By a URI `toy://LOGIN:SECRET@HOST:PORT/…`.
    ///
    /// # Errors
    /// Any.
    pub fn open(uri: &str) -> Result<Client, Refused> {
        let uri = url::Url::parse(uri).map_err(io::Error::other)?;
        let (Some(host), Some(port)) = (uri.host_str(), uri.port()) else {
            return Err(Refused::Error("the URI has no host or port".to_owned()));
        };
        let secret = uri.password().unwrap_or_default();
        Client::remote(host, port, uri.username(), secret, Duration::from_secs(2))
    }

    /// By network, with a login.
    ///
    /// # Errors
    /// Any.
    pub(crate) fn remote(
        host: &str,
        port: u16,
        login: &str,
        secret: &str,
        timeout: Duration,
    ) -> Result<Client, Refused> {
        let nowhere = || io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        let address = (host, port).to_socket_addrs()?.next().ok_or_else(nowhere)?;
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout.max(Duration::from_secs(5))))?;
        stream.set_write_timeout(Some(timeout.max(Duration::from_secs(5))))?;
        let mut client = Client { stream: BufReader::new(Box::new(stream)) };
        client.ask(&format!("LOGIN {login} {secret}"))?;
        Ok(client)
    }

    /// Asks; what follows `OK`.
    ///
    /// # Errors
    /// Any.
    pub fn ask(&mut self, line: &str) -> Result<String, Refused> {
        let stream = self.stream.get_mut();
        stream.write_all(line.as_bytes())?;
        stream.write_all(b"\n")?;
        stream.flush()?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer)?;
        let Some(answer) = answer.strip_suffix('\n') else {
            let kind = io::ErrorKind::UnexpectedEof;
            return Err(Refused::Unreachable(io::Error::new(kind, "the connection was closed")));
        };
        let (word, rest) = answer.split_once(' ').unwrap_or((answer, ""));
        match word {
            "OK" => Ok(rest.to_owned()),
            "DENIED" => Err(Refused::Denied(rest.to_owned())),
            "GONE" => Err(Refused::Gone(rest.to_owned())),
            _ => Err(Refused::Error(rest.to_owned())),
        }
    }

    /// Asks for numbers; the first says how many bytes follow.
    pub(crate) fn ask_bytes(&mut self, line: &str) -> Result<(Vec<i64>, Vec<u8>), Refused> {
        let unclear = || Refused::Error("the answer cannot be read".to_owned());
        let answer = self.ask(line)?;
        let numbers: Result<Vec<i64>, _> = answer.split(' ').map(str::parse).collect();
        let numbers = numbers.map_err(|_| unclear())?;
        let length = numbers.first().and_then(|length| usize::try_from(*length).ok());
        let length = length.filter(|length| *length <= BYTES_MAX).ok_or_else(unclear)?;
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok((numbers, bytes))
    }
}
