//! Opens a connection to the kernel and mounts it: as root by itself, otherwise through `fusermount3`.
//!
//! Not left to fuser, which mounts and answers the kernel's first request in one step: see [`crate::handshake`].

use crate::mount_table;
use crate::options::MountOptions;
use offshoot_os::descriptors;
use offshoot_os::process::{Spec, User, run};
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Mounts on a directory. The kernel's first request waits to be read from what is returned, and every program that
/// looks at the directory until that is answered.
pub(crate) fn attach(path: &Path, options: &MountOptions) -> io::Result<OwnedFd> {
    match mount_directly(path, options) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => mount_by_helper(path, options),
        other => other,
    }
}

/// What the kernel and `fusermount3` call the same. Modes of files hold for every user.
fn common(options: &MountOptions) -> Vec<&'static str> {
    let others = options.allow_other.then_some("allow_other");
    ["default_permissions"].into_iter().chain(others).collect()
}

fn source(options: &MountOptions) -> String {
    mount_table::source(options.owner.map(|owner| owner.shown))
}

fn mount_directly(path: &Path, options: &MountOptions) -> io::Result<OwnedFd> {
    let device: OwnedFd = OpenOptions::new().read(true).write(true).open("/dev/fuse")?.into();
    let (uid, gid) = User::own_ids();
    // The root is a directory.
    let data = format!(
        "fd={},rootmode=40000,user_id={uid},group_id={gid},{}",
        device.as_raw_fd(),
        common(options).join(",")
    );
    let mut flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOATIME;
    flags.set(MountFlags::RDONLY, options.read_only);
    mount(source(options), path, c"fuse", flags, CString::new(data)?.as_c_str())?;
    Ok(device)
}

/// It opens the device itself, mounts it and passes it on through a socket, which it finds by the number in a variable.
fn mount_by_helper(path: &Path, options: &MountOptions) -> io::Result<OwnedFd> {
    let (own, other) = UnixStream::pair()?;
    let access = if options.read_only { "ro" } else { "rw" };
    let words =
        format!("fsname={},noatime,{access},{}", source(options), common(options).join(","));
    let spec = Spec::new("fusermount3").arg("-o").arg(words).arg("--").arg(path);
    let spec = spec.env("LC_ALL", "C").env("_FUSE_COMMFD", "0").stdin_fd(other.into());
    let output = run(&spec, mount_table::FUSERMOUNT_TIMEOUT).map_err(io::Error::other)?;
    // Ours would keep the socket open.
    drop(spec);
    if !output.success() {
        return Err(io::Error::other(output.stderr_text()));
    }
    let received = descriptors::receive(&own, &mut [0])?;
    let device = received.and_then(|mut fds| fds.pop());
    device.ok_or_else(|| io::Error::other("fusermount3 did not pass its device on"))
}
