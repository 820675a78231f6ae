//! The files of a log: their names, how they are read, and what a record in them belongs to.

use crate::{Error, Result};
use offshoot_os::disk::{DiskFile, read_exact_at};

/// The fewest files a log can work with: one being written, one waiting, one being trimmed.
pub(crate) const FILES_MIN: usize = 3;

pub(crate) fn file_path(number: usize) -> String {
    format!("log/{number:02}.log")
}

pub(crate) fn read_file(file: &dyn DiskFile, len: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len as usize];
    read_exact_at(file, 0, &mut bytes).map_err(|error| Error::io("read the intent log", &error))?;
    Ok(bytes)
}

/// What a sealed record belongs to: it opens as no other.
pub(crate) fn record_context(generation: u32, stream: u64, position: u64) -> [u8; 20] {
    let mut context = [0; 20];
    context[..4].copy_from_slice(&generation.to_le_bytes());
    context[4..12].copy_from_slice(&stream.to_le_bytes());
    context[12..].copy_from_slice(&position.to_le_bytes());
    context
}
