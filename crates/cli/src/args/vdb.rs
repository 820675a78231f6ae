//! `offshoot vdb …`

use super::hook::{EventArg, HookArgs, HooksArgs};
use super::policy::{Choice, duration_or_never, size_or_none};
use super::{
    JobArgs, ListArgs, MomentArgs, NameArgs, NameJobArgs, Names, NamesJobArgs, RemovalsArgs,
    duration_ms, size,
};
use clap::{Args, Subcommand, ValueEnum};
use ipnet::IpNet;
use offshoot_api::Kept;
use offshoot_types::{Failure, Remote, SnapshotId};
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum VdbCommand {
    Provision(Box<ProvisionArgs>),
    List(ListVdbsArgs),
    /// Show a VDB: where to connect, what it takes, how long it took
    #[command(after_help = "Example:\n  offshoot vdb show dev --json")]
    Show(NameArgs),
    Connect(ConnectArgs),
    Exec(ExecArgs),
    Set(Box<SetVdbArgs>),
    Logs(LogsArgs),
    Hooks(HooksArgs),
    /// Print what a VDB shows clients of other hosts, in PEM
    #[command(after_help = "Example:\n  offshoot vdb certificate dev > dev.crt\n  \
                            psql \"host=10.1.0.5 port=6500 user=offshoot dbname=shop \\\n    \
                            sslmode=verify-full sslrootcert=dev.crt\"")]
    Certificate(NameArgs),
    /// Start stopped VDBs
    #[command(after_help = "Examples:\n  offshoot vdb start dev\n  offshoot vdb start dev staging")]
    Start(NamesJobArgs),
    /// Stop VDBs; their data is kept
    #[command(after_help = "Examples:\n  offshoot vdb stop dev\n  offshoot vdb stop dev staging")]
    Stop(NamesJobArgs),
    /// Give a running VDB another password; open sessions stay
    #[command(after_help = "Example:\n  offshoot vdb reset-password dev")]
    ResetPassword(NameJobArgs),
    /// Delete VDBs; what was made from them stays
    ///
    /// Their snapshots and bookmarks go with them. On a terminal it says what goes, and asks.
    #[command(
        after_help = "Examples:\n  offshoot vdb delete dev\n  offshoot vdb delete pr17 pr18 --yes"
    )]
    Delete(RemovalsArgs),
    Refresh(RefreshArgs),
    Reparent(ReparentArgs),
    Rewind(RewindArgs),
}

/// Make a VDB from a moment of a dSource or another VDB
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot vdb provision dev --from prod\n  \
                        offshoot vdb provision before --from prod --at '2026-11-21 14:03:27+00' \
                        --set work_mem=64MB\n  \
                        offshoot vdb provision pr17 --from prod --expires 3d --label pr=17\n  \
                        offshoot vdb provision dev --from prod --hook after-provision=users.sql\n  \
                        offshoot vdb provision dev --from prod --stop-when-idle 30min\n  \
                        offshoot vdb provision pr18 --template ci\n  \
                        offshoot vdb provision shared --from prod --listen 10.1.0.5 --allow 10.1.0.0/16")]
pub struct ProvisionArgs {
    /// The name to give it
    pub name: String,
    /// The dSource or VDB to make it from; by default that of its template
    #[arg(long, value_name = "DSOURCE|VDB", required_unless_present = "template")]
    pub from: Option<String>,
    /// A template, for all that is not said here
    #[arg(long, value_name = "TEMPLATE")]
    pub template: Option<String>,
    #[command(flatten)]
    pub moment: MomentArgs,
    /// The port to listen on; by default a free one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    #[command(flatten)]
    pub options: VdbOptionArgs,
    #[command(flatten)]
    pub job: JobArgs,
}

/// What a VDB is to be like.
#[derive(Debug, Args)]
pub struct VdbOptionArgs {
    /// A setting of the database; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// A limit of its memory
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Make the user a superuser, who may also run programs in the server's cell
    #[arg(long)]
    pub superuser: bool,
    /// Allow the source's logins here, too, with the passwords they have in production
    #[arg(long)]
    pub keep_source_logins: bool,
    /// What else stays as in production: addresses of other databases and the passwords for them
    #[arg(long, value_name = "WHAT")]
    pub keep: Vec<KeepArg>,
    /// A port of another host that it may connect to; by default it reaches none
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = remote)]
    pub allow_network: Vec<Remote>,
    /// An address of the engine's host to listen on, too: by TLS, for those that --allow names
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub listen: Vec<IpAddr>,
    /// A network, or an address, that may connect from elsewhere; may be given several times
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    pub allow: Vec<IpNet>,
    /// Take a copy that runs already, if there is one: of a moment that may be a minute old. Ask for such copies by
    /// `policy set DSOURCE --warm N`
    #[arg(long)]
    pub warm: bool,
    /// Delete it after this long
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    pub expires: Option<u64>,
    /// A label to find it by; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub label: Vec<(String, String)>,
    /// What it is for, in one line
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Refuse to delete, refresh or rewind it
    #[arg(long, conflicts_with = "expires")]
    pub protect: bool,
    /// What a refresh keeps of it beside its name, port and password
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub refresh_keeps: Vec<KeptArg>,
    #[command(flatten)]
    pub hooks: HookArgs,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// What users made in a VDB beside its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeptArg {
    /// Roles, with their passwords and memberships
    Roles,
    /// Settings of databases and roles, and those of ALTER SYSTEM
    Settings,
}

