//! The ways to a peer in the course of a run: each connected when something is to be said, connected again after a cut.

use crate::core::peers::{self, Learned};
use crate::core::topology;
use crate::jobs::replica::go_on;
use crate::parts::Context;
use offshoot_domain::{Manifest, Owner, Peer, SentMark};
use offshoot_replication::Error;
use offshoot_replication::exchange::Giver;
use offshoot_replication::talk::{Hello, Message, Offer, Password, Sent, Talk, VERSION, Welcome};
use offshoot_types::{ErrorKind, Failure};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Pauses before connections that are made again. After the last one the run has failed.
const PAUSES_MS: [u64; 6] = [200, 1000, 2000, 5000, 10_000, 15_000];
/// Pause between two looks at whether it is cancelled.
const LOOK: Duration = Duration::from_millis(100);
/// Blocks between two looks at how far it is.
const TOLD_BLOCKS: u64 = 256;

/// What a run has done so far.
#[derive(Debug, Default)]
pub struct Sending {
    pub objects: u64,
    pub sent_bytes: u64,
    pub unique_bytes: u64,
    pub saved_bytes: u64,
    pub resumed: bool,
    pub marks: Vec<(Owner, SentMark)>,
}

impl Sending {
    /// Adds what another part of the run has done.
    pub fn add(&mut self, other: Sending) {
        self.objects += other.objects;
        self.sent_bytes += other.sent_bytes;
        self.unique_bytes += other.unique_bytes;
        self.saved_bytes += other.saved_bytes;
        self.resumed |= other.resumed;
        self.marks.extend(other.marks);
    }
}

/// What is offered of an object.
pub struct Offered {
    pub manifest: Manifest,
    /// The manifest, as it is sent.
    pub told: Vec<u8>,
    pub digest: String,
    pub giver: Giver,
    /// The password that goes with it; none: none does.
    pub password: Option<Password>,
}

/// What all ways of a run have in common.
pub struct Run<'a> {
    pub context: &'a Context,
    pub peer: Peer,
    pace: Pace,
}

impl<'a> Run<'a> {
    pub fn new(context: &'a Context, peer: Peer, bytes_per_second_max: Option<u64>) -> Run<'a> {
        let (since, bytes, expected) = Default::default();
        Run { context, peer, pace: Pace { bytes_per_second_max, since, bytes, expected } }
    }
}

/// A way to a peer.
pub struct Course<'a> {
    run: &'a Run<'a>,
    talk: Option<Talk>,
    /// Whether the peer has said that it has taken over.
    taken_over: bool,
    /// Bytes of connections that have ended.
    sent_bytes: u64,
    /// Bytes of all that were told.
    told_bytes: u64,
}

