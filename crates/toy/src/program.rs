//! The server's program.

use crate::state::VERSION;
use offshoot_types::{ErrorKind, Failure};
use std::path::Path;

/// Whether it exists, for a version of the database.
///
/// # Errors
/// `HostUnprepared`.
pub(crate) fn check(program: &Path, version: &str) -> Result<(), Failure> {
    let (message, hint) = if version != VERSION {
        let message = format!("there is no program for version {version} of the toy here");
        (message, "only version 1.0 was ever made")
    } else if !program.is_file() {
        (format!("{} is not there", program.display()), "build the program toyd")
    } else {
        return Ok(());
    };
    Err(Failure::new(ErrorKind::HostUnprepared, message, hint))
}