impl From<KeptArg> for Kept {
    fn from(kept: KeptArg) -> Kept {
        match kept {
            KeptArg::Roles => Kept::Roles,
            KeptArg::Settings => Kept::Settings,
        }
    }
}

/// One of these, or none of them.
#[derive(Debug, Clone, Copy)]
pub struct KeptChoice(pub Option<KeptArg>);

fn kept_or_none(text: &str) -> Result<KeptChoice, String> {
    match text {
        "none" => Ok(KeptChoice(None)),
        _ => KeptArg::from_str(text, false)
            .map(|kept| KeptChoice(Some(kept)))
            .map_err(|_| "write roles, settings, or none".to_owned()),
    }
}

/// How its connections are kept.
#[derive(Debug, Args)]
pub struct GatewayArgs {
    /// Keep connections open over refresh, rewind and restart: a gateway holds them meanwhile
    #[arg(long)]
    pub gateway: bool,
    /// Stop its server when nobody has used it for this long; whoever connects starts it. It has a gateway then
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    pub stop_when_idle: Option<u64>,
}

/// Change a VDB's name, what is said about it, when it expires, its hooks, its gateway, its server's settings, memory or port
///
/// What is not named stays. Settings, memory, port, and a gateway given or taken away restart its server, and end its sessions, or
/// those that its gateway cannot keep; if the server does not start with them, it goes on with those it had.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot vdb set dev --expires 3d --label team=checkout --label pr=17\n  \
                        offshoot vdb set dev --set work_mem=64MB --unset jit --memory 2GiB\n  \
                        offshoot vdb set dev --refresh-keeps roles,settings\n  \
                        offshoot vdb set staging --protect\n  \
                        offshoot vdb set dev --name old-dev\n  \
                        offshoot vdb set staging --gateway --stop-when-idle 2h\n  \
                        offshoot vdb set dev --hook after-refresh=users.sql --no-hook after-rewind\n  \
                        offshoot vdb set dev --hook before-refresh=save.sh --hook after-refresh=load.sh"
)]
pub struct SetVdbArgs {
    /// Its name
    pub name: String,
    #[command(flatten)]
    pub change: VdbChangeArgs,
    #[command(flatten)]
    pub job: JobArgs,
}

/// At least one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct VdbChangeArgs {
    /// SQL to run in it, or a program (its first line as in #!/bin/sh) to run beside it, before or after something is done to
    /// it, in place of what ran then; may be given several times. `-` is stdin
    #[arg(long, value_name = "EVENT=FILE", value_parser = super::hook::hook)]
    pub hook: Vec<(EventArg, PathBuf)>,
    /// The database that these hooks run in; by default the one that its URI opens
    #[arg(long, value_name = "DATABASE", requires = "hook")]
    pub hook_database: Option<String>,
    /// How long each of these hooks may take; by default 10min
    #[arg(long, value_name = "DURATION", value_parser = duration_ms, requires = "hook")]
    pub hook_time_limit: Option<u64>,
    /// What a refresh keeps of it beside its name, port and password: roles, settings, or none
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = kept_or_none)]
    pub refresh_keeps: Vec<KeptChoice>,
    /// A hook to remove; may be given several times
    #[arg(long, value_name = "EVENT", value_enum)]
    pub no_hook: Vec<EventArg>,
    /// Another name
    #[arg(long = "name", value_name = "NEW NAME")]
    pub new_name: Option<String>,
    /// Another port to listen on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Delete it this long from now, or `never`
    #[arg(long, value_name = "DURATION", value_parser = duration_or_never)]
    pub expires: Option<Choice>,
    /// A label to set; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub label: Vec<(String, String)>,
    /// A label to remove; may be given several times
    #[arg(long, value_name = "KEY")]
    pub unlabel: Vec<String>,
    /// What it is for, in one line
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Refuse to delete, refresh or rewind it
    #[arg(long, conflicts_with = "unprotect")]
    pub protect: bool,
    /// Allow that again
    #[arg(long)]
    pub unprotect: bool,
    /// A setting of the database; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// A setting that is no longer to be set; may be given several times
    #[arg(long, value_name = "KEY")]
    pub unset: Vec<String>,
    /// A limit of its memory, or `none`
    #[arg(long, value_name = "SIZE", value_parser = size_or_none)]
    pub memory: Option<Choice>,
    /// Keep connections open over refresh, rewind and restart: a gateway holds them meanwhile
    #[arg(long, conflicts_with = "no_gateway")]
    pub gateway: bool,
    /// Have its server listen itself again
    #[arg(long)]
    pub no_gateway: bool,
    /// Stop its server when nobody has used it for this long, or `never`; whoever connects starts it. It has a gateway then
    #[arg(long, value_name = "DURATION", value_parser = duration_or_never)]
    pub stop_when_idle: Option<Choice>,
}

