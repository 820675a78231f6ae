//! Receiving a base backup as a tar archive, straight into the files of a dataset.
//!
//! Compared with `pg_basebackup` writing into a mount, this saves the way through the kernel back
//! into this process, and reading everything again: the checksums to compare with the manifest are
//! computed as the bytes arrive.

use offshoot_types::Failure;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Component;
use tar::{Archive, Entry, EntryType};

use offshoot_connector::DataDir;

/// Bytes written at a time.
const PIECE_LEN: usize = 1 << 20;

/// Most files of one copy: their names are kept in memory.
const FILES_MAX: usize = 8 << 20;

/// Length in bytes and CRC-32C of each regular file received, by path.
pub type Received = BTreeMap<String, (u64, u32)>;

/// Why unpacking stopped.
#[derive(Debug)]
pub enum Stopped {
    /// The stream ended too early or could not be read: the sender knows why.
    Stream(io::Error),
    /// It holds something that a base backup does not.
    Content(String),
    /// This file could not be written.
    Target(String, io::Error),
}

impl Stopped {
    pub(super) fn failure(self) -> Failure {
        match self {
            Stopped::Stream(error) => super::incomplete(&error.to_string()),
            Stopped::Content(what) => super::incomplete(&what),
            Stopped::Target(path, error) => {
                let message = format!("cannot write {path} of the copy: {error}");
                super::unprepared(message).or_pool_full(&error)
            }
        }
    }
}

/// Reads an archive to its end and makes its files.
///
/// # Errors
/// Why it stopped; what was made until then stays.
pub fn unpack(stream: impl Read, files: &dyn DataDir) -> Result<Received, Stopped> {
    let mut archive = Archive::new(stream);
    let (mut received, mut piece) = (Received::new(), vec![0; PIECE_LEN]);
    // Raw: a source sends no extension headers, and none may make this process store arbitrary
    // data.
    for entry in archive.entries().map_err(Stopped::Stream)?.raw(true) {
        let mut entry = entry.map_err(Stopped::Stream)?;
        let path = path_of(&entry)?;
        let mode = entry.header().mode().map_err(Stopped::Stream)? & 0o777;
        let target = |error| Stopped::Target(path.clone(), error);
        match entry.header().entry_type() {
            EntryType::Directory if path.is_empty() => {}
            EntryType::Directory => files.create_dir(&path, mode).map_err(target)?,
            EntryType::Regular => {
                let mut file = files.create(&path, mode).map_err(target)?;
                let sum = copy(&mut entry, &mut *file, &mut piece, &target)?;
                received.insert(path, sum);
                if received.len() > FILES_MAX {
                    return Err(Stopped::Content(format!("more than {FILES_MAX} files")));
                }
            }
            EntryType::Symlink => {
                let what = format!("{path} is a link: a tablespace was made meanwhile");
                return Err(Stopped::Content(what));
            }
            other => return Err(Stopped::Content(format!("{path} is a {other:?}"))),
        }
    }
    // Read what follows the end mark: the writer must not find the pipe closed.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(Stopped::Stream)?;
    Ok(received)
}

/// Copies a file's content; returns its length and checksum.
fn copy(
    entry: &mut Entry<'_, impl Read>,
    file: &mut dyn Write,
    piece: &mut [u8],
    target: &dyn Fn(io::Error) -> Stopped,
) -> Result<(u64, u32), Stopped> {
    let (mut left, mut sum) = (entry.size(), 0);
    while left > 0 {
        // Whole pieces, so that no block is written in parts.
        let len = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let piece = &mut piece[..len];
        entry.read_exact(piece).map_err(Stopped::Stream)?;
        sum = crc32c::crc32c_append(sum, piece);
        file.write_all(piece).map_err(target)?;
        left -= len as u64;
    }
    Ok((entry.size(), sum))
}

/// The path of an entry, relative and without detours.
fn path_of(entry: &Entry<'_, impl Read>) -> Result<String, Stopped> {
    let bytes = entry.path_bytes();
    let refused = |why| Stopped::Content(format!("{:?} {why}", String::from_utf8_lossy(&bytes)));
    let text = std::str::from_utf8(&bytes).map_err(|_| refused("is not UTF-8"))?;
    let mut names = Vec::new();
    for component in std::path::Path::new(text).components() {
        match component {
            Component::Normal(name) => names.push(name.to_string_lossy()),
            Component::CurDir => {}
            _ => return Err(refused("leads out of the data directory")),
        }
    }
    Ok(names.join("/"))
}

#[cfg(test)]
mod tests;
