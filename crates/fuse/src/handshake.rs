//! Begins sessions with the kernel: on a new connection, and on one that an earlier engine opened.
//!
//! `fuser` begins every session with the kernel's first request, INIT, which says what both sides can do. Here it gets
//! a socket with such a request, and answers there; then the descriptor number of that socket is made to refer to the
//! device.
//! - On a new connection it is the kernel's own, and the kernel gets the answer, with one change: reads may be larger
//!   than writes ([`READ_MAX`]), which fuser cannot say.
//! - A connection that an earlier engine opened stays as long as anybody holds its descriptor, and makes requests wait.
//!   What was negotiated then still holds: the request is one that we wrote, and the answer is dropped. We ask
//!   for requests again that the earlier engine read but did not answer (`FUSE_NOTIFY_RESEND`, Linux 6.9); they have a
//!   mark in their numbers.

use crate::adapter::{Adapter, READ_MAX};
use fuser::{Config, Session};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

const FUSE_INIT: u32 = 26;
const IN_HEADER_LEN: u32 = 40;
const INIT_LEN: u32 = 64;
/// The newest version of the protocol that changes nothing for the rest of it.
const VERSION: (u32, u32) = (7, 31);
const READ_AHEAD_MAX: u32 = 1 << 20;
/// `FUSE_NOTIFY_RESEND`, as an answer to no request.
const NOTIFY_RESEND: u32 = 7;
const OUT_HEADER_LEN: u32 = 16;
/// The kernel passes requests to nobody who could read less.
const REQUEST_LEN_MAX: usize = 64 << 10;
/// Longer than any answer to INIT.
const ANSWER_LEN_MAX: usize = 256;
/// Where `fuse_init_out` has `max_pages`, a `u16`, after the header.
const MAX_PAGES_AT: usize = OUT_HEADER_LEN as usize + 28;

/// A session on a connection whose first request nobody has read.
pub(crate) fn begin_session(
    adapter: Adapter,
    device: BorrowedFd<'_>,
    config: Config,
) -> io::Result<Session<Adapter>> {
    let mut request = vec![0; REQUEST_LEN_MAX];
    let len = loop {
        match rustix::io::read(device, &mut request) {
            // The request was withdrawn while it was read: there is another.
            Err(Errno::INTR | Errno::NOENT | Errno::AGAIN) => {}
            other => break other?,
        }
    };
    let major = request.get(IN_HEADER_LEN as usize..).and_then(|rest| rest.first_chunk());
    if major.map(|word| u32::from_ne_bytes(*word)) != Some(VERSION.0) {
        let message = "the kernel speaks another version of FUSE than 7";
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let (session, mut answer) = answered(adapter, device, &request[..len], config)?;
    if let Some(pages) = answer.get_mut(MAX_PAGES_AT..MAX_PAGES_AT + 2) {
        let most = READ_MAX as usize / rustix::param::page_size();
        pages.copy_from_slice(&(most as u16).to_ne_bytes());
    }
    rustix::io::write(device, &answer)?;
    Ok(session)
}

/// A session on a connection that is already initialised.
pub(crate) fn resume_session(
    adapter: Adapter,
    device: BorrowedFd<'_>,
    config: Config,
) -> io::Result<Session<Adapter>> {
    Ok(answered(adapter, device, &init(), config)?.0)
}

/// A session that has answered this INIT and now reads from the device; and its answer.
fn answered(
    adapter: Adapter,
    device: BorrowedFd<'_>,
    request: &[u8],
    config: Config,
) -> io::Result<(Session<Adapter>, Vec<u8>)> {
    // Datagrams: a read takes one request, as from the device.
    let (kernel, engine) = UnixDatagram::pair()?;
    kernel.send(request)?;
    let session = Session::from_fd(adapter, OwnedFd::from(engine), config.acl, config)?;
    let mut answer = vec![0; ANSWER_LEN_MAX];
    kernel.set_nonblocking(true)?;
    let len = kernel.recv(&mut answer)?;
    answer.truncate(len);
    offshoot_os::redirect(session.as_fd(), device)?;
    Ok((session, answer))
}

/// Makes the kernel resend everything that was read and not answered. Call it before anything is
/// read, or requests in progress would come twice.
pub(crate) fn ask_again(device: BorrowedFd<'_>) -> io::Result<()> {
    let mut message = Vec::with_capacity(OUT_HEADER_LEN as usize);
    message.extend_from_slice(&OUT_HEADER_LEN.to_ne_bytes());
    message.extend_from_slice(&NOTIFY_RESEND.to_ne_bytes());
    message.extend_from_slice(&0_u64.to_ne_bytes());
    rustix::io::write(device, &message)?;
    Ok(())
}

/// `fuse_in_header` and `fuse_init_in` with every flag set.
fn init() -> Vec<u8> {
    let mut message = Vec::new();
    let mut put = |word: u32| message.extend_from_slice(&word.to_ne_bytes());
    put(IN_HEADER_LEN + INIT_LEN);
    put(FUSE_INIT);
    // The number 1, no inode, user and process 0.
    [1, 0, 0, 0, 0, 0, 0, 0].into_iter().for_each(&mut put);
    [VERSION.0, VERSION.1, READ_AHEAD_MAX, u32::MAX, u32::MAX].into_iter().for_each(&mut put);
    message.resize((IN_HEADER_LEN + INIT_LEN) as usize, 0);
    message
}
