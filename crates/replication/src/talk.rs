//! Two engines by a connection. It is theirs alone and keeps what passes: TLS, in the product.
//!
//! ```text
//! sender                                   target
//!   hello (join: a secret)        ──▶
//!                                 ◀──      welcome
//!   offer: name, digest           ──▶
//!                                 ◀──      same, or send
//!   manifest, states …, offered   ──▶
//!                                 ◀──      want …            see `exchange`
//!   blocks …                      ──▶
//!                                 ◀──      taken
//!   hand_over                     ──▶                        where the target has said that it waits for it
//!                                 ◀──      taken_over
//! ```
//! Instead of any answer comes `refused`, with why; instead of `welcome` also `taken_over`, if it was before. A sender may
//! offer one object after another.

use crate::checkpoints::Checkpoints;
use crate::exchange::{CHECKPOINT_BYTES, Giver, Pace, Taker};
use crate::lacking::Estimate;
use crate::opening::Opening;
use crate::wire::{self, Frame, HEADER_LEN, Header, MANIFEST_MAX, MESSAGE_MAX, STATES_MAX};
use crate::{Error, Result};
use offshoot_dataset::{Becomes, Intake, PassingBlock, Received};
pub use offshoot_format::directory::TreeState;
use offshoot_types::Failure;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{ErrorKind, Read, Write};

/// The version of this talk. Another one is refused.
pub const VERSION: u32 = 1;
/// How long the other end may say nothing, in seconds, while it should.
const SILENT_SECONDS: u64 = 120;
/// How long it may take to say that it has what was sent: it checks all of it.
const WORKING_SECONDS: u64 = 3600;
/// Bytes that are collected before they are written.
const COLLECTED: usize = 128 << 10;
/// The most states of an object.
const ALL_STATES_MAX: usize = 1 << 20;
/// How a transfer is looked through before it comes: what is on its way then comes even if it is refused.
const LOOKING: Pace = Pace { window: 256, checkpoint_bytes: CHECKPOINT_BYTES };
/// How often a transfer begins again that lost what was here already.
const TAKEN_TIMES: usize = 5;

/// What carries bytes to the other engine and back. Reading and writing may return `WouldBlock` or `TimedOut` after
/// [`Wire::pause_ms`], as often as it likes, with nothing lost.
pub trait Wire: Read + Write + Send {
    /// How long reading and writing wait.
    fn pause_ms(&self) -> u64;
    /// Bytes that went into the network.
    fn sent_bytes(&self) -> u64;
    /// Bytes that came.
    fn received_bytes(&self) -> u64;
}

/// What engines say to each other besides manifests, states, wants and blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Message {
    /// The first one, of who calls.
    Hello(Hello),
    /// What a hello is answered with.
    Welcome(Welcome),
    /// What could be sent.
    Offer(Offer),
    /// The target has it.
    Same {
        /// As that of [`Welcome`].
        #[serde(default)]
        hand_over: bool,
    },
    /// The target wants to know what it is.
    Send {
        /// Whether something of it came before.
        resumed: bool,
    },
    /// All states were told.
    Offered,
    /// About so many bytes of blocks come for it, those included that came since the offer. Said or not.
    Lacking {
        /// As they are stored.
        bytes: u64,
    },
    /// All of it came, and is shown.
    Taken {
        /// As that of [`Welcome`].
        #[serde(default)]
        hand_over: bool,
    },
    /// The sender has stopped what it sends, and has sent the last of it: the target may take over.
    HandOver,
    /// It has. It takes nothing more.
    TakenOver,
    /// No.
    Refused {
        /// Why.
        failure: Failure,
    },
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// Of the talk.
    pub version: u32,
    /// The id of its pool.
    pub engine: String,
    /// Its release, for messages.
    pub release: String,
    /// Milliseconds since 1970, by its clock.
    pub clock_ms: i64,
    /// The secret of a code, of one that is not known yet.
    #[serde(default)]
    pub join: Option<String>,
    /// Of the certificate that it goes on with, if it is another one than the target knows.
    #[serde(default)]
    pub next_key: Option<String>,
    /// Which engines it knows, as records of its own: what is not understood is left out.
    #[serde(default)]
    pub known: Vec<serde_json::Value>,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Of the talk.
    pub version: u32,
    /// The id of its pool.
    pub engine: String,
    /// Its release.
    pub release: String,
    /// The namespace of the caller.
    pub name: String,
    /// Of the certificate that it goes on with, if it is another one than the caller knows.
    #[serde(default)]
    pub next_key: Option<String>,
    /// The `next_key` of the caller, which is known from now on.
    #[serde(default)]
    pub knows_key: Option<String>,
    /// As that of [`Hello`].
    #[serde(default)]
    pub known: Vec<serde_json::Value>,
    /// Whether the target waits for the sender to stop, so that it can take over.
    #[serde(default)]
    pub hand_over: bool,
}

