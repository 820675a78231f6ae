//! `offshoot pool …`

use super::{JobArgs, size};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// Show what the pool holds, the space it takes, and how the cache performs
    #[command(after_help = "Example:\n  offshoot pool status")]
    Status,
    /// Show what dSources, VDBs and snapshots hold of the pool, and what deleting them would free
    ///
    /// Stored bytes are after compression. EXCLUSIVE is what only the object reaches, SHARED what others also
    /// reach, PINNED what it alone keeps for its past: snapshots, log, replaced states. Deleting it frees
    /// EXCLUSIVE + PINNED. A `~` marks figures from before the pool's last change.
    #[command(
        after_help = "Examples:\n  offshoot pool ledger\n  offshoot pool ledger prod\n  offshoot pool ledger --delete dev snapshot-7 snapshot-8"
    )]
    Ledger {
        /// A dSource or VDB, with its snapshots, or a snapshot; everything if absent
        object: Option<String>,
        /// Show exactly what deleting all of these together would free
        #[arg(long, value_name = "OBJECT", num_args = 1.., conflicts_with = "object")]
        delete: Vec<String>,
    },
    /// Read and verify everything in the pool while it is in use
    ///
    /// Reads at a bounded rate and lets others go first. It resumes after the engine was stopped, killed or
    /// replaced. Damaged blocks are replaced if there is a sound copy; otherwise the result and `offshoot status`
    /// say which files of which objects hold them. Exits with 1 if damage is left.
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
    /// intent log with each other. Exits with 1 if it finds a problem. A damaged block table is rebuilt from
    /// the segments by the next start of the engine.
    #[command(
        after_help = "Examples:\n  offshoot pool check --pool /data/pool\n  offshoot pool check --pool /data/pool --secret-key /etc/offshoot/pool.key"
    )]
    Check {
        /// The file with the key of an encrypted pool, if it was named to `serve`, too [env:
        /// OFFSHOOT_SECRET_KEY_FILE]
        #[arg(long, value_name = "FILE")]
        secret_key: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct ScrubArgs {
    /// The most to read per second [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "last")]
    pub rate: Option<u64>,
    /// Do not start one: show the last scrub or its progress, and the known damage
    #[arg(long, conflicts_with = "detach")]
    pub last: bool,
    #[command(flatten)]
    pub job: JobArgs,
}
