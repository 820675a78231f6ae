//! `offshoot pool …`

use super::{JobArgs, size};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// Show what the pool holds, what that takes and how the cache does
    #[command(after_help = "Example:\n  offshoot pool status")]
    Status,
    /// Show what dSources, VDBs and snapshots hold of the pool, and what deleting them would give back
    ///
    /// Stored bytes are after compression. EXCLUSIVE is what the object alone reaches, SHARED what others
    /// reach as well, PINNED what it alone keeps for its past only: snapshots, log, replaced states. Deleting
    /// it gives back EXCLUSIVE + PINNED. A `~` marks figures from before the pool's last change.
    #[command(
        after_help = "Examples:\n  offshoot pool ledger\n  offshoot pool ledger prod\n  offshoot pool ledger --delete dev snapshot-7 snapshot-8"
    )]
    Ledger {
        /// A dSource or VDB, with its snapshots, or a snapshot; everything where absent
        object: Option<String>,
        /// Show exactly what deleting all of these together would give back
        #[arg(long, value_name = "OBJECT", num_args = 1.., conflicts_with = "object")]
        delete: Vec<String>,
    },
    /// Read and verify everything in the pool while it is used
    ///
    /// Reads at a bounded rate and lets others go first. It goes on by itself when the engine was stopped, killed or
    /// replaced. What is damaged is replaced where there is a sound copy; else the result says which files of
    /// which objects hold it, and so does `offshoot status`. Exits with 1 when damage is left.
    #[command(
        after_help = "Examples:\n  offshoot pool scrub\n  offshoot pool scrub --rate 16MiB --detach\n  offshoot pool scrub --last"
    )]
    Scrub(ScrubArgs),
    /// Give space that nothing needs back to the filesystem
    #[command(after_help = "Example:\n  offshoot pool reclaim")]
    Reclaim(JobArgs),
    /// Verify every structure of a pool that no engine uses, and change nothing
    ///
    /// Reads and verifies every block, and compares block table, references, directories, links and the
    /// intent log with each other. Exits with 1 when something is not as it should be. A damaged block table
    /// is made anew from the segments by the next start of the engine.
    #[command(after_help = "Example:\n  offshoot pool check --pool /data/pool")]
    Check,
}

#[derive(Debug, Args)]
pub struct ScrubArgs {
    /// The most to read in a second [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "last")]
    pub rate: Option<u64>,
    /// Begin none: show the last one, or how far it is, and the damage that is known
    #[arg(long, conflicts_with = "detach")]
    pub last: bool,
    #[command(flatten)]
    pub job: JobArgs,
}
