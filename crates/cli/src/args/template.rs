//! `offshoot template …`

use super::vdb::VdbOptionArgs;
use super::{MomentArgs, NameArgs};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum TemplateCommand {
    Create(Box<TemplateCreateArgs>),
    /// List templates
    #[command(after_help = "Example:\n  offshoot template list")]
    List,
    /// Show what VDBs have that are made by a template
    #[command(after_help = "Example:\n  offshoot template show ci")]
    Show(NameArgs),
    /// Delete a template; VDBs that were made by it stay
    #[command(after_help = "Example:\n  offshoot template delete ci")]
    Delete(NameArgs),
}

/// Say once what VDBs are to be like; `vdb provision --template` makes them
///
/// Whoever makes one may say otherwise: what is said then comes first, and settings, labels and hooks are added. A developer gets by a
/// template also what it may not choose itself.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot template create ci --from shop-masked --expires 1d --set fsync=off --label team=checkout\n  \
                        offshoot template create golden --from shop --bookmark release-1 --hook after-provision=users.sql\n  \
                        offshoot vdb provision pr17 --template ci --label pr=17"
)]
pub struct TemplateCreateArgs {
    /// The name to give it
    pub name: String,
    /// The dSource or VDB to make VDBs from; by default whoever makes one says it
    #[arg(long, value_name = "DSOURCE|VDB")]
    pub from: Option<String>,
    #[command(flatten)]
    pub moment: MomentArgs,
    #[command(flatten)]
    pub options: VdbOptionArgs,
}
