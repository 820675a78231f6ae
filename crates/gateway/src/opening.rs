//! How a connection to the server comes about: when there is one, and once it answers.

use crate::backend::Target;
use crate::hub::{Hub, Open, Phase};
use crate::messages::{CANNOT_CONNECT_NOW, Fatal, Frame, error_field};
use crate::startup::Startup;
use crate::wire::{Client, End, Server};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Longest message of a login, in bytes.
pub(crate) const LOGIN_BYTES_MAX: usize = 64 << 10;
/// Longest wait for a server that nobody reaches, or that says it is not ready, although it is served.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for the answer of one that was reached: its files may be waiting for the next engine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// How codes of errors begin that say nothing of the client: a server that starts or ends, the system, the server itself.
const PASSING: [&str; 3] = ["57P0", "58", "XX"];
/// Most messages before a server asks for a proof or refuses.
const GREETING_FRAMES_MAX: usize = 16;

/// A server that has answered.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) server: Server,
    pub(crate) target: Arc<Target>,
    /// What it said; the last is a request for a proof, or an error.
    pub(crate) said: Vec<Frame>,
}

impl Greeting {
    /// Whether it is the refusal of a server that is about to end or to be ready, or whose files are away.
    fn is_passing(&self) -> bool {
        let refused = self.said.last().filter(|frame| frame.tag() == b'E');
        refused.is_some_and(|frame| {
            let code = error_field(frame.body(), b'C');
            PASSING.iter().any(|passing| code.starts_with(passing))
        })
    }
}

/// Why a client gets no connection to a server.
#[derive(Debug)]
pub(crate) enum Without {
    /// It went away.
    Client,
    /// It is to be told this.
    Fatal(Fatal),
}

/// Waits until a server is served, at most so long.
///
/// # Errors
/// Why not.
pub(crate) async fn await_serving(
    hub: &Hub,
    client: &mut Client,
    limit: Option<Duration>,
) -> Result<(), Without> {
    let mut phase = hub.phase();
    let deadline = limit.map(|limit| Instant::now() + limit);
    loop {
        match &*phase.borrow_and_update() {
            Phase::Serving(_) => return Ok(()),
            Phase::Ended => return Err(Without::Fatal(ended())),
            Phase::Held { .. } => {}
        }
        tokio::select! {
            _ = phase.changed() => {}
            read = client.fill(), if client.unread.has_room() => {
                if !matches!(read, Ok(1..)) {
                    return Err(Without::Client);
                }
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                return Err(Without::Fatal(away(&hub.name)));
            }
        }
    }
}

/// Connects to the server that is served and introduces a client. None if none is served any more.
///
/// # Errors
/// What to tell the client when the server does not answer for too long.
pub(crate) async fn greet(hub: &Arc<Hub>, startup: &Startup) -> Result<Option<Greeting>, Fatal> {
    let deadline = Instant::now() + SERVER_TIMEOUT;
    let mut phase = hub.phase();
    let attempts = async {
        while let Some((open, target)) = hub.open() {
            let answered = timeout(ANSWER_TIMEOUT, greet_once(open, target, startup)).await;
            let is_late = Instant::now() >= deadline;
            match answered {
                Ok(Ok(greeting)) if is_late || !greeting.is_passing() => return Ok(Some(greeting)),
                _ if is_late => return Err(away(&hub.name)),
                _ => {}
            }
            sleep(PAUSE).await;
        }
        Ok(None)
    };
    tokio::select! {
        greeting = attempts => greeting,
        _ = phase.wait_for(|phase| !matches!(phase, Phase::Serving(_))) => Ok(None),
    }
}

/// Opens a connection to the server's port.
///
/// # Errors
/// The system's.
pub(crate) async fn connect(target: &Target, open: Open) -> io::Result<Server> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, target.port)).await?;
    stream.set_nodelay(true)?;
    Ok(End::new(stream, Some(open)))
}

async fn greet_once(open: Open, target: Arc<Target>, startup: &Startup) -> io::Result<Greeting> {
    let mut server = connect(&target, open).await?;
    server.send(&startup.packet).await?;
    let mut said = Vec::new();
    while said.len() < GREETING_FRAMES_MAX {
        let frame = server.frame(LOGIN_BYTES_MAX).await?;
        let tag = frame.tag();
        said.push(frame);
        if matches!(tag, b'R' | b'E') {
            return Ok(Greeting { server, target, said });
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// The gateway ends.
pub(crate) fn ended() -> Fatal {
    Fatal::new(
        crate::messages::ADMIN_SHUTDOWN,
        "terminating connection: the virtual database is no longer offered here",
    )
}

fn away(name: &str) -> Fatal {
    Fatal::new(
        CANNOT_CONNECT_NOW,
        format!("the server of the virtual database {name} is not available; try again later"),
    )
}
