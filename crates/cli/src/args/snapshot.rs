//! `offshoot snapshot …`

use super::JobArgs;
use clap::{Args, Subcommand};
use offshoot_types::SnapshotId;

#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Take a snapshot of a dSource or VDB
    #[command(after_help = "Example:\n  offshoot snapshot take prod")]
    Take(TakeArgs),
    /// List snapshots, of all objects or of one
    #[command(after_help = "Example:\n  offshoot snapshot list prod")]
    List {
        /// The name of a dSource or VDB
        #[arg(value_name = "DSOURCE|VDB")]
        object: Option<String>,
    },
    /// Show a snapshot
    #[command(after_help = "Example:\n  offshoot snapshot show snapshot-7")]
    Show {
        /// Its id
        id: SnapshotId,
    },
    /// Delete a snapshot; what was made from it stays
    #[command(after_help = "Example:\n  offshoot snapshot delete snapshot-7")]
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
    /// Its id
    pub id: SnapshotId,
    #[command(flatten)]
    pub job: JobArgs,
}
