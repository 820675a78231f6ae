//! What the system lets this process have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Raises the number of descriptors that this process may have to the most that it may give itself, and returns it.
///
/// # Errors
/// The operating system's.
pub fn raise_descriptors() -> io::Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(descriptors())
}

/// The number of descriptors that this process may have.
pub fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Whether an operation was refused because descriptors or memory are used up: by this process, or by all. It says
/// nothing about what the operation was for, and may succeed a moment later.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
}
