//! `offshoot replication …`

mod profiles;

pub use profiles::{CreateArgs, Schedule};

use super::{JobArgs, ListArgs, NameArgs, NameJobArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum ReplicationCommand {
    Create(CreateArgs),
    /// Send now what the peer lacks, and wait until it has it
    ///
    /// A connection that is cut is made again, and what has come is not sent twice.
    #[command(after_help = "Example:\n  offshoot replication run nightly")]
    Run(NameJobArgs),
    List(ListReplicationsArgs),
    /// Show how far behind the peer is, and what the last run did
    #[command(after_help = "Example:\n  offshoot replication show nightly")]
    Show(NameArgs),
    /// Show the runs that have ended, newest first
    #[command(after_help = "Example:\n  offshoot replication history nightly")]
    History(NameArgs),
    /// Let it not run by itself; a run that is at work ends
    #[command(after_help = "Example:\n  offshoot replication pause nightly")]
    Pause(NameArgs),
    /// Let it run by itself again
    #[command(after_help = "Example:\n  offshoot replication resume nightly")]
    Resume(NameArgs),
    /// Delete it; what it has sent stays with the peer
    #[command(after_help = "Example:\n  offshoot replication delete nightly")]
    Delete(NameArgs),
    Export(ExportArgs),
    Import(ImportArgs),
}

/// List what is sent to other engines
///
/// Columns: profile, to, state, includes, runs, last-success-at, lag; and sent, saved.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot replication list\n  \
                        offshoot replication list --to east --state failed --sort -lag")]
pub struct ListReplicationsArgs {
    /// Only what is sent to this peer
    #[arg(long = "to", value_name = "PEER")]
    pub peer: Option<String>,
    /// Only what is in this state; may be given several times
    #[arg(long, value_delimiter = ',', value_parser = ["running", "paused", "failed", "waiting"])]
    pub state: Vec<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Write dSources or VDBs as archives, to be kept or carried to another engine
///
/// An archive holds all snapshots and the received log, so that any commit can be opened from it; of a VDB, the snapshots that
/// are ready. Blocks are in it once,
/// compressed as in the pool; passwords that the engine keeps are not. Whoever can read it can read the database. It appears under its name only
/// when it is whole.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot replication export shop --output shop.offshoot\n  \
                        offshoot replication export shop orders --output /mnt/truck/")]
pub struct ExportArgs {
    /// The dSources or VDBs
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// The file to write; a directory, where each gets NAME.offshoot; or - for stdout
    #[arg(long, value_name = "FILE|DIR")]
    pub output: PathBuf,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    /// Export from an encrypted pool, although archives are not encrypted
    #[arg(long)]
    pub plain: bool,
}

/// Take archives in: a dSource becomes PREFIX/NAME, read only, and VDBs are provisioned from it
///
/// An archive of a dSource that is here already renews it. Nothing of an archive appears before all of it is in the pool; of
/// one that is damaged or was cut off nothing stays.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot replication import shop.offshoot --as west\n  \
                        offshoot replication import /mnt/truck/\n  \
                        offshoot vdb provision dev --from west/shop --at '2026-11-21 14:03:27+00'")]
pub struct ImportArgs {
    /// The archive; a directory, of which all *.offshoot are taken in; or - for stdin
    #[arg(value_name = "FILE|DIR")]
    pub input: PathBuf,
    /// What names get before them
    #[arg(long = "as", value_name = "PREFIX", default_value = "imported")]
    pub namespace: String,
    #[command(flatten)]
    pub job: JobArgs,
}
