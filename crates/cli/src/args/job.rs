//! `offshoot job …`

use super::ListArgs;
use clap::{Args, Subcommand};
use offshoot_types::JobId;

#[derive(Debug, Subcommand)]
pub enum JobCommand {
    List(ListJobsArgs),
    /// Show a job: its steps, its progress, why it failed
    #[command(after_help = "Example:\n  offshoot job show job-12")]
    Show {
        /// Its id
        id: JobId,
    },
    /// Follow a job to its end
    #[command(after_help = "Example:\n  offshoot job watch job-12")]
    Watch {
        /// Its id
        id: JobId,
    },
    /// Ask a job to stop and undo what it did
    #[command(after_help = "Example:\n  offshoot job cancel job-12")]
    Cancel {
        /// Its id
        id: JobId,
    },
}

/// List jobs, newest first
///
/// Columns: job, kind, object, state, progress, started-at, ended-at; and step, took, error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot job list --state running\n  \
                        offshoot job list --on dev --limit 5\n  \
                        offshoot job list --state failed --columns job,object,error")]
pub struct ListJobsArgs {
    /// Only those in this state; may be given several times
    #[arg(long, value_delimiter = ',',
        value_parser = ["queued", "running", "undoing", "done", "failed", "cancelled"])]
    pub state: Vec<String>,
    /// Only those that do this, such as vdb_refresh; may be given several times
    #[arg(long, value_delimiter = ',')]
    pub kind: Vec<String>,
    /// Only those that work on the object of this name
    #[arg(long, value_name = "NAME")]
    pub on: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}
