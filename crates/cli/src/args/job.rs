//! `offshoot job …`

use clap::Subcommand;
use offshoot_types::JobId;

#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// List jobs, newest first
    #[command(after_help = "Example:\n  offshoot job list")]
    List,
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
