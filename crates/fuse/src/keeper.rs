//! The keeper: a small process that holds what must outlive an engine.
//!
//! A mount ends when nobody holds its connection to the kernel any more. So a process that does next
//! to nothing, and therefore does not die, holds the connections of an engine's mounts and the
//! volatile logs of their datasets. The next engine asks for them.
//!
//! ```text
//! message   0 4 what     request: HOLD key (2 descriptors) · DROP key · LIST · ENGINE
//!           4 4 version  answer:  DONE · HELD key (2 descriptors), for LIST, DONE at its end ·
//!           8 8 key               DONE with the engine's pid as key, for ENGINE
//! ```
//! An engine is who has sent HOLD or LIST. Without an engine the keeper ends at once when it holds
//! nothing, else after [`PATIENCE`]: the programs that wait get errors then.

mod process;

pub use process::keep;

use offshoot_os::descriptors;
use offshoot_os::process::{Sink, Spec};
use offshoot_os::{Clock, SystemClock};
use parking_lot::Mutex;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long programs wait for an engine before the keeper gives up.
pub const PATIENCE: Duration = Duration::from_secs(600);

const VERSION: u32 = 1;
const MESSAGE_LEN: usize = 16;
/// How long an answer, or a keeper that is being started, may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

const HOLD: u32 = 1;
const DROP: u32 = 2;
const LIST: u32 = 3;
const ENGINE: u32 = 4;
const DONE: u32 = 16;
const HELD: u32 = 17;

/// A mount that the keeper holds.
#[derive(Debug)]
pub struct Held {
    /// What the engine knows it by: the dataset's number.
    pub key: u64,
    /// The connection to the kernel.
    pub device: OwnedFd,
    /// The memory of the dataset's volatile log.
    pub memory: OwnedFd,
}

/// An engine's connection to its keeper.
#[derive(Debug)]
pub struct Keeper {
    stream: Mutex<UnixStream>,
}

fn message(what: u32, key: u64) -> [u8; MESSAGE_LEN] {
    let mut bytes = [0; MESSAGE_LEN];
    bytes[..4].copy_from_slice(&what.to_ne_bytes());
    bytes[4..8].copy_from_slice(&VERSION.to_ne_bytes());
    bytes[8..].copy_from_slice(&key.to_ne_bytes());
    bytes
}

/// What, and the key; nothing for a message of another version.
fn parse(bytes: &[u8; MESSAGE_LEN]) -> Option<(u32, u64)> {
    let word =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let mut key = [0; 8];
    key.copy_from_slice(&bytes[8..]);
    (word(4) == VERSION).then(|| (word(0), u64::from_ne_bytes(key)))
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

impl Keeper {
    /// The keeper that answers at a socket.
    ///
    /// # Errors
    /// That there is none, or one that belongs to another user.
    pub fn connect(socket: &Path) -> io::Result<Keeper> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        if descriptors::peer(&stream)?.uid != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Keeper { stream: Mutex::new(stream) })
    }

    /// Starts a keeper: `command` runs [`keep`] on this socket. It outlives this process.
    ///
    /// # Errors
    /// That it did not answer in time.
    pub fn start(command: Spec, socket: &Path, log: &Path) -> io::Result<Keeper> {
        let spec = command.new_session(true).cwd("/").stderr(Sink::File(log.to_owned()));
        let mut child = spec.spawn().map_err(io::Error::other)?;
        let deadline = SystemClock.elapsed() + ANSWER_TIMEOUT;
        loop {
            match Keeper::connect(socket) {
                // Who asks what is held is an engine: the keeper waits for one for a while only.
                Ok(keeper) => return keeper.list().map(|_| keeper),
                Err(error) => {
                    let ended = !matches!(child.try_wait(), Ok(None));
                    if ended || SystemClock.elapsed() >= deadline {
                        return Err(error);
                    }
                }
            }
            SystemClock.sleep(Duration::from_millis(5));
        }
    }

    /// Has it hold a mount from now on.
    ///
    /// # Errors
    /// The connection's.
    pub fn hold(&self, key: u64, device: BorrowedFd<'_>, memory: BorrowedFd<'_>) -> io::Result<()> {
        self.ask(HOLD, key, &[device, memory]).map(drop)
    }

    /// Has it close its descriptors of a mount.
    ///
    /// # Errors
    /// The connection's.
    pub fn drop_held(&self, key: u64) -> io::Result<()> {
        self.ask(DROP, key, &[]).map(drop)
    }

    /// What it holds; it goes on holding it.
    ///
    /// # Errors
    /// The connection's.
    pub fn list(&self) -> io::Result<Vec<Held>> {
        let stream = self.stream.lock();
        descriptors::send(&stream, &message(LIST, 0), &[])?;
        let mut held = Vec::new();
        loop {
            let (what, key, mut fds) = receive(&stream)?;
            match (what, fds.pop(), fds.pop()) {
                (DONE, ..) => return Ok(held),
                (HELD, Some(memory), Some(device)) => held.push(Held { key, device, memory }),
                _ => return Err(invalid("the keeper answers something else")),
            }
        }
    }

    /// The process of the engine that uses it, where there is one.
    ///
    /// # Errors
    /// The connection's.
    pub fn engine(&self) -> io::Result<Option<i32>> {
        let pid = self.ask(ENGINE, 0, &[])?;
        Ok(i32::try_from(pid).ok().filter(|pid| *pid > 0))
    }

    /// Lets go of a keeper that holds nothing and waits until it has ended.
    pub fn end(self, socket: &Path) {
        drop(self);
        let deadline = SystemClock.elapsed() + ANSWER_TIMEOUT;
        while socket.exists() && !remove_deserted(socket) && SystemClock.elapsed() < deadline {
            SystemClock.sleep(Duration::from_millis(2));
        }
    }

    /// Whether it still answers.
    pub fn alive(&self) -> bool {
        self.ask(ENGINE, 0, &[]).is_ok()
    }

    fn ask(&self, what: u32, key: u64, fds: &[BorrowedFd<'_>]) -> io::Result<u64> {
        let stream = self.stream.lock();
        descriptors::send(&stream, &message(what, key), fds)?;
        match receive(&stream)? {
            (DONE, key, _) => Ok(key),
            _ => Err(invalid("the keeper answers something else")),
        }
    }
}

/// Removes the socket of a keeper that was killed: nobody listens. Whether it is gone.
pub fn remove_deserted(socket: &Path) -> bool {
    let answer = UnixStream::connect(socket);
    answer.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        && std::fs::remove_file(socket).is_ok()
}

fn receive(stream: &UnixStream) -> io::Result<(u32, u64, Vec<OwnedFd>)> {
    let mut bytes = [0; MESSAGE_LEN];
    let fds = descriptors::receive(stream, &mut bytes)?;
    let fds = fds.ok_or(io::ErrorKind::UnexpectedEof)?;
    let (what, key) = parse(&bytes).ok_or_else(|| invalid("a keeper of another version"))?;
    Ok((what, key, fds))
}

#[cfg(test)]
mod tests;
