//! `offshoot group …`

use super::vdb::setting;
use super::{JobArgs, ListArgs, NameArgs, NameJobArgs, RemovalArgs, TimeArgs, size};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum GroupCommand {
    Create(CreateArgs),
    /// List groups, and the VDBs made of them
    #[command(after_help = "Examples:\n  offshoot group list\n  \
                            offshoot group list --sort -moment --limit 10")]
    List(ListArgs),
    /// Show a group of dSources, or a VDB group: its VDBs, where to connect, the moment, the clocks
    #[command(
        after_help = "Examples:\n  offshoot group show release\n  offshoot group show dev --json"
    )]
    Show(NameArgs),
    /// Delete a group, whose dSources and VDBs stay; or a VDB group with its VDBs
    #[command(
        after_help = "Examples:\n  offshoot group delete dev\n  offshoot group delete release"
    )]
    Delete(RemovalArgs),
    Provision(ProvisionArgs),
    Refresh(RefreshArgs),
    Rewind(RewindArgs),
    Bookmark(BookmarkArgs),
    /// Start all VDBs of a VDB group
    #[command(after_help = "Example:\n  offshoot group start dev")]
    Start(NameJobArgs),
    /// Stop all VDBs of a VDB group; their data is kept
    #[command(after_help = "Example:\n  offshoot group stop dev")]
    Stop(NameJobArgs),
}

/// Name several dSources that belong together
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  offshoot group create release --members shop,orders,billing")]
pub struct CreateArgs {
    /// The name to give it, unique among dSources, VDBs and groups
    pub name: String,
    /// The dSources: at least two
    #[arg(long, value_name = "DSOURCE", value_delimiter = ',', required = true)]
    pub members: Vec<String>,
}

/// Make a VDB of each member of a group, all of one moment
///
/// The moment is the latest that all members have, or the one that is given, by the clocks of the sources. If one VDB
/// cannot be made, none stays. They are named after the VDB group and their members: dev-shop, dev-orders.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot group provision dev --group release\n  \
                        offshoot group provision before --group release --at '2026-11-21 14:03:27+00'")]
pub struct ProvisionArgs {
    /// The name to give the VDB group
    pub name: String,
    /// The group
    #[arg(long, value_name = "GROUP")]
    pub group: String,
    #[command(flatten)]
    pub moment: TimeArgs,
    /// A setting of the databases; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// A limit of the memory of each
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    #[command(flatten)]
    pub job: JobArgs,
}

/// Open a newer (or any) moment in all VDBs of a VDB group, or in none
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  offshoot group refresh dev --latest")]
pub struct RefreshArgs {
    /// The name of a VDB group
    pub name: String,
    #[command(flatten)]
    pub moment: TimeArgs,
    #[command(flatten)]
    pub job: JobArgs,
}

/// Go back to bookmarks that `group bookmark` has set, in all VDBs or in none
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  offshoot group rewind dev --bookmark before-test")]
pub struct RewindArgs {
    /// The name of a VDB group
    pub name: String,
    /// The name that was given to `group bookmark`
    #[arg(long, value_name = "BOOKMARK")]
    pub bookmark: String,
    #[command(flatten)]
    pub job: JobArgs,
}

/// Set a bookmark on the present state of each VDB of a VDB group
///
/// With --as before-test, that on dev-shop is before-test-shop.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  offshoot group bookmark dev --as before-test")]
pub struct BookmarkArgs {
    /// The name of a VDB group
    pub name: String,
    /// What the names of the bookmarks begin with
    #[arg(long = "as", value_name = "BOOKMARK")]
    pub bookmark: String,
    #[command(flatten)]
    pub job: JobArgs,
}
