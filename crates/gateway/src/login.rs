//! Logging in: a client's own, passed between it and the server, and later the gateway's in its place.

use crate::admission::is_local;
use crate::conversation::{Parameters, remember};
use crate::hub::{Hub, Key};
use crate::messages::{Fatal, Frame, NOT_ALLOWED, PROTOCOL_VIOLATION, error_words, message, put};
use crate::opening::LOGIN_BYTES_MAX;
use crate::scram::{Exchange, Login, MECHANISM, Verifier, md5_answer};
use crate::startup::Startup;
use crate::wire::{Client, Server};
use std::io;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Most messages of a login, notices and parameters too.
const FRAMES_MAX: usize = 1000;

/// How a client proved who it is.
pub(crate) enum Proof {
    /// It did not have to.
    Unasked,
    /// By a key.
    Scram(Box<Exchange>),
    /// By the hash of a password and a salt: what it answered.
    Md5 { salt: Vec<u8>, answer: Zeroizing<Vec<u8>> },
    /// In a way that cannot be repeated.
    Other,
}

/// A login that the server accepted.
pub(crate) struct LoggedIn {
    pub(crate) proof: Proof,
    pub(crate) told: Parameters,
    /// In the place of the server's.
    pub(crate) key: Option<Key>,
}

/// Passes a login between client and server, until the server is ready for queries.
///
/// # Errors
/// What to tell the client; nothing if one of the two went away, or the server has told it.
pub(crate) async fn pass_login(
    hub: &Arc<Hub>,
    client: &mut Client,
    server: &mut Server,
    said: Vec<Frame>,
    startup: &Startup,
) -> Result<LoggedIn, Option<Fatal>> {
    let mut passing = Passing {
        client,
        server,
        out: Vec::new(),
        local: is_local(startup.peer.ip()),
        proof: Proof::Unasked,
        proven: false,
    };
    let mut done = LoggedIn { proof: Proof::Unasked, told: Parameters::new(), key: None };
    let mut said = said.into_iter();
    for _ in 0..FRAMES_MAX {
        let frame = match said.next() {
            Some(frame) => frame,
            None => passing.server.frame(LOGIN_BYTES_MAX).await.map_err(gone)?,
        };
        match frame.tag() {
            b'R' => passing.prove(&frame).await?,
            b'K' => {
                let key = hub.make_key(frame.body()).ok_or_else(|| violated("a key"))?;
                put(&mut passing.out, b'K', &[key.made()]);
                done.key = Some(key);
            }
            tag => {
                if tag == b'S' {
                    remember(&mut done.told, frame.body());
                }
                passing.out.extend_from_slice(&frame.bytes);
            }
        }
        if matches!(frame.tag(), b'Z' | b'E') {
            passing.tell().await?;
        }
        match frame.tag() {
            b'Z' => {
                done.proof = passing.proof;
                return Ok(done);
            }
            b'E' => return Err(None),
            _ => {}
        }
    }
    Err(violated("a login without end"))
}

/// A login on its way.
struct Passing<'a> {
    client: &'a mut Client,
    server: &'a mut Server,
    /// For the client.
    out: Vec<u8>,
    local: bool,
    proof: Proof,
    /// By SASL.
    proven: bool,
}

impl Passing<'_> {
    async fn tell(&mut self) -> Result<(), Option<Fatal>> {
        let sent = self.client.send(&self.out).await;
        self.out.clear();
        sent.map_err(gone)
    }

    /// Passes a request for a proof on, and the answer back.
    async fn prove(&mut self, asked: &Frame) -> Result<(), Option<Fatal>> {
        let (kind, data) = request(asked).ok_or_else(|| violated("a request for a proof"))?;
        let strong = matches!(kind, 10..=12) || kind == 0 && self.proven;
        if !(self.local || strong) {
            let message = "connections from other hosts need a password of the kind scram-sha-256";
            return Err(Some(Fatal::new(NOT_ALLOWED, message)));
        }
        if !matches!(kind, 0 | 5 | 10..=12) {
            let message = "only the methods scram-sha-256, md5 and trust can be passed on";
            return Err(Some(Fatal::new(NOT_ALLOWED, message)));
        }
        self.out.extend_from_slice(&asked.bytes);
        match kind {
            0 => return Ok(()),
            12 => {
                self.proven = true;
                return Ok(());
            }
            _ => {}
        }
        let answer = self.answer().await?;
        let body = answer.body();
        match kind {
            5 => {
                let said = Zeroizing::new(body.strip_suffix(b"\0").unwrap_or(body).to_vec());
                self.proof = Proof::Md5 { salt: data.to_vec(), answer: said };
            }
            10 => self.proof = begin_exchange(body).map_or(Proof::Other, Proof::Scram),
            _ => self.keep_exchange(data, body),
        }
        self.server.send(&answer.bytes).await.map_err(gone)
    }

    fn keep_exchange(&mut self, server_first: &[u8], client_final: &[u8]) {
        let Proof::Scram(exchange) = &mut self.proof else { return };
        let kept = exchange.server_first(server_first);
        if kept.and_then(|()| exchange.client_final(client_final)).is_none() {
            self.proof = Proof::Other;
        }
    }

    /// The client's answer. A server that loses its patience is heard.
    async fn answer(&mut self) -> Result<Frame, Option<Fatal>> {
        self.tell().await?;
        let answer = tokio::select! {
            answer = self.client.frame(LOGIN_BYTES_MAX) => answer.map_err(gone)?,
            read = self.server.fill(), if self.server.unread.has_room() => {
                if matches!(read, Ok(1..)) {
                    let last = self.server.frame(LOGIN_BYTES_MAX).await.map_err(gone)?;
                    self.out.extend_from_slice(&last.bytes);
                    self.tell().await?;
                }
                return Err(None);
            }
        };
        if answer.tag() == b'p' { Ok(answer) } else { Err(None) }
    }
}

