//! Files whose names, kinds or sizes somebody else chose, and files that are replaced as a whole.

use crate::random_bytes;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a directory, to see what it is. A link in its place is an error.
///
/// # Errors
/// File system errors; `ELOOP` or `ENOTDIR` for anything but a directory.
pub fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Writes out what programs have written to a file system, named by a directory of it, and waits until its files have
/// it. Whether it is durable then is the file system's to say.
///
/// # Errors
/// File system errors, those of writes among them.
pub fn sync_file_system(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(open_directory(directory)?)?)
}

/// Opens a plain file below a directory to read. No link on the way is followed, no pipe or device is waited for.
///
/// # Errors
/// File system errors; `ELOOP` for a link, `InvalidData` for what is not a plain file.
pub fn open_beneath(directory: &Path, path: &str) -> io::Result<File> {
    // The directory itself is where its owner put it, by links or not.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    // A pipe that nobody writes to would be waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = rustix::fs::openat2(directory, path, flags, Mode::empty(), within)?;
    let file = File::from(file);
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_plain(path)) }
}

/// The whole of such a file if it has at most `bytes_max` bytes.
///
/// # Errors
/// As [`open_beneath`]; `FileTooLarge` for a longer one, of which nothing is read.
pub fn read_beneath(directory: &Path, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_beneath(directory, path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.len() <= bytes_max {
        // It may grow meanwhile.
        file.take(bytes_max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= bytes_max {
            return Ok(bytes);
        }
    }
    Err(too_large(path, bytes_max))
}

/// Puts a file in the place of another one, or of none. Durable when this returns; at any time there is a whole one of
/// the two. `mode` is subject to the umask; what `write` is given is not yet seen by anybody.
///
/// # Errors
/// File system errors, those of `write` too: the file that was there stays then.
pub fn replace(
    file: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let number = u64::from_le_bytes(random_bytes());
    let beside = directory.join(format!(".offshoot-new-{number:016x}"));
    let mut new = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    // The content MUST be durable before its name is, or a loss of power leaves an empty file.
    let written = write(&mut new).and_then(|()| new.sync_all());
    written.and_then(|()| std::fs::rename(&beside, file)).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&beside);
    })?;
    File::open(directory)?.sync_all()
}

/// Says that a file is larger than it should be.
pub fn too_large(path: &str, bytes_max: u64) -> io::Error {
    let why = format!("'{path}' has more than {bytes_max} bytes; no file in its place should");
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

/// Says that what should be a plain file is something else.
pub fn not_plain(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("'{path}' is not a plain file"))
}

#[cfg(test)]
mod tests;
