//! A root of its own, made of pieces of the host's.

use crate::spec::{CONFIGURATION, CellSpec, CellUser, DEVICES};
use offshoot_launcher::OWN_ACCOUNT;
use offshoot_os::process::SYSTEM_DIRS;
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, move_mount, open_tree, unmount,
};
use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

/// Where the new root is put together: a directory that every host has.
const BASE: &str = "/tmp";

/// A piece of the host's tree, taken off it.
struct Piece {
    tree: OwnedFd,
    /// Its place in the new root.
    place: PathBuf,
    is_dir: bool,
}

/// Builds the root and moves this process there. What is not put into it cannot be reached any more.
pub(crate) fn build(spec: &CellSpec) -> io::Result<()> {
    // Nothing of what follows shows outside.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let pieces = pieces(spec)?;
    let links = links()?;
    let base = Path::new(BASE);
    tmpfs(base, "mode=0755,size=4m")?;
    // First of all: what belongs to the server may be below one of them.
    for (place, options) in [("tmp", "mode=1777,size=256m"), ("dev/shm", "mode=1777")] {
        let place = base.join(place);
        make_dirs(&place)?;
        tmpfs(&place, options)?;
    }
    for piece in &pieces {
        let place = inside(base, &piece.place);
        match piece.is_dir {
            true => make_dirs(&place)?,
            false => make_file(&place, b"")?,
        }
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&piece.tree, "", CWD, &place, flags)?;
    }
    for (link, target) in links {
        symlink(target, inside(base, &link))?;
    }
    accounts(base, spec.user.as_ref())?;
    hosts(base, &spec.hosts)?;
    // The old root is stacked below the new one, and taken away from there.
    rustix::process::chdir(base)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    let root = open_tree(CWD, "/", OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    set_attributes(&root, libc::MOUNT_ATTR_RDONLY, false)
}

/// Where programs are, what they need, and what is the server's.
fn pieces(spec: &CellSpec) -> io::Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let hard = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    let read_only = hard | libc::MOUNT_ATTR_RDONLY;
    let system = SYSTEM_DIRS.iter().chain(&CONFIGURATION).map(Path::new);
    for path in system.chain(spec.read_only.iter().map(PathBuf::as_path)) {
        let is_system_link =
            SYSTEM_DIRS.iter().any(|one| Path::new(one) == path) && path.is_symlink();
        let below = |one: &&str| path != Path::new(one) && path.starts_with(one);
        if path.exists() && !is_system_link && !SYSTEM_DIRS.iter().any(below) {
            pieces.push(piece(path, read_only)?);
        }
    }
    for path in &spec.own {
        pieces.push(piece(path, hard)?);
    }
    for path in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
        pieces.push(piece(path, libc::MOUNT_ATTR_NOSUID)?);
    }
    Ok(pieces)
}

/// The system's directories that are links here, with where they lead.
fn links() -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let links = SYSTEM_DIRS.iter().map(Path::new).filter(|path| path.is_symlink());
    links.map(|path| Ok((path.to_owned(), std::fs::read_link(path)?))).collect()
}

fn piece(path: &Path, attributes: u64) -> io::Result<Piece> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let is_dir = std::fs::metadata(path).map_err(named)?.is_dir();
    let tree = open_tree(CWD, path, flags).map_err(|error| named(error.into()))?;
    set_attributes(&tree, attributes, true).map_err(named)?;
    Ok(Piece { tree, place: path.to_owned(), is_dir })
}

/// Adds attributes to a mount, and to all below it. None is ever taken away.
fn set_attributes(tree: &OwnedFd, attributes: u64, below: bool) -> io::Result<()> {
    // SAFETY: all zero is a valid `mount_attr`.
    let mut wanted: libc::mount_attr = unsafe { std::mem::zeroed() };
    wanted.attr_set = attributes;
    let flags = libc::AT_EMPTY_PATH | if below { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: a valid descriptor, an empty path, and a structure of the size that is said.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn tmpfs(place: &Path, options: &str) -> io::Result<()> {
    let options = CString::new(options).map_err(io::Error::other)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount("tmpfs", place, "tmpfs", flags, options.as_c_str())?)
}

/// The users that programs know: the server's own.
fn accounts(base: &Path, user: Option<&CellUser>) -> io::Result<()> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let ours = CellUser { name: OWN_ACCOUNT.to_owned(), uid, gid };
    let CellUser { name, uid, gid } = user.unwrap_or(&ours);
    let passwd = format!("root:x:0:0::/:/bin/false\n{name}:x:{uid}:{gid}::/:/bin/sh\n");
    make_file(&base.join("etc/passwd"), passwd.as_bytes())?;
    make_file(&base.join("etc/group"), format!("root:x:0:\n{name}:x:{gid}:\n").as_bytes())
}

/// Without UDP nobody can be asked for an address.
fn hosts(base: &Path, hosts: &[(IpAddr, String)]) -> io::Result<()> {
    let lines: String = hosts.iter().map(|(address, name)| format!("{address} {name}\n")).collect();
    make_file(&base.join("etc/hosts"), format!("127.0.0.1 localhost\n{lines}").as_bytes())
}

fn inside(base: &Path, path: &Path) -> PathBuf {
    base.join(path.strip_prefix("/").unwrap_or(path))
}

/// Everybody may pass through them, but only their owner, who is not the server, changes them.
fn make_dirs(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(path)
}

fn make_file(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        make_dirs(parent)?;
    }
    std::fs::write(path, content)
}
