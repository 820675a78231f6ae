//! Unix sockets at a path: the mode of the file says who may connect, and each end knows who the other is
//! ([`descriptors::peer`](crate::descriptors::peer)).
//!
//! Paths may be longer than the 107 bytes of an address: the directory is opened, and the address names it by its
//! descriptor.

use rustix::fs::{AtFlags, Gid, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// A listening socket, and the file that names it.
#[derive(Debug)]
pub struct LocalListener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file.
    identity: (u64, u64),
}

impl LocalListener {
    /// Listens at a path with this mode and group, whatever the umask. What is there is replaced, in one step and only
    /// by a socket that has its mode: nobody connects before. The caller makes sure that what is there is nobody's.
    ///
    /// # Errors
    /// The system's; `InvalidInput` for a path without a name.
    pub fn bind(path: &Path, mode: u32, group: Option<u32>) -> io::Result<LocalListener> {
        let (directory, name) = open_parent(path)?;
        let beside = format!("{name}.new");
        match rustix::fs::unlinkat(&directory, &beside, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The file begins with this mode, less what the umask takes away.
        rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode))?;
        rustix::net::bind(&socket, &address(&directory, &beside)?)?;
        let identity = admit(&directory, &beside, mode, group)?;
        rustix::net::listen(&socket, BACKLOG)?;
        rustix::fs::renameat(&directory, &beside, &directory, &name)?;
        Ok(LocalListener { listener: socket.into(), path: path.to_owned(), identity })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The socket, which does not block; the file goes when the other part is dropped.
    ///
    /// # Errors
    /// The system's.
    pub fn socket(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

/// Removes the file, unless another one is in its place by now.
impl Drop for LocalListener {
    fn drop(&mut self) {
        let ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.identity);
        if ours {
            // A file that stays says "connection refused", as after a kill.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Connects to the socket at a path.
///
/// # Errors
/// The system's: `NotFound` without a file, `ConnectionRefused` if nobody listens, `PermissionDenied` by its mode.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let (directory, name) = open_parent(path)?;
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::net::connect(&socket, &address(&directory, &name)?)?;
    Ok(socket.into())
}

/// Sets owner's group and mode of a socket's file that was made a moment ago, and returns its identity.
fn admit(directory: &File, name: &str, mode: u32, group: Option<u32>) -> io::Result<(u64, u64)> {
    // Not by its name, where somebody may have put a link meanwhile.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file: OwnedFd = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let file = File::from(file);
    let found = file.metadata()?;
    if !found.file_type().is_socket() {
        return Err(io::Error::other("somebody replaced the socket"));
    }
    if let Some(group) = group {
        rustix::fs::chownat(&file, "", None, Some(Gid::from_raw(group)), AtFlags::EMPTY_PATH)?;
    }
    let by_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::set_permissions(by_descriptor, Permissions::from_mode(mode))?;
    Ok((found.dev(), found.ino()))
}

fn open_parent(path: &Path) -> io::Result<(File, String)> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "a socket's path has no name");
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(no_name)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory =
        rustix::fs::open(parent.unwrap_or_else(|| Path::new(".")), flags, Mode::empty())?;
    Ok((directory.into(), name.to_owned()))
}

fn address(directory: &File, name: &str) -> io::Result<SocketAddrUnix> {
    let path = format!("/proc/self/fd/{}/{name}", directory.as_raw_fd());
    Ok(SocketAddrUnix::new(path)?)
}

#[cfg(test)]
mod tests;
