//! Runs an engine until it is told to stop.

use crate::ServeOptions;
use offshoot_types::Failure;

/// Runs an engine in the foreground until SIGTERM or SIGINT.
pub fn run_engine(_options: ServeOptions) -> Result<(), Failure> {
    Err(Failure::internal("not wired yet"))
}
