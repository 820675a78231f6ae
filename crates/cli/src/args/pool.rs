//! `offshoot pool …`

use super::JobArgs;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// Show what the pool holds, what that takes and how the cache does
    #[command(after_help = "Example:\n  offshoot pool status")]
    Status,
    /// Give space that nothing needs back to the filesystem
    #[command(after_help = "Example:\n  offshoot pool reclaim")]
    Reclaim(JobArgs),
}
