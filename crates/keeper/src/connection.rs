//! An engine's connection to its keeper.

use crate::protocol::{DONE, DROP, ENGINE, HELD, HOLD, LIST, MESSAGE_LEN, message, parse};
use offshoot_os::descriptors;
use offshoot_os::process::{Sink, Spec, User};
use offshoot_os::{Clock, SystemClock};
use parking_lot::Mutex;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer, or starting a keeper, may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What the keeper holds under one number.
#[derive(Debug)]
pub struct Held {
    /// The number.
    pub key: u64,
    /// The descriptors, in the order in which they were given.
    pub descriptors: Vec<OwnedFd>,
}

/// An engine's connection to its keeper.
#[derive(Debug)]
pub struct Keeper {
    stream: Mutex<UnixStream>,
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

impl Keeper {
    /// The keeper that answers at a socket.
    ///
    /// # Errors
    /// If there is none, or it belongs to another user.
    pub fn connect(socket: &Path) -> io::Result<Keeper> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        if descriptors::peer(&stream)?.uid != User::own_uid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Keeper { stream: Mutex::new(stream) })
    }

    /// Starts a keeper: `command` runs [`keep`](crate::keep) on this socket. It outlives this process.
    ///
    /// # Errors
    /// If it did not answer in time.
    pub fn start(command: Spec, socket: &Path, log: &Path) -> io::Result<Keeper> {
        let spec = command.new_session(true).cwd("/").stderr(Sink::File(log.to_owned()));
        let mut child = spec.spawn().map_err(io::Error::other)?;
        let deadline = SystemClock.elapsed() + ANSWER_TIMEOUT;
        loop {
            match Keeper::connect(socket) {
                // A client that asks what is held is an engine; the keeper waits only a while for
                // one.
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

    /// Makes it hold one to four descriptors under a number, replacing what it held there.
    ///
    /// # Errors
    /// The connection's; `InvalidInput` for another count of descriptors.
    pub fn hold(&self, key: u64, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        if fds.is_empty() || fds.len() > descriptors::DESCRIPTORS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "one to four descriptors"));
        }
        self.ask(HOLD, key, fds).map(drop)
    }

    /// Makes it close what it holds under a number.
    ///
    /// # Errors
    /// The connection's.
    pub fn drop_held(&self, key: u64) -> io::Result<()> {
        self.ask(DROP, key, &[]).map(drop)
    }

    /// What it holds; it keeps holding it.
    ///
    /// # Errors
    /// The connection's.
    pub fn list(&self) -> io::Result<Vec<Held>> {
        let stream = self.stream.lock();
        descriptors::send(&stream, &message(LIST, 0), &[])?;
        let mut held = Vec::new();
        loop {
            let (what, key, descriptors) = receive(&stream)?;
            match what {
                DONE => return Ok(held),
                HELD if !descriptors.is_empty() => held.push(Held { key, descriptors }),
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

    /// Releases a keeper that holds nothing, and waits until it has ended.
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
