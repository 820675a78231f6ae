//! The file `encryption` of a pool.

use crate::ground::paths::Paths;
use offshoot_catalog::KeyId;
use offshoot_os::files;
use offshoot_pool::encryption::{self, Encryption};
use offshoot_types::{ErrorKind, Failure};
use std::io::{self, Write};
use std::path::PathBuf;

/// The id of the key that the data key of a pool is wrapped by, if the pool is encrypted.
///
/// # Errors
/// `DataDamaged` if the file is damaged.
pub fn wrapped_by(paths: &Paths) -> Result<Option<KeyId>, Failure> {
    Ok(read(paths)?.map(|file| key_id(&file)))
}

/// Where it is.
pub fn place(paths: &Paths) -> PathBuf {
    paths.pool().join("encryption")
}

/// What it says, if it is there.
pub fn read(paths: &Paths) -> Result<Option<Encryption>, Failure> {
    match files::read_beneath(paths.pool(), "encryption", encryption::LEN as u64) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(paths, &error)),
        Ok(bytes) => Encryption::decode(&bytes).map(Some).map_err(|error| damaged(paths, &error)),
    }
}

/// The id of the key that wraps.
pub fn key_id(file: &Encryption) -> KeyId {
    KeyId::stored(String::from_utf8_lossy(&file.key_id).into_owned())
}

/// Puts it in the place of the one before, durably.
pub fn write(paths: &Paths, file: &Encryption) -> Result<(), Failure> {
    let written = files::replace(&place(paths), 0o600, |new| new.write_all(&file.encode()));
    written.map_err(|error| unusable(paths, &error))
}

/// Removes what a creation that was cut off left.
pub fn remove(paths: &Paths) -> Result<(), Failure> {
    match std::fs::remove_file(place(paths)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(paths, &error)),
        _ => Ok(()),
    }
}

fn damaged(paths: &Paths, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(
        ErrorKind::DataDamaged,
        format!(
            "{}, which has the key of the pool wrapped, is damaged: {error}",
            place(paths).display()
        ),
        "bring the file back from a copy of the pool",
    )
}

/// The failure of whatever the file system refuses.
pub fn unusable(paths: &Paths, error: &io::Error) -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        format!("{} cannot be used: {error}", place(paths).display()),
        "check its permissions and its disk",
    )
}