/// Logs in as a client did before, until the server is ready for queries. Returns what it said of itself, and its key for
/// cancelling.
///
/// # Errors
/// Why not.
pub(crate) async fn log_in(
    server: &mut Server,
    said: Vec<Frame>,
    proof: &Proof,
    stored: &str,
) -> Result<(Parameters, Vec<u8>), String> {
    let lost = |error: io::Error| format!("the server does not let the session in: {error}");
    let (mut told, mut key) = (Parameters::new(), Vec::new());
    let mut login = None;
    let mut said = said.into_iter();
    for _ in 0..FRAMES_MAX {
        let frame = match said.next() {
            Some(frame) => frame,
            None => server.frame(LOGIN_BYTES_MAX).await.map_err(lost)?,
        };
        match frame.tag() {
            b'R' => {
                if let Some(answer) = answer_for(&frame, proof, stored, &mut login)? {
                    server.send(&answer).await.map_err(lost)?;
                }
            }
            b'S' => remember(&mut told, frame.body()),
            b'K' => key = frame.body().to_vec(),
            b'E' => return Err(error_words(frame.body())),
            b'Z' => return Ok((told, key)),
            _ => {}
        }
    }
    Err("the server says too much".to_owned())
}

/// What a client would answer to a request for a proof; none if there is nothing to answer.
fn answer_for(
    asked: &Frame,
    proof: &Proof,
    stored: &str,
    login: &mut Option<(Login, bool)>,
) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
    let changed = || "the password of the role was changed".to_owned();
    let (kind, data) = request(asked).ok_or("the server asks for something unknown")?;
    let answer = match (kind, proof) {
        // The server must have proved itself if it was asked to.
        (0, _) if login.as_ref().is_none_or(|(_, proven)| *proven) => return Ok(None),
        (5, Proof::Md5 { salt, answer }) => {
            let same = md5_answer(stored, salt).is_some_and(|same| same.as_bytes() == **answer);
            let fresh = md5_answer(stored, data).filter(|_| same).ok_or_else(changed)?;
            message(b'p', &[fresh.as_bytes(), b"\0"])
        }
        (10, Proof::Scram(exchange))
            if data.split(|byte| *byte == 0).any(|name| name == MECHANISM.as_bytes()) =>
        {
            let verifier = Verifier::parse(stored).ok_or_else(changed)?;
            let begun = Login::new(exchange, verifier).ok_or_else(changed)?;
            let first = begun.first();
            *login = Some((begun, false));
            let length = (first.len() as u32).to_be_bytes();
            message(b'p', &[MECHANISM.as_bytes(), b"\0", &length, first.as_bytes()])
        }
        (11, _) => {
            let answer = login.as_mut().and_then(|(login, _)| login.answer(data));
            message(b'p', &[answer.ok_or("the server's SCRAM is wrong")?.as_bytes()])
        }
        (12, _) => match login {
            Some((login, proven)) if login.is_server(data) => {
                *proven = true;
                return Ok(None);
            }
            _ => return Err("the server does not know the role's password".to_owned()),
        },
        _ => return Err("the server asks for another proof than before".to_owned()),
    };
    Ok(Some(Zeroizing::new(answer)))
}

fn begin_exchange(body: &[u8]) -> Option<Box<Exchange>> {
    let message = body.strip_prefix(MECHANISM.as_bytes())?.strip_prefix(b"\0")?;
    let mut exchange = Box::<Exchange>::default();
    exchange.client_first(message.get(4..)?)?;
    Some(exchange)
}

/// Kind and data of a request for a proof.
fn request(frame: &Frame) -> Option<(u32, &[u8])> {
    let (kind, data) = frame.body().split_first_chunk()?;
    Some((u32::from_be_bytes(*kind), data))
}

fn gone(_: io::Error) -> Option<Fatal> {
    None
}

fn violated(what: &str) -> Option<Fatal> {
    Some(Fatal::new(PROTOCOL_VIOLATION, format!("the server sent {what} that cannot be")))
}
