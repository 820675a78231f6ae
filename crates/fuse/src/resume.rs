//! Resumes a connection to the kernel that an earlier engine opened.
//!
//! The kernel keeps a connection while anybody holds its descriptor, and makes requests wait. What it
//! negotiated with the first engine still holds: there is no second INIT. `fuser` begins every session
//! with one, so it gets a socket with an INIT that we wrote; then the descriptor number of that socket
//! is made to refer to the device.
//!
//! We ask for requests again that the earlier engine read but did not answer (`FUSE_NOTIFY_RESEND`,
//! Linux 6.9); they have a mark in their numbers.

use crate::adapter::Adapter;
use fuser::{Config, Session};
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

/// A session on a connection that is already initialised.
pub(crate) fn resume_session(
    adapter: Adapter,
    device: BorrowedFd<'_>,
    config: Config,
) -> io::Result<Session<Adapter>> {
    // Datagrams: a read takes one request, as from the device.
    let (kernel, engine) = UnixDatagram::pair()?;
    kernel.send(&init())?;
    let session = Session::from_fd(adapter, OwnedFd::from(engine), config.acl, config)?;
    offshoot_os::redirect(session.as_fd(), device)?;
    Ok(session)
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
