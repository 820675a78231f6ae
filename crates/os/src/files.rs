//! Files whose names, kinds or sizes somebody else chose.

use rustix::fs::{Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens a directory, to see what it is. A link in its place is an error.
///
/// # Errors
/// File system errors; `ELOOP` or `ENOTDIR` for anything but a directory.
pub fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
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