impl<'a> Course<'a> {
    pub fn new(run: &'a Run<'a>) -> Course<'a> {
        Course { run, talk: None, taken_over: false, sent_bytes: 0, told_bytes: 0 }
    }

    pub fn context(&self) -> &'a Context {
        self.run.context
    }

    pub fn peer(&self) -> &'a Peer {
        &self.run.peer
    }

    /// Sends what the peer lacks of an object; all connections together.
    ///
    /// # Errors
    /// What the peer says, or `EngineUnreachable` when it does not come back.
    pub fn send(&mut self, offered: &mut Offered, sending: &mut Sending) -> Result<Sent, Failure> {
        let (mut all, mut times) = (Sent::default(), 0);
        loop {
            let before = all.blocks;
            match self.try_once(offered, sending, &mut all) {
                Ok(()) => return Ok(all),
                // The peer saw it first, as it looks at all content. Here this finds what is damaged, and notes it.
                Err(Broken::Final(failure))
                    if failure.code == ErrorKind::DataDamaged && offered.giver.check_content() =>
                {
                    self.hang_up();
                }
                Err(Broken::Final(failure)) => {
                    self.hang_up();
                    return Err(failure);
                }
                Err(Broken::Connection(failure)) => {
                    self.hang_up();
                    // What moved on is no reason to give up.
                    times = if all.blocks > before { 0 } else { times };
                    self.pause(&mut times, failure)?;
                }
            }
        }
    }

    fn try_once(
        &mut self,
        offered: &Offered,
        sending: &mut Sending,
        all: &mut Sent,
    ) -> Result<(), Broken> {
        let context = self.context();
        let mut talk = match self.talk.take() {
            Some(talk) => talk,
            None => self.connect()?,
        };
        let manifest = &offered.manifest;
        let offer = Offer {
            name: manifest.dsource.name.to_string(),
            origin: manifest.dsource.id.to_string(),
            engine: manifest.sender.is_some().then(|| manifest.engine.clone()),
            digest: offered.digest.clone(),
            as_of: manifest.as_of.to_string(),
            password: offered.password.clone(),
        };
        let answered =
            talk.say(&Message::Offer(offer)).and_then(|()| talk.hear(&mut || go_on(context)));
        let given = match answered {
            Ok(Message::Same { .. }) => Ok(()),
            Ok(Message::Send { resumed }) => {
                sending.resumed |= resumed;
                self.give(&mut talk, offered, all)
            }
            Ok(other) => Err(Error::Confused(format!("{other:?}"))),
            Err(error) => Err(error),
        };
        if given.is_ok() {
            self.talk = Some(talk);
            return Ok(());
        }
        self.sent_bytes += talk.wire().sent_bytes();
        given.map_err(|error| self.broken(error))
    }

    fn give(&mut self, talk: &mut Talk, offered: &Offered, all: &mut Sent) -> Result<(), Error> {
        let (context, before, pace) = (self.context(), *all, &self.run.pace);
        let mut told = 0;
        talk.give(&offered.told, &offered.giver, &mut |sent| {
            let passed = before.stored_bytes + sent.stored_bytes - all.stored_bytes;
            all.blocks = before.blocks + sent.blocks;
            all.stored_bytes = before.stored_bytes + sent.stored_bytes;
            all.raw_bytes = before.raw_bytes + sent.raw_bytes;
            go_on(context)?;
            let bytes = pace.passed(passed);
            if sent.expected_bytes > 0 {
                // Whoever says it may say anything.
                let expected = before.stored_bytes.saturating_add(sent.expected_bytes);
                pace.expect(std::mem::replace(&mut all.expected_bytes, expected), expected);
            }
            if sent.blocks >= told + TOLD_BLOCKS {
                told = sent.blocks;
                context.progress(bytes, pace.expected(bytes), "bytes");
            }
            if passed == 0 { Ok(()) } else { pace.keep(context, bytes) }
        })?;
        // What was expected was an estimate, or nothing.
        pace.expect(all.expected_bytes, all.stored_bytes);
        Ok(())
    }

    /// Whether the peer waits for this engine to stop, as it said last.
    pub fn is_asked_to_hand_over(&self) -> bool {
        self.talk.as_ref().is_some_and(Talk::hand_over)
    }

    /// Asks the peer whether it waits for this engine to stop.
    ///
    /// # Errors
    /// As those of `send`; also where it [has taken over](Course::is_taken_over).
    pub fn ask_whether_to_hand_over(&mut self) -> Result<bool, Failure> {
        self.hang_up();
        let mut times = 0;
        loop {
            match self.connect() {
                Ok(talk) => {
                    self.talk = Some(talk);
                    return Ok(self.is_asked_to_hand_over());
                }
                Err(Broken::Final(failure)) => return Err(failure),
                Err(Broken::Connection(failure)) => self.pause(&mut times, failure)?,
            }
        }
    }

    /// Says that this engine has stopped and sent all of it; whether the peer has taken over. It may not have where the
    /// connection ends: ask again.
    pub fn hand_over(&mut self) -> bool {
        let context = self.context();
        let Some(talk) = &mut self.talk else { return false };
        let answered =
            talk.say(&Message::HandOver).and_then(|()| talk.hear(&mut || go_on(context)));
        matches!(answered, Ok(Message::TakenOver))
    }

    /// Whether the peer has taken over what was sent to it.
    pub fn is_taken_over(&self) -> bool {
        self.taken_over
    }

    /// Waits before another connection, or gives up with why there is none.
    fn pause(&self, times: &mut usize, failure: Failure) -> Result<(), Failure> {
        let Some(pause) = PAUSES_MS.get(*times) else { return Err(failure) };
        *times += 1;
        tracing::info!(peer = %self.peer().name, %failure, "connecting again");
        rest(self.context(), Duration::from_millis(*pause)).map_err(|it| it.failure())
    }

    /// Connects, and once more if either side has said by that to go on with another key: then that is used from now on.
    fn connect(&mut self) -> Result<Talk, Broken> {
        let before = self.peer_now()?;
        let (talk, learned) = match self.connect_once(&before) {
            // Another run has learned of a key meanwhile, and the one before is no good any more.
            Err(Broken::Final(_)) if self.peer_now()?.keys() != before.keys() => {
                self.connect_once(&self.peer_now()?)?
            }
            other => other?,
        };
        if !learned {
            return Ok(talk);
        }
        self.sent_bytes += talk.wire().sent_bytes();
        drop(talk);
        Ok(self.connect_once(&self.peer_now()?)?.0)
    }

    fn peer_now(&self) -> Result<Peer, Broken> {
        let catalog = &self.context().app().catalog;
        catalog.get(self.peer().id).map_err(|error| Broken::Final(error.into()))
    }

    /// The connection, and whether somebody has learned of another key.
    fn connect_once(&mut self, peer: &Peer) -> Result<(Talk, bool), Broken> {
        let (parts, known) = (self.context().app(), self.peer());
        let address = known.address.clone().ok_or_else(|| {
            Broken::Final(Failure::new(
                ErrorKind::WrongState,
                format!("it is not known where '{}' is", known.name),
                "add it with a code of its own: offshoot peer add NAME --address HOST:PORT --code CODE",
            ))
        })?;
        let own = peers::key_for(parts, peer).map_err(Broken::Final)?;
        let mut hello = peers::hello(parts, Some(peer), None).map_err(Broken::Final)?;
        hello.known = topology::said(parts).map_err(Broken::Final)?;
        let next_key = hello.next_key.clone();
        let reached = parts.network.call(&address, &peer.fingerprints(), &own);
        let reached = reached.map_err(Broken::of_failure)?;
        let mut talk = Talk::new(reached.wire);
        let welcome = introduce(&mut talk, hello, self.context());
        let welcome = welcome.map_err(|error| self.broken(error))?;
        let Some(welcome) = welcome else {
            self.taken_over = true;
            return Err(Broken::Final(taken_over(known)));
        };
        if welcome.engine != known.engine || welcome.version != VERSION {
            let message = format!("'{}' is another engine than before", known.name);
            let hint = "remove the peer, and add it again with a new code";
            return Err(Broken::Final(Failure::new(ErrorKind::Forbidden, message, hint)));
        }
        let learned = Learned {
            shown: &reached.fingerprint,
            next: welcome.next_key.as_deref(),
            knows_key: next_key.is_some() && welcome.knows_key == next_key,
        };
        peers::met(parts, peer.id, &learned).map_err(Broken::Final)?;
        topology::heard(parts, peer.id, &welcome.known).map_err(Broken::Final)?;
        let learned = learned.knows_key || learned.next.is_some();
        Ok((talk, learned))
    }

    fn broken(&self, error: Error) -> Broken {
        match error {
            Error::Refused(Failure { code, message, hint }) => {
                let message = format!("'{}' refuses it: {message}", self.peer().name);
                match code {
                    // Its engine ends.
                    ErrorKind::Cancelled => {
                        let code = ErrorKind::EngineUnreachable;
                        Broken::Connection(Failure::new(code, message, hint))
                    }
                    _ => Broken::of_failure(Failure::new(code, message, hint)),
                }
            }
            other if other.is_of_connection() => Broken::Connection(other.failure()),
            other => Broken::of_failure(other.failure()),
        }
    }

    /// Ends the connection; another one is made when something is to be said.
    pub fn hang_up(&mut self) {
        if let Some(talk) = self.talk.take() {
            self.sent_bytes += talk.wire().sent_bytes();
        }
    }

    /// Bytes that were sent since this was asked last.
    pub fn sent_bytes(&mut self) -> u64 {
        let open = self.talk.as_ref().map_or(0, |talk| talk.wire().sent_bytes());
        let all = self.sent_bytes + open;
        all - std::mem::replace(&mut self.told_bytes, all)
    }
}

