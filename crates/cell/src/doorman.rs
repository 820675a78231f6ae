//! Lets a cell connect to the few ports of other hosts that its VDB may reach.
//!
//! Landlock refuses every connection from the cell, since it knows no addresses. A process beside the server, the
//! *doorman*, is asked by the kernel about each `connect` (`seccomp_unotify(2)`). It copies the address, and if that may
//! be reached, connects the caller's own socket *itself*, to the address that it has copied: what the caller's memory
//! says meanwhile does not matter. Should it end, nothing is reached any more.

use crate::rights;
use crate::spec::CellUser;
use offshoot_os::descriptors;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Connections that are being made at a time.
const CONNECTING_MAX: usize = 64;
/// The longest address of IPv4 or IPv6: `sockaddr_in6`.
const ADDRESS_BYTES: usize = 28;

/// The way to a doorman who waits for the server's system calls.
pub(crate) struct Doorman {
    socket: UnixStream,
}

/// Starts a doorman, in the cell but without its rules; none if nothing may be reached. It MUST be started before the
/// rules hold: what holds for the server would hold for it.
pub(crate) fn start(
    reaches: &[SocketAddr],
    user: Option<&CellUser>,
) -> io::Result<Option<Doorman>> {
    if reaches.is_empty() {
        return Ok(None);
    }
    let (socket, its) = UnixStream::pair()?;
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(socket);
            be_orphan();
            let served = rights::keep_tracing(user).and_then(|()| serve(&its, reaches));
            // SAFETY: ends this process without what its parent has set up.
            unsafe { libc::_exit(i32::from(served.is_err())) }
        }
        child => {
            // SAFETY: reaps the process between this one and the doorman.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Ok(Some(Doorman { socket }))
        }
    }
}

/// The server knows its own children, and would wonder about one more.
fn be_orphan() {
    // SAFETY: this process has one thread; the parent of the new one ends.
    unsafe {
        if libc::fork() != 0 {
            libc::_exit(0);
        }
    }
}

impl Doorman {
    /// From here on the kernel asks the doorman about each `connect` of this process and of what it starts.
    pub(crate) fn watch(&self) -> io::Result<()> {
        let listener = ask_about(libc::SYS_connect)?;
        descriptors::send(&self.socket, b"d", &[listener.as_fd()])
    }
}

/// A filter for one system call that asks whoever has the descriptor.
fn ask_about(call: i64) -> io::Result<OwnedFd> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    // Calls of other architectures have been refused by then.
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter is valid; the kernel copies it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &filter,
        )
    };
    // SAFETY: a descriptor that nobody else has.
    if fd < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }
}

