//! Small files of a data directory.

use offshoot_connector::DataDir;
use offshoot_types::Failure;

/// Writes a file that only the server's user may read.
pub(crate) fn write_file(dir: &dyn DataDir, path: &str, text: &str) -> Result<(), Failure> {
    dir.write_atomic(path, text.as_bytes(), 0o600).map_err(|error| {
        Failure::internal(format!("cannot write {path}: {error}")).or_pool_full(&error)
    })
}

/// Removes a file that may be missing.
pub(crate) fn remove_file(dir: &dyn DataDir, path: &str) -> Result<(), Failure> {
    dir.remove(path).map_err(|error| Failure::internal(format!("cannot remove {path}: {error}")))
}