/// List VDBs, by name
///
/// Columns: name, state, parent, moment, port, size, unique, expires; and owner, labels, description, version, memory, hooks, created-at,
/// error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot vdb list\n  \
                        offshoot vdb list --label team=checkout --sort -unique --limit 10\n  \
                        offshoot vdb list --owner eve --state running --columns name,port,labels")]
pub struct ListVdbsArgs {
    /// Only those in this state; may be given several times
    #[arg(long, value_delimiter = ',', value_parser = ["provisioning", "running", "stopped", "failed"])]
    pub state: Vec<String>,
    /// Only those with this label, or with a label of this key; may be given several times: all must be there
    #[arg(long, value_name = "KEY[=VALUE]")]
    pub label: Vec<String>,
    /// Only those of this user
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    /// Only those that were made from this one
    #[arg(long, value_name = "DSOURCE|VDB")]
    pub parent: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Print the end of the log of a VDB's server
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot vdb logs dev\n  \
                        offshoot vdb logs dev --tail 500 | grep ERROR\n  \
                        offshoot vdb logs dev --follow")]
pub struct LogsArgs {
    /// Its name
    pub name: String,
    /// How many lines
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub tail: usize,
    /// Go on with what is written into it, until Ctrl-C; not with --json
    #[arg(long, short)]
    pub follow: bool,
}

/// What of production a VDB may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum KeepArg {
    /// Foreign servers with their addresses and passwords
    ForeignServers,
}

/// Open a VDB in psql
///
/// The password is passed in the environment. With --json, prints what `vdb show` prints instead.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot vdb connect dev\n  \
                        offshoot vdb connect dev -- -c 'select count(*) from orders'")]
pub struct ConnectArgs {
    /// Its name
    pub name: String,
    /// Arguments for psql
    #[arg(last = true, value_name = "PSQL ARGS")]
    pub psql: Vec<std::ffi::OsString>,
}

/// Run a program with a VDB's address and password in its environment
///
/// Programs that know libpq take PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE, others DATABASE_URL. Neither shows in the
/// list of processes. The exit code is the program's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot vdb exec dev -- pg_dump --schema-only\n  \
                        offshoot vdb exec dev -- npm test")]
pub struct ExecArgs {
    /// Its name
    pub name: String,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// Open a newer (or any) moment of the parent under the same name, port and credentials
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot vdb refresh dev --latest\n  \
                        offshoot vdb refresh dev staging --at -1h")]
pub struct RefreshArgs {
    #[command(flatten)]
    pub names: Names,
    #[command(flatten)]
    pub moment: MomentArgs,
    #[command(flatten)]
    pub job: JobArgs,
}

/// Give a VDB another parent, for example after its dSource was unlinked and linked again
///
/// What it holds, its snapshots and earlier states stay. The next refresh opens a moment of the new parent, which must be
/// of the same kind and major version. Where it is another database than the VDB came from, the command says so.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  offshoot vdb reparent dev --to prod")]
pub struct ReparentArgs {
    /// Its name
    pub name: String,
    /// The dSource to refresh it from
    #[arg(long, value_name = "DSOURCE")]
    pub to: String,
    #[command(flatten)]
    pub job: JobArgs,
}

/// Go back to an earlier state of the VDB itself
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot vdb rewind dev --snapshot snapshot-7\n  \
                        offshoot vdb rewind dev --undo")]
pub struct RewindArgs {
    /// Its name
    pub name: String,
    #[command(flatten)]
    pub to: RewindToArgs,
    #[command(flatten)]
    pub job: JobArgs,
}

/// Exactly one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct RewindToArgs {
    /// One of its own snapshots
    #[arg(long, value_name = "ID")]
    pub snapshot: Option<SnapshotId>,
    /// A bookmark on it
    #[arg(long, value_name = "NAME")]
    pub bookmark: Option<String>,
    /// The state before the last rewind or refresh
    #[arg(long)]
    pub undo: bool,
}

fn remote(text: &str) -> Result<Remote, String> {
    text.parse().map_err(|failure: Failure| format!("{}; {}", failure.message, failure.hint))
}

fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse()
        .or_else(|_| address())
        .map_err(|_| format!("'{text}' is no network: write it as 10.1.0.0/16, or as one address"))
}

/// A setting of a database, as `key=value`.
pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("write it as key=value".to_owned()),
    }
}
