//! The kernel's table of mounts, and removing mounts.

use crate::connection::Connection;
use crate::error::MountError;
use offshoot_delivery::Ids;
use offshoot_os::process;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The source that our mounts show in the table of mounts. Where all files are shown as one user's, the user
/// and the group follow: `offshoot:1000:1000`. So the next engine finds it there.
const SOURCE: &str = "offshoot";

/// The source of a mount whose files are shown as this user's.
pub(crate) fn source(shown: Option<Ids>) -> String {
    shown.map_or(SOURCE.to_owned(), |Ids { uid, gid }| format!("{SOURCE}:{uid}:{gid}"))
}

/// How long `fusermount3` may take before it is killed.
pub(crate) const FUSERMOUNT_TIMEOUT: Duration = Duration::from_secs(10);

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Minor number of the mount's device; also the name of the FUSE connection.
    pub(crate) minor: u32,
    pub(crate) major: u32,
    pub(crate) path: PathBuf,
    pub(crate) kind: String,
    pub(crate) source: String,
}

impl Entry {
    fn is_ours(&self) -> bool {
        let rest = self.source.strip_prefix(SOURCE);
        self.kind.starts_with("fuse") && rest.is_some_and(|it| it.is_empty() || it.starts_with(':'))
    }

    /// Whose all files are shown as; none: as the dataset says.
    pub(crate) fn shown(&self) -> Option<Ids> {
        let (uid, gid) = self.source.strip_prefix(SOURCE)?.strip_prefix(':')?.split_once(':')?;
        Some(Ids { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
    }
}

/// All mounts this process sees, in the order of mounting. Lines of an unknown form are skipped.
pub(crate) fn read() -> Result<Vec<Entry>, MountError> {
    let table = std::fs::read("/proc/self/mountinfo").map_err(MountError::MountTable)?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// Parses `36 35 0:52 / /mnt/a\040b rw,nosuid shared:1 - fuse offshoot rw,user_id=0` (proc(5)).
fn parse(line: &[u8]) -> Option<Entry> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = text(fields.nth(2)?);
    let (major, minor) = device.split_once(':')?;
    let path = PathBuf::from(OsString::from_vec(unescape(fields.nth(1)?)));
    fields.find(|field| *field == b"-")?;
    Some(Entry {
        minor: minor.parse().ok()?,
        major: major.parse().ok()?,
        path,
        kind: text(fields.next()?),
        source: text(&unescape(fields.next()?)),
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Turns the kernel's `\040` back into a space, and the like.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|digits| {
            first == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
        });
        match octal {
            Some(digits) => {
                let value =
                    digits.iter().fold(0u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
                out.push(value as u8);
                rest = &tail[3..];
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out
}

/// The newest of our mounts on exactly this (canonical) path.
pub(crate) fn find(path: &Path) -> Result<Option<Entry>, MountError> {
    Ok(read()?.into_iter().rev().find(|entry| entry.path == path && entry.is_ours()))
}

/// Detaches the dataset mounts under `dir` that an engine which ended without unmounting left
/// (their users see "Transport endpoint is not connected"). Returns the mount points.
///
/// Every dataset mount under `dir` except those in `kept` counts as stale: call it when the pool's lock is held
/// and before anything is mounted there. Mounts of other programs are left alone. Works as root and, through
/// `fusermount3`, as the ordinary user who mounted.
///
/// # Errors
/// [`MountError::MountTable`], [`MountError::Unmount`]; a missing `dir` is no error.
pub(crate) fn clean_stale_mounts(
    dir: impl AsRef<Path>,
    kept: &[PathBuf],
) -> Result<Vec<PathBuf>, MountError> {
    // Only the parent is resolved by the file system: `dir` itself may be a dead mount.
    let stale = ours_under(&canonical(dir.as_ref()), kept)?;
    stale.iter().try_for_each(|entry| detach(&entry.path))?;
    Ok(stale.into_iter().map(|entry| entry.path).collect())
}

/// Aborts the dataset mounts under `dir` except those in `kept`; they stay in the table. Returns the mount points of those
/// whose connection the kernel has ended. Nothing that is mounted is touched: it may answer nobody.
///
/// # Errors
/// [`MountError::MountTable`].
pub(crate) fn abort_mounts(dir: &Path, kept: &[PathBuf]) -> Result<Vec<PathBuf>, MountError> {
    let mut found = ours_under(&canonical_beside(dir), kept)?;
    found.retain(|entry| Connection::of(entry.minor).is_some_and(Connection::abort));
    Ok(found.into_iter().map(|entry| entry.path).collect())
}

/// Dataset mounts under a directory that is absolute and without symbolic links, the newest first.
fn ours_under(dir: &Path, kept: &[PathBuf]) -> Result<Vec<Entry>, MountError> {
    let kept: Vec<PathBuf> = kept.iter().map(|path| canonical_beside(path)).collect();
    let mut found = read()?;
    found.reverse();
    found.retain(|one| one.is_ours() && one.path.starts_with(dir) && !kept.contains(&one.path));
    Ok(found)
}

/// The absolute path without symbolic links, even if the last component is a dead mount.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| canonical_beside(path))
}

/// As [`canonical`], for a path whose last component is not a symbolic link, without touching what
/// is mounted there.
pub(crate) fn canonical_beside(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

/// The outcome of an attempt to unmount.
pub(crate) enum Attempt {
    /// The mount is gone.
    Gone,
    /// A program has a file open or its current directory there.
    Busy,
}

/// Unmounts if nobody uses the mount.
pub(crate) fn try_unmount(path: &Path) -> Result<Attempt, MountError> {
    let failed = |reason: String| MountError::Unmount { path: path.to_owned(), reason };
    match umount(path, libc::UMOUNT_NOFOLLOW) {
        Ok(()) => Ok(Attempt::Gone),
        Err(error) => match error.raw_os_error() {
            // Not a mount point (any more).
            Some(libc::EINVAL | libc::ENOENT) => Ok(Attempt::Gone),
            Some(libc::EBUSY) => Ok(Attempt::Busy),
            Some(libc::EPERM) => {
                let output = fusermount(path, "-u").map_err(&failed)?;
                if output.success() {
                    return Ok(Attempt::Gone);
                }
                let reason = output.stderr_text();
                match reason.to_lowercase() {
                    text if text.contains("busy") => Ok(Attempt::Busy),
                    text if is_not_found(&text) => Ok(Attempt::Gone),
                    _ => Err(failed(reason)),
                }
            }
            _ => Err(failed(error.to_string())),
        },
    }
}

/// Makes every request that waits on the mount, and every later one, fail, so that no program hangs
/// on it. Best effort: returns whether the kernel accepted it.
pub(crate) fn abort(entry: &Entry) -> bool {
    if umount(&entry.path, libc::MNT_FORCE).is_ok() {
        return true;
    }
    Connection::of(entry.minor).is_some_and(Connection::abort)
}

/// Detaches the mount immediately; programs that use it keep what they have open.
pub(crate) fn detach(path: &Path) -> Result<(), MountError> {
    let failed = |reason: String| MountError::Unmount { path: path.to_owned(), reason };
    match umount(path, libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            let output = fusermount(path, "-uz").map_err(&failed)?;
            // Somebody else may have been faster.
            if output.success() || is_not_found(&output.stderr_text()) {
                return Ok(());
            }
            Err(failed(output.stderr_text()))
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

fn umount(path: &Path, flags: i32) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a valid C string for the whole call.
    let result = unsafe { libc::umount2(path.as_ptr(), flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether `fusermount3` complained that nothing of ours is mounted there.
fn is_not_found(complaint: &str) -> bool {
    complaint.contains("not found in")
}

fn fusermount(path: &Path, how: &str) -> Result<process::Output, String> {
    let spec = process::Spec::new("fusermount3").arg(how).arg("--").arg(path).env("LC_ALL", "C");
    process::run(&spec, FUSERMOUNT_TIMEOUT).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