fn taken_over(peer: &Peer) -> Failure {
    let name = &peer.name;
    Failure::new(
        ErrorKind::Forbidden,
        format!("what was sent to '{name}' was taken over there, and goes on there"),
        format!(
            "use it there; to send to it again all the same: offshoot peer invite there, offshoot peer add {name} here"
        ),
    )
}

/// What the peer answers to who calls; none: it has taken over.
fn introduce(talk: &mut Talk, hello: Hello, context: &Context) -> Result<Option<Welcome>, Error> {
    talk.say(&Message::Hello(hello))?;
    match talk.hear(&mut || go_on(context))? {
        Message::Welcome(welcome) => Ok(Some(welcome)),
        Message::TakenOver => Ok(None),
        other => Err(Error::Confused(format!("{other:?}"))),
    }
}

/// Why it did not go on.
enum Broken {
    /// Another connection may do better.
    Connection(Failure),
    /// It will not.
    Final(Failure),
}

impl Broken {
    fn of_failure(failure: Failure) -> Broken {
        // The peer holds it for somebody, or does not answer: both pass.
        match failure.code {
            ErrorKind::EngineUnreachable | ErrorKind::Busy => Broken::Connection(failure),
            _ => Broken::Final(failure),
        }
    }
}

/// Counts what all ways together send, and keeps it to a limit.
struct Pace {
    bytes_per_second_max: Option<u64>,
    since: OnceLock<Duration>,
    /// Bytes of blocks that were sent.
    bytes: AtomicU64,
    /// Those of which it is known that they are to be sent, of the objects that were begun.
    expected: AtomicU64,
}

