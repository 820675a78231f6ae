//! `offshoot snapshot …`

use super::{JobArgs, ListArgs};
use clap::{Args, Subcommand};
use offshoot_types::SnapshotId;

#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Take a snapshot of a dSource or VDB
    #[command(after_help = "Example:\n  offshoot snapshot take prod")]
    Take(TakeArgs),
    List(ListSnapshotsArgs),
    /// Show a snapshot
    #[command(after_help = "Example:\n  offshoot snapshot show snapshot-7")]
    Show {
        /// Its id
        id: SnapshotId,
    },
    /// Delete snapshots; what was made from them stays
    #[command(after_help = "Examples:\n  offshoot snapshot delete snapshot-7\n  \
                            offshoot snapshot delete snapshot-7 snapshot-9")]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
pub struct TakeArgs {
    /// The name of a dSource or VDB
    #[arg(value_name = "DSOURCE|VDB")]
    pub object: String,
    #[command(flatten)]
    pub job: JobArgs,
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Its id; of several, each is deleted
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<SnapshotId>,
    #[command(flatten)]
    pub job: JobArgs,
}

/// List snapshots, of all objects or of one, oldest first
///
/// Columns: snapshot, of, time, lsn, state, kind; and bookmarks, error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot snapshot list prod\n  \
                        offshoot snapshot list prod --state ready --sort -time --limit 1\n  \
                        offshoot snapshot list --kind manual --columns snapshot,of,bookmarks")]
pub struct ListSnapshotsArgs {
    /// The name of a dSource or VDB
    #[arg(value_name = "DSOURCE|VDB")]
    pub object: Option<String>,
    /// Only those in this state; may be given several times
    #[arg(long, value_delimiter = ',', value_parser = ["pending", "ready", "failed", "on_demand"])]
    pub state: Vec<String>,
    /// Only those that were taken for this; may be given several times
    #[arg(long, value_delimiter = ',', value_parser = ["link", "policy", "manual",
        "recovery_point", "pre_rewind", "masked", "bookmark"])]
    pub kind: Vec<String>,
    #[command(flatten)]
    pub list: ListArgs,
}