/// Answers until nobody is left who could ask.
fn serve(socket: &UnixStream, reaches: &[SocketAddr]) -> io::Result<()> {
    let mut byte = [0];
    let listener = descriptors::receive(socket, &mut byte)?.and_then(|mut fds| fds.pop());
    let listener = Arc::new(listener.ok_or(io::ErrorKind::UnexpectedEof)?);
    let reaches: Arc<[SocketAddr]> = reaches.into();
    let connecting = Arc::new(AtomicUsize::new(0));
    while let Some(asked) = next(&listener)? {
        if connecting.fetch_add(1, Ordering::Relaxed) >= CONNECTING_MAX {
            connecting.fetch_sub(1, Ordering::Relaxed);
            answer(&listener, asked.id, Answer::Error(libc::EAGAIN));
            continue;
        }
        let reaches = reaches.clone();
        let id = asked.id;
        let decided = {
            let (listener, connecting) = (listener.clone(), connecting.clone());
            std::thread::Builder::new().spawn(move || {
                let decided = decide(&listener, &asked, &reaches);
                answer(&listener, id, decided);
                connecting.fetch_sub(1, Ordering::Relaxed);
            })
        };
        if decided.is_err() {
            answer(&listener, id, Answer::Error(libc::EAGAIN));
            connecting.fetch_sub(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// The next call; none when all that could call have ended.
fn next(listener: &OwnedFd) -> io::Result<Option<libc::seccomp_notif>> {
    loop {
        let mut poll = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid structure.
        let ready = unsafe { libc::poll(&mut poll, 1, -1) };
        if ready > 0 && poll.revents & libc::POLLIN == 0 {
            return Ok(None);
        }
        // SAFETY: all zero is valid, and what the kernel wants.
        let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: a structure of the size that the request says.
        let got = unsafe {
            libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &mut asked)
        };
        if got == 0 {
            return Ok(Some(asked));
        }
        match io::Error::last_os_error() {
            // The caller was killed meanwhile.
            error if error.raw_os_error() == Some(libc::ENOENT) => {}
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
}

enum Answer {
    /// The kernel goes on with the call, under the rules of the cell.
    AsAnyOther,
    Connected,
    Error(i32),
}

fn answer(listener: &OwnedFd, id: u64, answer: Answer) {
    let (error, flags) = match answer {
        Answer::AsAnyOther => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Answer::Connected => (0, 0),
        Answer::Error(error) => (-error, 0),
    };
    let response = libc::seccomp_notif_resp { id, val: 0, error, flags };
    // SAFETY: a structure of the size that the request says. A caller that has ended waits for no answer.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &response) };
}

fn decide(listener: &OwnedFd, asked: &libc::seccomp_notif, reaches: &[SocketAddr]) -> Answer {
    let [fd, address, length, ..] = asked.data.args;
    let outcome = (|| {
        let bytes = read_memory(asked.pid, address, (length as usize).min(ADDRESS_BYTES))?;
        let family = bytes.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes));
        if !matches!(family.map(i32::from), Some(libc::AF_INET | libc::AF_INET6)) {
            return Ok(Answer::AsAnyOther);
        }
        let wanted = socket_address(&bytes).ok_or(io::ErrorKind::InvalidInput)?;
        if !reaches.iter().any(|one| is_same(one, &wanted)) {
            return Ok(Answer::Error(libc::EACCES));
        }
        let socket = socket_of(asked.pid, fd as i32)?;
        check_waits(listener, asked.id)?;
        connect(&socket, &bytes).map(|()| Answer::Connected)
    })();
    outcome.unwrap_or_else(|error: io::Error| {
        Answer::Error(error.raw_os_error().unwrap_or(libc::EACCES))
    })
}

fn read_memory(pid: u32, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0_u8; length];
    let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    let theirs = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
    // SAFETY: writes at most `length` bytes into `bytes`; the other address is in the other process.
    let read = unsafe { libc::process_vm_readv(pid as i32, &ours, 1, &theirs, 1, 0) };
    if read < 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(read as usize);
    Ok(bytes)
}

/// `sockaddr_in` and `sockaddr_in6` (`ip(7)`, `ipv6(7)`).
fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let ip = match i32::from(family) {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?)),
        libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

fn is_same(one: &SocketAddr, wanted: &SocketAddr) -> bool {
    one.port() == wanted.port() && one.ip().to_canonical() == wanted.ip().to_canonical()
}

/// The caller's socket, shared with it. Only TCP: another protocol would take the address for something else.
fn socket_of(pid: u32, fd: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid as i32).ok_or(io::ErrorKind::NotFound)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let socket = pidfd_getfd(process, fd, PidfdGetfdFlags::empty())?;
    let protocol = rustix::net::sockopt::socket_protocol(&socket)?;
    match protocol == Some(rustix::net::ipproto::TCP) {
        true => Ok(socket),
        false => Err(io::Error::from_raw_os_error(libc::EACCES)),
    }
}

/// The caller may have been killed, and its number given to another process.
fn check_waits(listener: &OwnedFd, id: u64) -> io::Result<()> {
    // SAFETY: a number, as the request says.
    let valid =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &id) };
    if valid == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// As the caller would: it waits where the socket does.
fn connect(socket: &OwnedFd, address: &[u8]) -> io::Result<()> {
    let length = address.len() as libc::socklen_t;
    // SAFETY: an address of that length.
    let done = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;