impl Pace {
    /// So much was sent; how much that makes in all.
    fn passed(&self, bytes: u64) -> u64 {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Of an object that many are expected, instead of as many.
    fn expect(&self, before: u64, now: u64) {
        self.expected.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// How many are expected in all, where so many were sent; 0: that is not known.
    fn expected(&self, bytes: u64) -> u64 {
        match self.expected.load(Ordering::Relaxed) {
            0 => 0,
            expected => expected.max(bytes),
        }
    }

    fn keep(&self, context: &Context, bytes: u64) -> Result<(), Error> {
        let Some(most) = self.bytes_per_second_max.filter(|most| *most > 0) else { return Ok(()) };
        let now = context.clock().elapsed();
        let since = *self.since.get_or_init(|| now);
        let due = Duration::from_secs_f64(bytes as f64 / most as f64);
        let ahead = (since + due).saturating_sub(now);
        if ahead < Duration::from_millis(5) { Ok(()) } else { rest(context, ahead) }
    }
}

/// Waits, unless the job is cancelled meanwhile.
fn rest(context: &Context, pause: Duration) -> Result<(), Error> {
    let mut left = pause;
    while !left.is_zero() {
        go_on(context)?;
        let now = left.min(LOOK);
        context.clock().sleep(now);
        left -= now;
    }
    Ok(())
}
