//! Proof that an image is sound: page checksums, heap and index structure.

use std::path::Path;
use std::time::Duration;

use offshoot_os::process::User;
use offshoot_types::Failure;

use crate::server::Server;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Damage, one line each; empty: sound.
    pub damage: Vec<String>,
    /// What could not be checked and why (no `amcheck` here, no page checksums …).
    pub unchecked: Vec<String>,
}

impl Findings {
    /// Whether nothing wrong was found.
    pub fn sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Verifies the page checksums of a cleanly stopped image.
///
/// # Errors
/// `WrongState` when it was not stopped cleanly, `HostUnprepared` when the tool is missing,
/// `Internal` when it does not end within `deadline`.
pub fn check_stopped(
    bin_dir: &Path,
    data_dir: &Path,
    user: Option<&User>,
    deadline: Duration,
) -> Result<Findings, Failure> {
    let _ = (bin_dir, data_dir, user, deadline);
    todo!()
}

/// Verifies heaps and B-tree indexes of all databases of a running, settled server that takes
/// writes. The extension it needs is installed where missing and removed afterwards.
///
/// # Errors
/// `Internal` when the server does not answer or `deadline` passes.
pub fn check_running(server: &Server, deadline: Duration) -> Result<Findings, Failure> {
    let _ = (server, deadline);
    todo!()
}