/// What could be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name there.
    pub name: String,
    /// Its id there.
    pub origin: String,
    /// Of a copy that is sent on, the engine that it comes from; "there" is that one then, but for the name.
    #[serde(default)]
    pub engine: Option<String>,
    /// Of all that it is.
    pub digest: String,
    /// As of when.
    pub as_of: String,
    /// The password that goes with it: for its source, or of the VDB; empty if that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
}

/// A password on its way. It is not in what is printed for debugging.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// Asked again and again while nothing comes and after each block; an error ends the talk.
pub type Tick<'a> = &'a mut dyn FnMut(&Sent) -> Result<()>;

/// What has passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Blocks.
    pub blocks: u64,
    /// Their bytes as they are stored.
    pub stored_bytes: u64,
    /// Bytes of their content.
    pub raw_bytes: u64,
    /// Stored bytes that are expected in all; 0: that is not known.
    pub expected_bytes: u64,
}

/// One end of a connection.
pub struct Talk {
    wire: Box<dyn Wire>,
    out: Vec<u8>,
    hand_over: bool,
}

impl Talk {
    /// By a connection.
    pub fn new(wire: Box<dyn Wire>) -> Talk {
        Talk { wire, out: Vec::new(), hand_over: false }
    }

    /// Whether the target waited for the sender to stop when it last said something of that.
    pub fn hand_over(&self) -> bool {
        self.hand_over
    }

    /// The connection.
    pub fn wire(&self) -> &dyn Wire {
        self.wire.as_ref()
    }

