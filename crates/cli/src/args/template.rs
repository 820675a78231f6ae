//! `offshoot template …`

use super::hook::EventArg;
use super::vdb::VdbOptionArgs;
use super::{ListArgs, MomentArgs, NameArgs};
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum TemplateCommand {
    Create(Box<TemplateCreateArgs>),
    /// List templates
    ///
    /// Columns: template, from, expires-after, description, created-at.
    #[command(after_help = "Examples:\n  offshoot template list\n  \
                            offshoot template list --sort -created-at --limit 5")]
    List(ListArgs),
    /// Show what VDBs have that are made by a template
    #[command(after_help = "Example:\n  offshoot template show ci")]
    Show(NameArgs),
    Set(Box<TemplateSetArgs>),
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

/// Change a template; VDBs that were made by it stay as they are
///
/// What is not named stays. Settings, labels and hooks are added to those that are there, or take the place of those of the same name;
/// other options take the place of what was said.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot template set ci --expires 3d --set work_mem=64MB --unset fsync\n  \
                        offshoot template set ci --from shop-masked --remove memory,protect\n  \
                        offshoot template set golden --bookmark release-2 --hook after-provision=users.sql"
)]
pub struct TemplateSetArgs {
    /// Its name
    pub name: String,
    /// Another name
    #[arg(long = "name", value_name = "NEW NAME")]
    pub new_name: Option<String>,
    /// The dSource or VDB to make VDBs from
    #[arg(long, value_name = "DSOURCE|VDB")]
    pub from: Option<String>,
    #[command(flatten)]
    pub moment: MomentArgs,
    #[command(flatten)]
    pub options: VdbOptionArgs,
    /// A setting that is no longer to be set; may be given several times
    #[arg(long, value_name = "KEY")]
    pub unset: Vec<String>,
    /// A label to remove; may be given several times
    #[arg(long, value_name = "KEY")]
    pub unlabel: Vec<String>,
    /// A hook to remove; may be given several times
    #[arg(long, value_name = "EVENT", value_enum)]
    pub no_hook: Vec<EventArg>,
    /// What is no longer said, by the names of the options
    #[arg(long, value_name = "OPTION,…", value_delimiter = ',')]
    pub remove: Vec<SaidArg>,
}

/// What a template may say, and no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SaidArg {
    /// Whoever makes a VDB says it
    From,
    /// The latest moment
    Moment,
    /// The engine's default
    Memory,
    Superuser,
    KeepSourceLogins,
    /// Of production nothing stays
    Keep,
    AllowNetwork,
    /// They listen on loopback alone
    Listen,
    Warm,
    /// They stay
    Expires,
    Description,
    Protect,
    RefreshKeeps,
    Gateway,
    StopWhenIdle,
}

impl SaidArg {
    /// The fields of the API that it is.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            SaidArg::From => &["from"],
            SaidArg::Moment => &["moment"],
            SaidArg::Memory => &["memory_bytes"],
            SaidArg::Superuser => &["superuser"],
            SaidArg::KeepSourceLogins => &["keep_source_logins"],
            SaidArg::Keep => &["keep_foreign_servers"],
            SaidArg::AllowNetwork => &["allow_network"],
            SaidArg::Listen => &["listen", "allow"],
            SaidArg::Warm => &["warm"],
            SaidArg::Expires => &["expires_in_ms"],
            SaidArg::Description => &["description"],
            SaidArg::Protect => &["protected"],
            SaidArg::RefreshKeeps => &["refresh_keeps"],
            SaidArg::Gateway => &["gateway", "stop_when_idle_ms"],
            SaidArg::StopWhenIdle => &["stop_when_idle_ms"],
        }
    }
}
