//! The life of one client's connection, from its first packet to its end.

use crate::admission::admit;
use crate::carry::{Carried, Inspected, inspect, restore};
use crate::conversation::{Conversation, remember};
use crate::hub::{self, Hub, Key, Phase};
use crate::login::{Proof, log_in, pass_login};
use crate::messages::{Fatal, PROTOCOL_VIOLATION, parameter, put};
use crate::opening::{Without, await_serving, connect, ended, greet};
use crate::relay::{Exit, Relay};
use crate::startup::{CANCEL, Opening, Startup, hear, refuse};
use crate::turns::Turn;
use crate::wire::{Client, Server, Wire};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

/// Longest wait of a new client while the server is away.
const HELD_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest login of a client.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(120);
/// So much longer than a session at work may a login go on while the gateway holds: nobody is to be refused because a busy
/// host is slow to compute a proof. Whoever does not go on with one holds up the server's stop for no longer.
const LOGIN_EXTRA: Duration = Duration::from_secs(4);
/// Longest that reading the state of a session may take, from when its turn comes. Less than parking one may take.
const INSPECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest wait for the end of a server's process that was told to end.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest that opening a session anew may take once its server answers; its files may be waiting for the next engine.
const REOPEN_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest that a client may take to read what it is told before it goes on.
const NEWS_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for a client that is told its last.
const FAREWELL_TIMEOUT: Duration = Duration::from_millis(500);
/// Longest that a request to cancel may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves a client until one of the two ends it.
pub(crate) async fn attend(hub: Arc<Hub>, stream: TcpStream, peer: std::net::SocketAddr) {
    let mut phase = hub.phase();
    let opening = tokio::select! {
        opening = hear(&hub, stream, peer) => opening,
        _ = phase.wait_for(|phase| matches!(phase, Phase::Ended)) => return,
    };
    match opening {
        Some(Opening::Cancel(wire, key)) => {
            let _ = timeout(CANCEL_TIMEOUT, cancel(&hub, wire, &key)).await;
        }
        Some(Opening::Session(mut client, startup)) => {
            if let Err(Without::Fatal(fatal)) = begin(&hub, &mut client, startup).await {
                refuse(&mut client, &fatal).await;
            }
        }
        None => {}
    }
}

/// Passes a request to cancel on, and waits until the server has taken it.
async fn cancel(hub: &Arc<Hub>, mut wire: Wire, made: &[u8]) -> Option<()> {
    let server_key = hub.server_key(made)?;
    let (open, target) = hub.open()?;
    let mut server = connect(&target, open).await.ok()?;
    let mut packet = (server_key.len() as u32 + 8).to_be_bytes().to_vec();
    packet.extend(CANCEL.to_be_bytes());
    packet.extend_from_slice(&server_key);
    server.send(&packet).await.ok()?;
    // It closes when it is done.
    let _ = server.stream.read(&mut [0; 1]).await;
    wire.shutdown().await.ok()
}

/// Logs a client in once there is a server, and serves it from then on.
async fn begin(hub: &Arc<Hub>, client: &mut Client, startup: Startup) -> Result<(), Without> {
    let (mut server, said) = {
        let _waiting = hub.wait();
        loop {
            await_serving(hub, client, Some(HELD_TIMEOUT)).await?;
            let Some(greeting) = greet(hub, &startup).await.map_err(Without::Fatal)? else {
                continue;
            };
            let allow = &greeting.target.allow;
            admit(startup.peer.ip(), startup.tls, allow).map_err(Without::Fatal)?;
            break (greeting.server, greeting.said);
        }
    };
    let mut phase = hub.phase();
    let logged_in = tokio::select! {
        done = pass_login(hub, client, &mut server, said, &startup) => {
            done.map_err(|fatal| fatal.map_or(Without::Client, Without::Fatal))?
        }
        () = grace_is_over(&mut phase, Instant::now() + LOGIN_TIMEOUT) => {
            return Err(Without::Fatal(Fatal::replaced("")));
        }
    };
    let mut session = Session {
        hub,
        client,
        startup,
        proof: logged_in.proof,
        key: logged_in.key,
        conversation: Conversation::new(logged_in.told),
        counted: hub.begin(),
    };
    loop {
        let Some(carried) = session.relay(server).await? else { return Err(Without::Client) };
        server = session.rest(&carried).await?;
    }
}

/// Waits until the gateway holds and the grace of a login is over, or until `limit`.
async fn grace_is_over(phase: &mut tokio::sync::watch::Receiver<Phase>, limit: Instant) {
    loop {
        let until = match &*phase.borrow_and_update() {
            Phase::Serving(_) => limit,
            Phase::Held { until, .. } => *until + LOGIN_EXTRA,
            Phase::Ended => return,
        };
        tokio::select! {
            changed = phase.changed() => if changed.is_err() { return },
            () = sleep_until(until.min(limit)) => return,
        }
    }
}

