//! What is under way in a session, as far as the messages that pass by tell.
//!
//! A session is *quiet* when the server owes no answer, no transaction is open, and no message has passed in part. Each
//! `Query`, `Sync` and `FunctionCall` makes the server say `ReadyForQuery` once, in order, with one exception: a `Sync`
//! that the server reads while it expects the data of a COPY is skipped. When in doubt a session is not quiet: then it is
//! ended instead of parked, which costs its client a new connection, but never an answer.

use crate::customs::Customs;
use crate::frames::Frames;
use crate::messages::parameter;
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// Most requests that may be under way before a session is no longer followed.
const PENDING_MAX: usize = 4096;
/// Most parameters of a server that are remembered, each name and value of at most so many bytes.
const PARAMETERS_MAX: usize = 64;
const PARAMETER_BYTES_MAX: usize = 1024;

/// What a server told its client about itself by ParameterStatus.
pub(crate) type Parameters = BTreeMap<Vec<u8>, Vec<u8>>;

/// Remembers a ParameterStatus.
pub(crate) fn remember(parameters: &mut Parameters, body: &[u8]) {
    if let Some((name, value)) = parameter(body)
        && name.len().max(value.len()) <= PARAMETER_BYTES_MAX
        && (parameters.len() < PARAMETERS_MAX || parameters.contains_key(name))
    {
        parameters.insert(name.to_vec(), value.to_vec());
    }
}

/// Both directions of a session after its login.
#[derive(Debug)]
pub(crate) struct Conversation {
    up: Frames,
    down: Frames,
    /// Of the last ReadyForQuery.
    status: u8,
    /// What was sent and is not answered: `Q`, `S`, `F`, and the ends of COPY data as `c`.
    pending: VecDeque<u8>,
    /// Too much was under way to be followed.
    lost: bool,
    /// Messages of the extended protocol were sent that no Sync followed.
    unsynced: bool,
    /// An unnamed statement was prepared and not yet executed: it would not survive.
    prepared: bool,
    /// The server reads the data of a COPY.
    copying: bool,
    /// Nothing has passed to the server since the login.
    untouched: bool,
    /// What the client knows.
    pub(crate) told: Parameters,
    /// Settings that the client made up.
    pub(crate) customs: Customs,
}

impl Conversation {
    /// A session whose server has just said ReadyForQuery for the first time.
    pub(crate) fn new(told: Parameters) -> Self {
        Conversation {
            up: Frames::new(b"PQ"),
            down: Frames::new(b"ZS"),
            status: b'I',
            pending: VecDeque::new(),
            lost: false,
            unsynced: false,
            prepared: false,
            copying: false,
            untouched: true,
            told,
            customs: Customs::default(),
        }
    }

    /// Whether nothing is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.status == b'I'
            && !self.owes()
            && !(self.lost || self.unsynced || self.copying)
            && self.up.at_boundary()
            && self.down.at_boundary()
    }

    /// Whether it is quiet, and the client is not about to use what would be lost.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_quiet() && !self.prepared
    }

    /// Whether the server was sent nothing since its client logged in, not even in part.
    pub(crate) fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// The session was given what another one had, or something was sent in it.
    pub(crate) fn touch(&mut self) {
        self.untouched = false;
    }

    /// Whether the server's last message is whole, so that another may follow it.
    pub(crate) fn is_whole_down(&self) -> bool {
        self.down.at_boundary()
    }

    /// Whether the client's last message is whole.
    pub(crate) fn is_whole_up(&self) -> bool {
        self.up.at_boundary()
    }

    /// How many of the client's bytes may pass on now. While the session is brought to rest, that is what belongs to
    /// requests that have begun.
    ///
    /// # Errors
    /// `InvalidData` if they are not the protocol.
    pub(crate) fn pass_up(&mut self, bytes: &[u8], resting: bool) -> io::Result<usize> {
        let mut passed = 0;
        while passed < bytes.len() && !(resting && self.up.at_boundary() && self.may_wait()) {
            let step = self.up.step(&bytes[passed..])?;
            passed += step.used;
            self.touch();
            if let Some(tag) = step.began {
                self.sent(tag);
            }
            if let (Some(tag), Some(body)) = (step.ended, self.up.kept()) {
                self.prepared |= tag == b'P' && body.first() == Some(&0);
                self.customs.note(body);
            }
        }
        Ok(passed)
    }

    /// Takes note of what the server sent.
    ///
    /// # Errors
    /// `InvalidData` if it is not the protocol.
    pub(crate) fn pass_down(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let step = self.down.step(bytes)?;
            bytes = &bytes[step.used..];
            if let Some(tag) = step.ended {
                self.received(tag);
            }
        }
        Ok(())
    }

    /// Whether the client's next message begins something new, and can wait until what is under way is answered.
    fn may_wait(&self) -> bool {
        let under_way = self.unsynced || self.copying || self.prepared;
        !under_way && (self.owes() || self.status == b'I')
    }

    fn owes(&self) -> bool {
        self.pending.iter().any(|kind| *kind != b'c')
    }

    fn sent(&mut self, tag: u8) {
        match tag {
            b'Q' | b'F' => {
                self.prepared = false;
                self.note(tag);
            }
            b'S' => {
                self.unsynced = false;
                // The server skips one that it reads among the data of a COPY.
                if !self.copying {
                    self.note(tag);
                }
            }
            b'c' | b'f' => {
                if !std::mem::take(&mut self.copying) {
                    self.note(b'c');
                }
            }
            b'd' | b'H' | b'X' => {}
            _ => {
                self.unsynced = true;
                if tag == b'E' {
                    self.prepared = false;
                }
            }
        }
    }

    fn note(&mut self, kind: u8) {
        if self.pending.len() < PENDING_MAX {
            self.pending.push_back(kind);
        } else {
            self.lost = true;
        }
    }

    fn received(&mut self, tag: u8) {
        match tag {
            b'Z' => self.answered(),
            b'S' => {
                if let Some(body) = self.down.kept() {
                    remember(&mut self.told, body);
                }
            }
            b'G' => self.copy_begins(),
            // An error ends a COPY; the data that is still sent is skipped.
            b'E' => self.copying = false,
            // Of replication: never at rest.
            b'W' => self.lost = true,
            _ => {}
        }
    }

    fn answered(&mut self) {
        if let Some([status]) = self.down.kept() {
            self.status = *status;
        }
        self.copying = false;
        while self.pending.pop_front() == Some(b'c') {}
    }

    /// The server reads on for the data of a COPY. Whatever the client sent after the request belongs to the COPY, up to
    /// the end of its data.
    fn copy_begins(&mut self) {
        let first = usize::from(self.pending.front() == Some(&b'Q'));
        while let Some(kind) = self.pending.remove(first) {
            if kind == b'c' {
                return;
            }
        }
        self.copying = true;
    }
}

#[cfg(test)]
mod tests;
