//! `offshoot bookmark …` and `offshoot timeflow …`

use super::{JobArgs, ListArgs, MomentArgs, NamesJobArgs};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum BookmarkCommand {
    Create(CreateArgs),
    List(ListBookmarksArgs),
    /// Delete bookmarks; what was made from them stays
    #[command(after_help = "Example:\n  offshoot bookmark delete before-release")]
    Delete(NamesJobArgs),
}

/// Give a name to a moment of a dSource or VDB, which can then be opened as long as the bookmark
/// exists
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot bookmark create before-release --on prod \
                        --at '2026-11-21 14:03:27+00'\n  \
                        offshoot bookmark create seeded --on dev")]
pub struct CreateArgs {
    /// The name to give it, unique among all bookmarks
    pub name: String,
    /// The dSource or VDB
    #[arg(long, value_name = "DSOURCE|VDB")]
    pub on: String,
    #[command(flatten)]
    pub moment: MomentArgs,
    #[command(flatten)]
    pub job: JobArgs,
}

#[derive(Debug, Subcommand)]
pub enum TimeflowCommand {
    /// Show which moments can be opened: ranges, gaps, snapshots, what a rewind replaced
    #[command(after_help = "Example:\n  offshoot timeflow show prod")]
    Show {
        /// The name of a dSource or VDB
        #[arg(value_name = "DSOURCE|VDB")]
        name: String,
    },
}

/// List bookmarks
///
/// Columns: bookmark, on, time, lsn, snapshot; and created-at.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot bookmark list\n  \
                        offshoot bookmark list --on prod --sort -time")]
pub struct ListBookmarksArgs {
    /// Only those on this one
    #[arg(long, value_name = "DSOURCE|VDB")]
    pub on: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}
