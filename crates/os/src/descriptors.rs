//! Passes descriptors from one process to another over a Unix socket.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Most descriptors of one message.
pub const DESCRIPTORS_MAX: usize = 4;

/// Who is at the other end of a Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its process.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
}

/// Waits until some of these can be read from without waiting, or have ended, but not longer than so; returns their
/// places.
///
/// # Errors
/// The system's.
pub fn wait_readable(fds: &[BorrowedFd<'_>], time: Duration) -> io::Result<Vec<usize>> {
    let mut waiting: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let time = Timespec::try_from(time).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut waiting, Some(&time)) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    let ready = waiting.iter().enumerate().filter(|(_, one)| !one.revents().is_empty());
    Ok(ready.map(|(place, _)| place).collect())
}

/// Sends a message of a fixed length with descriptors.
///
/// # Errors
/// The system's.
pub fn send(socket: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
    }
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives a message of exactly this length with its descriptors; `None` at the end of the stream.
///
/// # Errors
/// The system's; `UnexpectedEof` within a message.
pub fn receive(socket: &UnixStream, bytes: &mut [u8]) -> io::Result<Option<Vec<OwnedFd>>> {
    let (mut fds, mut done) = (Vec::new(), 0);
    while done < bytes.len() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes[done..])];
        let got = match recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?.bytes,
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        match got {
            0 if done == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => done += got,
        }
    }
    Ok(Some(fds))
}

/// Who is at the other end.
///
/// # Errors
/// The system's.
pub fn peer(socket: &UnixStream) -> io::Result<Peer> {
    let credentials = rustix::net::sockopt::socket_peercred(socket)?;
    Ok(Peer { pid: credentials.pid.as_raw_nonzero().get(), uid: credentials.uid.as_raw() })
}