    /// Says something.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn say(&mut self, message: &Message) -> Result<()> {
        let json = serde_json::to_vec(message).map_err(std::io::Error::from)?;
        self.put(&Frame::Message(json).encode(), &mut || Ok(()))?;
        self.flush(&mut || Ok(()))
    }

    /// Says why it ends; what the other end does with that does not matter any more.
    pub fn refuse(&mut self, failure: &Failure) {
        let _ = self.say(&Message::Refused { failure: failure.clone() });
    }

    /// What the other end says. `alive` is asked while nothing comes.
    ///
    /// # Errors
    /// `Refused` if it says no; `Confused` if it sends anything else; those of the connection and of `alive`.
    pub fn hear(&mut self, alive: &mut dyn FnMut() -> Result<()>) -> Result<Message> {
        match self.frame(SILENT_SECONDS, MESSAGE_MAX, alive)? {
            Frame::Message(json) => self.heard(&json),
            other => Err(unexpected(&other)),
        }
    }

    fn heard(&mut self, json: &[u8]) -> Result<Message> {
        let message = understood(json)?;
        if let Message::Welcome(Welcome { hand_over, .. })
        | Message::Same { hand_over }
        | Message::Taken { hand_over } = message
        {
            self.hand_over = hand_over;
        }
        Ok(message)
    }

    fn put(&mut self, bytes: &[u8], alive: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.out.extend_from_slice(bytes);
        if self.out.len() >= COLLECTED { self.flush(alive) } else { Ok(()) }
    }

    fn flush(&mut self, alive: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let (mut done, mut waited_ms) = (0, 0);
        while done < self.out.len() {
            match self.wire.write(&self.out[done..]) {
                Ok(0) => return Err(Error::HungUp),
                Ok(count) => (done, waited_ms) = (done + count, 0),
                Err(error) => self.wait(error, SILENT_SECONDS, &mut waited_ms, alive)?,
            }
        }
        self.out.clear();
        loop {
            match self.wire.flush() {
                Ok(()) => return Ok(()),
                Err(error) => self.wait(error, SILENT_SECONDS, &mut waited_ms, alive)?,
            }
        }
    }

    fn fill(
        &mut self,
        buffer: &mut [u8],
        seconds: u64,
        alive: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let (mut done, mut waited_ms) = (0, 0);
        while done < buffer.len() {
            match self.wire.read(&mut buffer[done..]) {
                Ok(0) => return Err(Error::HungUp),
                Ok(count) => (done, waited_ms) = (done + count, 0),
                Err(error) => self.wait(error, seconds, &mut waited_ms, alive)?,
            }
        }
        Ok(())
    }

    /// Whether to try again after an error.
    fn wait(
        &self,
        error: std::io::Error,
        seconds: u64,
        waited_ms: &mut u64,
        alive: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                *waited_ms += self.wire.pause_ms();
                if *waited_ms >= seconds * 1000 {
                    return Err(Error::Silent { seconds });
                }
                alive()
            }
            ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe => Err(Error::HungUp),
            _ => Err(error.into()),
        }
    }

    /// The next frame; a longer one than `longest` is not read.
    fn frame(
        &mut self,
        seconds: u64,
        longest: usize,
        alive: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Frame> {
        let mut bytes = [0; HEADER_LEN];
        self.fill(&mut bytes, seconds, alive)?;
        let header = Header::decode(&bytes).map_err(|error| Error::Confused(error.to_string()))?;
        if header.payload_len > longest {
            return Err(Error::Confused(format!("{} bytes at once", header.payload_len)));
        }
        let mut payload = Vec::new();
        let mut done = 0;
        // A length is believed only as far as bytes come.
        while done < header.payload_len {
            payload.resize(header.payload_len.min(done + COLLECTED), 0);
            self.fill(&mut payload[done..], SILENT_SECONDS, alive)?;
            done = payload.len();
        }
        header.frame(&bytes, payload).map_err(|error| Error::Confused(error.to_string()))
    }

    /// Sends what was offered, as far as the other end asks for it. Says what passed, once the other end has all of it.
    ///
    /// # Errors
    /// `NotOffered` if it asks for anything else; `Refused`; those of the connection, of reading and of `tick`.
    pub fn give(&mut self, manifest: &[u8], giver: &Giver, tick: Tick<'_>) -> Result<Sent> {
        let given = self.answer_wants(manifest, giver, tick);
        if let Err(error) = &given
            && !error.is_of_connection()
            && !matches!(error, Error::Refused(_))
        {
            self.refuse(&error.failure());
        }
        given
    }

    fn answer_wants(&mut self, manifest: &[u8], giver: &Giver, tick: Tick<'_>) -> Result<Sent> {
        let mut sent = Sent::default();
        self.put(&Frame::Manifest(manifest.to_vec()).encode(), &mut || tick(&sent))?;
        for some in giver.states().chunks(STATES_MAX) {
            self.put(&Frame::States(some.to_vec()).encode(), &mut || tick(&sent))?;
        }
        self.say(&Message::Offered)?;
        loop {
            match self.frame(WORKING_SECONDS, MESSAGE_MAX, &mut || tick(&sent))? {
                Frame::Want(want) => {
                    giver.answer(&want, &mut |block| {
                        sent.blocks += 1;
                        sent.stored_bytes += block.stored.len() as u64;
                        sent.raw_bytes += u64::from(block.raw_len);
                        self.put(&wire::encode_block(&block), &mut || tick(&sent))?;
                        tick(&sent)
                    })?;
                    self.flush(&mut || tick(&sent))?;
                }
                Frame::Message(json) => match self.heard(&json)? {
                    Message::Taken { .. } => return Ok(sent),
                    Message::Lacking { bytes } => {
                        sent.expected_bytes = bytes;
                        tick(&sent)?;
                    }
                    other => return Err(Error::Confused(format!("{other:?}"))),
                },
                other => return Err(unexpected(&other)),
            }
        }
    }

    /// What an offer is: the manifest, and the states.
    ///
    /// # Errors
    /// `Confused` if something else comes; those of the connection and of `alive`.
    pub fn offered(
        &mut self,
        alive: &mut dyn FnMut() -> Result<()>,
    ) -> Result<(Vec<u8>, Vec<TreeState>)> {
        let manifest = match self.frame(SILENT_SECONDS, MANIFEST_MAX, alive)? {
            Frame::Manifest(manifest) => manifest,
            Frame::Message(json) => {
                return Err(Error::Confused(format!("{:?}", understood(&json)?)));
            }
            other => return Err(unexpected(&other)),
        };
        let mut states = Vec::new();
        loop {
            match self.frame(SILENT_SECONDS, MANIFEST_MAX, alive)? {
                Frame::States(more) if states.len() + more.len() <= ALL_STATES_MAX => {
                    states.extend(more);
                }
                Frame::Message(json) => match understood(&json)? {
                    Message::Offered => return Ok((manifest, states)),
                    other => return Err(Error::Confused(format!("{other:?}"))),
                },
                other => return Err(unexpected(&other)),
            }
        }
    }

    /// How much is lacking of what was offered. Nodes come for that, and a few of the data blocks, which do not come again.
    /// Far more than `room` bytes are not looked through. The other end is told what it can expect.
    ///
    /// # Errors
    /// Those of the connection, of the store and of `tick`.
    pub fn estimate(
        &mut self,
        intake: &Intake,
        states: &[TreeState],
        room: u64,
        tick: Tick<'_>,
    ) -> Result<(Estimate, Sent)> {
        let mut sent = Sent::default();
        let mut taker = Taker::estimating(intake, states.to_vec(), LOOKING, room);
        let taken = self.take_all(&mut taker, &mut sent, tick);
        if taken.is_err() {
            intake.checkpoint()?;
        }
        taken?;
        let estimate = taker.estimate();
        if estimate.whole {
            self.say(&Message::Lacking { bytes: estimate.coming_bytes })?;
        }
        Ok((estimate, sent))
    }

    /// Takes in what was offered. What came before an error is durable.
    ///
    /// # Errors
    /// Those of the connection, of the store and of `tick`.
    pub fn pull(
        &mut self,
        intake: &Intake,
        states: &[TreeState],
        becomes: &[Becomes],
        tick: Tick<'_>,
    ) -> Result<(Vec<Received>, Sent)> {
        let mut sent = Sent::default();
        let pulled = self.pull_all(intake, states, becomes, &mut sent, tick);
        if pulled.is_err() {
            intake.checkpoint()?;
        }
        Ok((pulled?, sent))
    }

    fn pull_all(
        &mut self,
        intake: &Intake,
        states: &[TreeState],
        becomes: &[Becomes],
        sent: &mut Sent,
        tick: Tick<'_>,
    ) -> Result<Vec<Received>> {
        let mut times = 0;
        loop {
            let mut taker = Taker::new(intake, states.to_vec(), Pace::default());
            self.take_all(&mut taker, sent, tick)?;
            times += 1;
            match taker.finish(becomes) {
                // Somebody has deleted what was here.
                Err(Error::Store(offshoot_dataset::Error::Missing(_))) if times < TAKEN_TIMES => {}
                other => return other,
            }
        }
    }

    fn take_all(&mut self, taker: &mut Taker<'_>, sent: &mut Sent, tick: Tick<'_>) -> Result<()> {
        std::thread::scope(|scope| {
            let mut opening = Opening::new(scope);
            let mut checkpoints = Checkpoints::new(scope, taker.intake());
            let taken = self.take_each(taker, sent, &mut opening, &mut checkpoints, tick);
            if taken.is_err() {
                rescue(taker, &mut opening);
            }
            taken.and(checkpoints.end())
        })
    }

    fn take_each(
        &mut self,
        taker: &mut Taker<'_>,
        sent: &mut Sent,
        opening: &mut Opening<'_, '_>,
        checkpoints: &mut Checkpoints<'_, '_>,
        tick: Tick<'_>,
    ) -> Result<()> {
        loop {
            for want in taker.wants()? {
                self.put(&Frame::Want(want).encode(), &mut || tick(sent))?;
            }
            if taker.is_done() {
                return Ok(());
            }
            if taker.is_checkpoint_due() {
                checkpoints.begin()?;
            }
            if !self.out.is_empty() {
                self.flush(&mut || tick(sent))?;
            }
            let all_came = opening.pending() >= taker.asked();
            if !all_came {
                opening.add(self.block(&mut || tick(sent))?);
            }
            for opened in opening.take(all_came) {
                let opened = opened.ok_or(Error::Spoiled)?;
                if !taker.take(&opened)? {
                    return Err(Error::Spoiled);
                }
                let block = opened.block();
                sent.blocks += 1;
                sent.stored_bytes += block.stored.len() as u64;
                sent.raw_bytes += u64::from(block.raw_len);
                tick(sent)?;
            }
        }
    }

    fn block(&mut self, alive: &mut dyn FnMut() -> Result<()>) -> Result<PassingBlock> {
        match self.frame(SILENT_SECONDS, MESSAGE_MAX, alive)? {
            Frame::Block(block) => Ok(block),
            Frame::Message(json) => Err(Error::Confused(format!("{:?}", understood(&json)?))),
            other => Err(unexpected(&other)),
        }
    }
}

/// Takes what has come before it went wrong, so that it need not come again.
fn rescue(taker: &mut Taker<'_>, opening: &mut Opening<'_, '_>) {
    loop {
        let came = opening.take(true);
        let mut taken = || came.iter().flatten().try_for_each(|one| taker.take(one).map(drop));
        if came.is_empty() || taken().is_err() {
            return;
        }
    }
}

fn understood(json: &[u8]) -> Result<Message> {
    match serde_json::from_slice(json) {
        Ok(Message::Refused { failure }) => Err(Error::Refused(failure)),
        Ok(message) => Ok(message),
        Err(error) => Err(Error::Confused(error.to_string())),
    }
}

fn unexpected(frame: &Frame) -> Error {
    let what = match frame {
        Frame::Manifest(_) => "a manifest",
        Frame::States(_) => "states",
        Frame::Block(_) => "a block",
        Frame::End(_) => "an end",
        Frame::Want(_) => "a want",
        Frame::Message(_) => "a message",
    };
    Error::Confused(format!("{what} is where none belongs"))
}

#[cfg(test)]
mod tests;
