//! `offshoot user …`, `offshoot token …` and `offshoot audit`

use super::policy::{Choice, size_or_none};
use super::{ListArgs, NameArgs, duration_ms, size, time};
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use offshoot_api::Role;
use offshoot_types::TokenId;

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    Add(UserAddArgs),
    Set(UserSetArgs),
    List(ListUsersArgs),
    /// Remove a user and its tokens; its VDBs belong to the administrators then
    #[command(after_help = "Example:\n  offshoot user remove eve")]
    Remove(NameArgs),
}

/// List users
///
/// Columns: user, role, vdbs, space, parents, created-at.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot user list\n  offshoot user list --role developer --sort -space"
)]
pub struct ListUsersArgs {
    /// Only those of this role
    #[arg(long, value_enum)]
    pub role: Option<RoleArg>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// List tokens; not the tokens themselves, which are kept nowhere
///
/// Columns: token, user, created-at, expires-at.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot token list\n  offshoot token list --user eve --sort expires-at"
)]
pub struct ListTokensArgs {
    /// Only those of this user
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Add a user, who may then be given tokens
///
/// admin: may do everything. operator: runs dSources and VDBs of everybody; neither links sources nor sees passwords
/// of others. developer: has VDBs of its own, made from --parent. auditor: reads everything but passwords, and the audit.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot user add eve --role developer --parent prod --vdbs 5 --space 20GiB\n  \
                        offshoot user add olga --role operator"
)]
pub struct UserAddArgs {
    /// The name to give it
    pub name: String,
    /// What it is there for
    #[arg(long, value_enum)]
    pub role: RoleArg,
    /// A dSource or VDB that a developer may make VDBs from; may be given several times
    #[arg(long = "parent", value_name = "DSOURCE|VDB")]
    pub parents: Vec<String>,
    /// How many VDBs it may have [default: as many as it likes]
    #[arg(long, value_name = "N")]
    pub vdbs: Option<u32>,
    /// What these may take in the pool for themselves, together [default: as much as there is]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub space: Option<u64>,
}

/// Change what a user may do
///
/// What is not named stays, and so do VDBs that a user has already, even if they are more than it may have.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot user set eve --vdbs 10 --space 50GiB\n  \
                        offshoot user set eve --space none --parent prod --parent staging")]
pub struct UserSetArgs {
    /// Its name
    pub name: String,
    #[command(flatten)]
    pub change: UserChangeArgs,
}

/// At least one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct UserChangeArgs {
    /// A dSource or VDB that a developer may make VDBs from, in place of those before; may be given several times
    #[arg(long = "parent", value_name = "DSOURCE|VDB")]
    pub parents: Vec<String>,
    /// How many VDBs it may have, or `none` for no limit
    #[arg(long, value_name = "N|none", value_parser = number_or_none)]
    pub vdbs: Option<NumberChoice>,
    /// What these may take in the pool for themselves, together, or `none` for no limit
    #[arg(long, value_name = "SIZE|none", value_parser = size_or_none)]
    pub space: Option<Choice>,
}

/// A number, or no limit.
#[derive(Debug, Clone, Copy)]
pub struct NumberChoice(pub Option<u32>);

fn number_or_none(text: &str) -> Result<NumberChoice, String> {
    match text {
        "none" => Ok(NumberChoice(None)),
        _ => text
            .parse()
            .map(|number| NumberChoice(Some(number)))
            .map_err(|_| "write a number, or none".to_owned()),
    }
}

/// What a user is there for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum RoleArg {
    Admin,
    Operator,
    Developer,
    Auditor,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Role {
        match role {
            RoleArg::Admin => Role::Admin,
            RoleArg::Operator => Role::Operator,
            RoleArg::Developer => Role::Developer,
            RoleArg::Auditor => Role::Auditor,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    Create(TokenCreateArgs),
    List(ListTokensArgs),
    /// Take a token back
    #[command(after_help = "Example:\n  offshoot token revoke token-3")]
    Revoke {
        /// Its id
        id: TokenId,
    },
}

/// Make a token for a user and print it: this is the only time that it is shown
///
/// The user names a file with it by --token-file or OFFSHOOT_TOKEN_FILE.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  (umask 077; offshoot token create --user eve --expires 30d > eve.token)\n  \
                        offshoot vdb list --token-file eve.token"
)]
pub struct TokenCreateArgs {
    /// The name of the user
    #[arg(long, value_name = "NAME")]
    pub user: String,
    /// For how long it is good [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    pub expires: Option<u64>,
}

/// Show who asked for what, from where, and what became of it; newest first
///
/// It has what was changed, what was refused, and who looked at the password of somebody else's VDB.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot audit --since 7d\n  \
                        offshoot audit --since '2026-11-21 14:00+00' --user eve --json")]
pub struct AuditArgs {
    /// Not what is older: a duration, or a time
    #[arg(long, value_name = "DURATION|TIME", value_parser = since, allow_hyphen_values = true)]
    pub since: Option<Timestamp>,
    /// Only what this user asked for
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The newest so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: u32,
}

/// A time, or one so long before now.
fn since(text: &str) -> Result<Timestamp, String> {
    let before = offshoot_domain::parse_duration(text).map(|_| format!("-{text}"));
    time(before.as_deref().unwrap_or(text)).map(|parsed| parsed.time)
}