/// Waits until the gateway ends.
async fn is_over(phase: &mut tokio::sync::watch::Receiver<Phase>) {
    let _ = phase.wait_for(|phase| matches!(phase, Phase::Ended)).await;
}

/// A client that has logged in.
struct Session<'a> {
    hub: &'a Arc<Hub>,
    client: &'a mut Client,
    startup: Startup,
    proof: Proof,
    key: Option<Key>,
    conversation: Conversation,
    counted: hub::Session,
}

impl<'a> Session<'a> {
    /// Passes on until the session is to be parked: then returns what is carried over. None if it has ended.
    async fn relay(&mut self, mut server: Server) -> Result<Option<Carried>, Without> {
        let mut phase = self.hub.phase();
        let mut relay = Relay::default();
        loop {
            let now = phase.borrow_and_update().clone();
            let until = match now {
                Phase::Serving(_) => None,
                Phase::Held { until, .. } => Some(until),
                Phase::Ended => return self.end(server, &ended()).await,
            };
            // Replication goes on as long as it may.
            let resting = until.is_some() && !self.startup.replication;
            let ends = (&mut *self.client, &mut server);
            let (conversation, counted) = (&mut self.conversation, &mut self.counted);
            let exit = tokio::select! {
                biased;
                exit = poll_relay(&mut relay, ends, conversation, counted, resting) => exit,
                _ = phase.changed() => continue,
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    if self.startup.replication || !self.is_quiet(&server) {
                        let why = "the session was at work when its time was over";
                        return self.end(server, &Fatal::replaced(why)).await;
                    }
                    Exit::AtRest
                }
            };
            return match exit {
                Exit::AtRest => self.park(server).await,
                Exit::ClientGone => Ok(None),
                Exit::ServerGone => {
                    let _ = timeout(FAREWELL_TIMEOUT, self.client.stream.shutdown()).await;
                    Ok(None)
                }
                Exit::Broken => {
                    let why = "a message has a length that cannot be";
                    self.end(server, &Fatal::new(PROTOCOL_VIOLATION, why)).await
                }
            };
        }
    }

    /// Whether nothing is under way, nor on its way to the client.
    fn is_quiet(&self, server: &Server) -> bool {
        self.conversation.is_quiet() && server.unread.is_empty()
    }

    /// Ends the session. The client is told why, unless it is in the middle of what the server was saying.
    async fn end(&mut self, mut server: Server, fatal: &Fatal) -> Result<Option<Carried>, Without> {
        let mut last = server.unread.take();
        self.leave(&mut server).await;
        drop(server);
        if !self.conversation.is_whole_down() {
            return Ok(None);
        }
        last.extend(fatal.encode());
        let _ = timeout(FAREWELL_TIMEOUT, async {
            self.client.send(&last).await?;
            self.client.stream.shutdown().await
        })
        .await;
        Ok(None)
    }

    /// Closes the connection to the server, with a word if that is possible.
    async fn leave(&self, server: &mut Server) {
        debug_assert!(server.is_counted());
        if let Some(key) = &self.key {
            key.stands_for(None);
        }
        if self.conversation.is_whole_up() {
            let _ = server.stream.try_write(b"X\0\0\0\x04");
        }
        let _ = server.stream.shutdown().await;
    }

    /// Reads what the session has on its server, and leaves that.
    async fn park(&mut self, mut server: Server) -> Result<Option<Carried>, Without> {
        if self.conversation.is_untouched() {
            self.leave(&mut server).await;
            return Ok(Some(Carried::of_login(&self.startup.user)));
        }
        let mut phase = self.hub.phase();
        let turn = tokio::select! {
            turn = self.hub.turns.next() => turn,
            () = is_over(&mut phase) => return self.end(server, &ended()).await,
        };
        let mut found = Inspected::default();
        let read = turn.spend(self.read_out(server, &mut found)).await;
        read.map_err(|why| Without::Fatal(Fatal::replaced(why)))?;
        // What came for the client meanwhile.
        if !found.aside.is_empty() {
            let told = self.conversation.pass_down(&found.aside);
            let sent = timeout(NEWS_TIMEOUT, self.client.send(&found.aside)).await;
            if told.is_err() || !matches!(sent, Ok(Ok(()))) {
                return Err(Without::Client);
            }
        }
        Ok(Some(found.carried))
    }

    /// Reads what the session has on its server, and waits until that has given back what it took for it.
    async fn read_out(&self, mut server: Server, found: &mut Inspected) -> Result<(), String> {
        let read = inspect(&mut server, &self.conversation.customs, found);
        let read = timeout(INSPECT_TIMEOUT, read).await;
        self.leave(&mut server).await;
        let mut rest = [0; 512];
        let _ = timeout(LEAVE_TIMEOUT, async {
            while matches!(server.stream.read(&mut rest).await, Ok(1..)) {}
        })
        .await;
        read.unwrap_or_else(|_| Err("the session's state is not read in time".to_owned()))
    }

    /// Keeps the client until there is a server again, and it sends something or is to hear something: then returns that.
    async fn rest(&mut self, carried: &Carried) -> Result<Server, Without> {
        let hub = self.hub;
        let parked = hub.park(&self.startup.role());
        self.client.unread.release();
        let mut waiting = None;
        loop {
            let turn = match self.client.unread.is_empty() {
                true => self.await_cause(carried.listens()).await?,
                false => None,
            };
            let reopened = match turn {
                // Not counted as waiting: a VDB sleeps although somebody listens, and is not woken by that.
                Some(turn) => turn.spend(self.reopen(carried)).await,
                None => {
                    if self.client.unread.filled().first() == Some(&b'X') {
                        return Err(Without::Client);
                    }
                    waiting.get_or_insert_with(|| hub.wait());
                    await_serving(hub, self.client, None).await?;
                    self.reopen(carried).await
                }
            };
            if let Some((server, news)) = reopened.map_err(Without::Fatal)? {
                drop((parked, waiting));
                // The server is not kept waiting by a client that does not listen.
                let sent = timeout(NEWS_TIMEOUT, self.client.send(&news)).await;
                return if matches!(sent, Ok(Ok(()))) { Ok(server) } else { Err(Without::Client) };
            }
        }
    }

    /// Waits until there is a cause to open the session anew: the client has sent something, or, if it listens, a server is
    /// served; then it is that session's turn.
    async fn await_cause(&mut self, listens: bool) -> Result<Option<Turn<'a>>, Without> {
        let hub = self.hub;
        let (mut ending, mut serving) = (hub.phase(), hub.phase());
        let turn = async {
            // An error: the gateway ends.
            let _ = serving.wait_for(|phase| matches!(phase, Phase::Serving(_))).await;
            hub.turns.next().await
        };
        tokio::select! {
            read = self.client.fill() => match read {
                Ok(1..) => Ok(None),
                _ => Err(Without::Client),
            },
            () = is_over(&mut ending) => Err(Without::Fatal(ended())),
            turn = turn, if listens => Ok(Some(turn)),
        }
    }

    /// Opens the session anew, with what is news for the client. None if the server went away meanwhile.
    async fn reopen(&mut self, carried: &Carried) -> Result<Option<(Server, Vec<u8>)>, Fatal> {
        let Some(greeting) = greet(self.hub, &self.startup).await? else { return Ok(None) };
        let mut phase = self.hub.phase();
        let stored = greeting.target.login(&self.startup.role()).to_owned();
        let stored = zeroize::Zeroizing::new(stored);
        let (mut server, said) = (greeting.server, greeting.said);
        let opened = async {
            let (mut told, key) = log_in(&mut server, said, &self.proof, &stored).await?;
            let aside = restore(&mut server, carried, &self.startup.user, |body| {
                remember(&mut told, body);
            })
            .await?;
            Ok((told, key, aside))
        };
        let opened = tokio::select! {
            opened = timeout(REOPEN_TIMEOUT, opened) => {
                opened.unwrap_or_else(|_| Err("the server does not answer in time".to_owned()))
            }
            _ = phase.wait_for(|phase| !matches!(phase, Phase::Serving(_))) => return Ok(None),
        };
        let (told, key, aside) = opened.map_err(|why: String| Fatal::replaced(why))?;
        if let Some(made) = &self.key {
            made.stands_for(Some(&key));
        }
        let mut news = Vec::new();
        for (name, value) in &told {
            if self.conversation.told.get(name) != Some(value) {
                put(&mut news, b'S', &[name, b"\0", value, b"\0"]);
            }
        }
        debug_assert!(news.is_empty() || parameter(&news[5..]).is_some());
        news.extend(aside);
        let customs = std::mem::take(&mut self.conversation.customs);
        self.conversation = Conversation::new(told);
        self.conversation.customs = customs;
        self.conversation.touch();
        Ok(Some((server, news)))
    }
}

/// [`Relay::poll`] as a future. May be dropped and begun again.
async fn poll_relay(
    relay: &mut Relay,
    (client, server): (&mut Client, &mut Server),
    conversation: &mut Conversation,
    counted: &mut hub::Session,
    resting: bool,
) -> Exit {
    poll_fn(|cx| relay.poll(cx, (client, server), conversation, counted, resting)).await
}
