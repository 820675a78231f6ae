//! The files of a log: their names and how they are read.

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
