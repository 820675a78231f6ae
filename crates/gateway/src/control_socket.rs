//! The gateway's end of its control socket.

use crate::backend::Target;
use crate::control::{LINE_BYTES_MAX, Reply, Request, Why, parking_time_max};
use crate::hub::{Hub, Phase};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Instant, sleep, timeout};
use zeroize::Zeroizing;

/// Most connections at a time.
const CONNECTIONS_MAX: usize = 64;
/// How often a client that waits is told of again.
const WANTED_EVERY: Duration = Duration::from_secs(1);
/// Between two tellings at least.
const WANTED_PAUSE: Duration = Duration::from_millis(50);
/// How long somebody may take to read an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Accepts those who may control the gateway, for as long as it is polled.
pub(crate) async fn listen(hub: Arc<Hub>, listener: UnixListener, controller: u32) {
    let places = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(WANTED_PAUSE).await;
            continue;
        };
        let may = stream.peer_cred().is_ok_and(|peer| peer.uid() == controller);
        let place = Arc::clone(&places).try_acquire_owned();
        if let (true, Ok(place)) = (may, place) {
            let hub = Arc::clone(&hub);
            tokio::spawn(async move {
                // Whoever leaves, leaves.
                let _ = converse(&hub, stream).await;
                drop(place);
            });
        }
    }
}

async fn converse(hub: &Arc<Hub>, mut stream: UnixStream) -> io::Result<()> {
    let mut lines = Lines::default();
    while let Some(line) = lines.next(&mut stream).await? {
        let request = serde_json::from_slice(&line);
        let watches = matches!(request, Ok(Request::Watch));
        let reply = match request {
            Ok(request) => act(hub, request).await,
            // The place is enough: the text may be a secret.
            Err(error) => {
                let message = format!("not a request: see column {}", error.column());
                Reply::Refused { message }
            }
        };
        tell(&mut stream, &reply).await?;
        if watches {
            return watch(hub, stream).await;
        }
    }
    Ok(())
}

async fn act(hub: &Arc<Hub>, request: Request) -> Reply {
    match request {
        Request::Serve(backend) => match Target::new(backend) {
            Ok(target) => hub.serve(target),
            Err(message) => return Reply::Refused { message },
        },
        Request::Hold(hold) => {
            if hold.why == Why::Asleep && hub.is_in_use() {
                return Reply::Refused { message: "it is in use".to_owned() };
            }
            let grace = Duration::from_millis(hold.grace_ms.min(24 * 3_600_000));
            hub.hold(hold.why, Instant::now() + grace);
            if let Err(message) = all_left(hub).await {
                return Reply::Refused { message };
            }
        }
        Request::End => hub.end(),
        Request::Status | Request::Watch => {}
    }
    Reply::Done(hub.status())
}

/// Waits until no connection to the server is left.
async fn all_left(hub: &Arc<Hub>) -> Result<(), String> {
    let (mut open, mut phase) = (hub.open_count(), hub.phase());
    let Phase::Held { until, .. } = hub.phase_now() else {
        return Err("the gateway ends".to_owned());
    };
    let parking = parking_time_max(*open.borrow());
    let limit = until.saturating_duration_since(Instant::now()) + parking;
    tokio::select! {
        biased;
        left = timeout(limit, open.wait_for(|count| *count == 0)) => match left {
            Ok(_) => Ok(()),
            Err(_) => Err("connections to the server do not end".to_owned()),
        },
        _ = phase.wait_for(|phase| !matches!(phase, Phase::Held { .. })) => {
            Err("the gateway was told something else meanwhile".to_owned())
        }
    }
}

/// Says so whenever a client waits while held, until the other end leaves.
async fn watch(hub: &Arc<Hub>, mut stream: UnixStream) -> io::Result<()> {
    let (mut waiting, mut phase) = (hub.waiting_count(), hub.phase());
    loop {
        let held = matches!(*phase.borrow_and_update(), Phase::Held { .. });
        let wanted = held && *waiting.borrow_and_update() > 0;
        if wanted {
            tell(&mut stream, &Reply::Wanted).await?;
            sleep(WANTED_PAUSE).await;
        }
        tokio::select! {
            changed = waiting.changed() => changed.map_err(io::Error::other)?,
            changed = phase.changed() => changed.map_err(io::Error::other)?,
            () = sleep(WANTED_EVERY), if wanted => {}
            // Nothing is to come this way.
            _ = stream.readable() => return Ok(()),
        }
    }
}

async fn tell(stream: &mut UnixStream, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    timeout(ANSWER_TIMEOUT, stream.write_all(&line)).await?
}

/// Lines of a stream. They may hold secrets.
#[derive(Default)]
struct Lines {
    read: Zeroizing<Vec<u8>>,
}

impl Lines {
    /// The next one, without its end; none at the end of the stream.
    async fn next(&mut self, stream: &mut UnixStream) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        let mut looked = 0;
        loop {
            if let Some(at) = self.read[looked..].iter().position(|byte| *byte == b'\n') {
                let end = looked + at;
                let line = Zeroizing::new(self.read[..end].to_vec());
                self.read.drain(..=end);
                return Ok(Some(line));
            }
            looked = self.read.len();
            if looked > LINE_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if stream.read_buf(&mut *self.read).await? == 0 {
                return Ok(None);
            }
        }
    }
}
