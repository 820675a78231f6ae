//! Ends a mount's connection to this process, wherever its file system is mounted.

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// What ends a connection. Opened while the file system is mounted here, it stands for that connection, also after another
/// one has got its number.
pub(crate) struct Connection(File);

impl Connection {
    /// That of the mount whose device has this minor number. None for an ordinary user without
    /// `/sys/fs/fuse/connections`, and where another user mounted.
    pub(crate) fn of(minor: u32) -> Option<Connection> {
        let control = format!("{minor}/abort");
        let path = format!("/sys/fs/fuse/connections/{control}");
        let file = OpenOptions::new().write(true).open(path).or_else(|_| open_unmounted(&control));
        file.ok().map(Connection)
    }

    /// Every request that waits, and every later one, fails. Returns whether the kernel accepted it; a connection that has
    /// ended stays as it is.
    pub(crate) fn abort(mut self) -> bool {
        self.0.write_all(b"1").is_ok()
    }
}

/// A control file where nobody has mounted them, as in containers: of a mount that shows nowhere. Needs root.
fn open_unmounted(control: &str) -> io::Result<File> {
    let context = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let controls = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(openat(&controls, control, flags, Mode::empty())?.into())
}
