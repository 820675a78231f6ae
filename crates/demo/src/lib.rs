//! A guided tour: a sample source, a dSource linked to it, three VDBs, and what they share.

use offshoot_client::Target;
use offshoot_types::Failure;

/// How to run the tour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoOptions {
    /// The engine to show.
    pub target: Target,
    /// Whether to clean up at the end and leave nothing behind.
    pub exit: bool,
    /// Size of the sample source, in pgbench scale units (about 15 MB each).
    pub scale: u32,
    /// Whether to print one JSON document instead of a story.
    pub json: bool,
}

/// Runs the tour; prints to stdout.
pub fn run(_options: DemoOptions) -> Result<(), Failure> {
    Err(Failure::internal("not wired yet"))
}
