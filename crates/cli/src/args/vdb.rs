//! `offshoot vdb …`

use super::{JobArgs, MomentArgs, NameArgs, NameJobArgs, RemovalArgs, size};
use clap::{Args, Subcommand};
use ipnet::IpNet;
use offshoot_types::{Failure, Remote, SnapshotId};
use std::net::IpAddr;

#[derive(Debug, Subcommand)]
pub enum VdbCommand {
    Provision(ProvisionArgs),
    /// List VDBs
    #[command(after_help = "Example:\n  offshoot vdb list")]
    List,
    /// Show a VDB: where to connect, what it takes, how long it took
    #[command(after_help = "Example:\n  offshoot vdb show dev --json")]
    Show(NameArgs),
    Connect(ConnectArgs),
    /// Print what a VDB shows clients of other hosts, in PEM
    #[command(after_help = "Example:\n  offshoot vdb certificate dev > dev.crt\n  \
                            psql \"host=10.1.0.5 port=6500 user=offshoot dbname=shop \\\n    \
                            sslmode=verify-full sslrootcert=dev.crt\"")]
    Certificate(NameArgs),
    /// Start a stopped VDB
    #[command(after_help = "Example:\n  offshoot vdb start dev")]
    Start(NameJobArgs),
    /// Stop a VDB; its data is kept
    #[command(after_help = "Example:\n  offshoot vdb stop dev")]
    Stop(NameJobArgs),
    /// Give a running VDB another password; open sessions stay
    #[command(after_help = "Example:\n  offshoot vdb reset-password dev")]
    ResetPassword(NameJobArgs),
    /// Delete a VDB; what was made from it stays
    ///
    /// Its snapshots and bookmarks go with it. On a terminal it says what goes, and asks.
    #[command(after_help = "Example:\n  offshoot vdb delete dev")]
    Delete(RemovalArgs),
    Refresh(RefreshArgs),
    Reparent(ReparentArgs),
    Rewind(RewindArgs),
}

/// Make a VDB from a moment of a dSource or another VDB
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot vdb provision dev --from prod\n  \
                        offshoot vdb provision before --from prod --at '2026-11-21 14:03:27+00' \
                        --set work_mem=64MB\n  \
                        offshoot vdb provision shared --from prod --listen 10.1.0.5 --allow 10.1.0.0/16")]
pub struct ProvisionArgs {
    /// The name to give it
    pub name: String,
    /// The dSource or VDB to make it from
    #[arg(long, value_name = "DSOURCE|VDB")]
    pub from: String,
    #[command(flatten)]
    pub moment: MomentArgs,
    /// The port to listen on; by default a free one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
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
    #[command(flatten)]
    pub job: JobArgs,
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

/// Open a newer (or any) moment of the parent under the same name, port and credentials
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  offshoot vdb refresh dev --latest")]
pub struct RefreshArgs {
    /// Its name
    pub name: String,
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
