//! The grammar of the command line.

mod access;
mod bisect;
mod bookmark;
mod diff;
mod dsource;
mod failover;
mod group;
mod hook;
mod host;
mod job;
mod list;
mod mask;
mod moment;
mod peer;
mod policy;
mod pool;
mod replication;
mod secret;
mod snapshot;
mod template;
mod vdb;
mod webhook;

pub use access::{AuditArgs, TokenCommand, TokenCreateArgs, UserAddArgs, UserCommand, UserSetArgs};
pub use bisect::{BisectArgs, End};
pub use bookmark::{
    BookmarkCommand, CreateArgs as BookmarkCreateArgs, ListBookmarksArgs, TimeflowCommand,
};
pub use diff::DiffArgs;
pub use dsource::{DsourceCommand, LinkArgs, ListDsourcesArgs, SetArgs};
pub use failover::FailoverArgs;
pub use group::{GroupCommand, ProvisionArgs as GroupProvisionArgs};
pub use hook::{EventArg, HookArgs, HooksArgs};
pub use host::{CompletionsArgs, DoctorArgs, ManArgs, McpArgs};
pub use job::{JobCommand, ListJobsArgs};
pub use list::ListArgs;
pub use mask::{
    ApplyArgs as MaskApplyArgs, CheckArgs as MaskCheckArgs, DiscoverArgs as MaskDiscoverArgs,
    InitArgs as MaskInitArgs, KeyCommand as MaskKeyCommand, MaskCommand,
    PreviewArgs as MaskPreviewArgs, ReportArgs as MaskReportArgs,
};
pub use moment::{MomentArgs, TimeArgs};
pub use peer::{PeerAddArgs, PeerCommand, PeerInviteArgs};
pub use policy::{PolicyCommand, SetArgs as PolicySetArgs};
pub use pool::{PoolCommand, ScrubArgs};
pub use replication::{
    CreateArgs as ReplicationCreateArgs, ExportArgs, ImportArgs, ListReplicationsArgs,
    ReplicationCommand, Schedule,
};
pub use secret::SecretCommand;
pub use snapshot::{ListSnapshotsArgs, SnapshotCommand};
pub use template::{SaidArg, TemplateCommand, TemplateCreateArgs, TemplateSetArgs};
pub use vdb::{
    ConnectArgs, KeepArg, ListVdbsArgs, LogsArgs, ProvisionArgs, RewindArgs, VdbChangeArgs,
    VdbCommand, VdbOptionArgs,
};
pub use webhook::{WebhookAddArgs, WebhookChangeArgs, WebhookCommand, WebhookSetArgs};

use clap::{Args, Parser, Subcommand};
use jiff::Timestamp;
use offshoot_bench::BenchCommand;
use offshoot_domain::ParsedTime;
use offshoot_os::{Clock, SystemClock};
use offshoot_types::Failure;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Virtual databases made from any moment of a synchronised copy of production.
#[derive(Debug, Parser)]
#[command(
    name = "offshoot",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  offshoot serve --pool /data/pool\n  \
                  offshoot dsource link prod --source postgresql://replicator@db:5432/postgres\n  \
                  offshoot vdb provision dev --from prod\n  \
                  offshoot vdb connect dev"
)]
pub struct Cli {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub struct TargetArgs {
    /// Print one JSON document on stdout, and nothing else
    #[arg(long, global = true)]
    pub json: bool,
    /// Talk to the engine of this pool [env: OFFSHOOT_POOL] [default: /var/lib/offshoot as root, else
    /// $XDG_DATA_HOME/offshoot]
    #[arg(
        long,
        global = true,
        help_heading = "Engine",
        value_name = "DIR",
        conflicts_with = "server"
    )]
    pub pool: Option<PathBuf>,
    /// Talk to the engine at this address [env: OFFSHOOT_SERVER]
    #[arg(long, global = true, help_heading = "Engine", value_name = "URL")]
    pub server: Option<String>,
    /// A file with your token; not needed for a pool of your own [env: OFFSHOOT_TOKEN_FILE]
    #[arg(long, global = true, help_heading = "Engine", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(ServeArgs),
    /// Hold the mounts of a pool's running VDBs; started by the engine
    #[command(hide = true, after_help = "Example:\n  offshoot keeper --pool /data/pool")]
    Keeper,
    /// Confine a program and become it; started by the engine
    #[command(
        hide = true,
        after_help = "Example:\n  offshoot cell '{\"user\":null,\"read_only\":[],\"own\":[],\"port\":null,\"udp\":false}' -- /bin/ls /"
    )]
    Cell {
        /// What the cell contains, as JSON
        spec: String,
        /// The program and its arguments
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Hold the connections of a VDB while its server is away; started by the engine
    #[command(
        hide = true,
        after_help = "Example:\n  offshoot gateway /run/g/control '{\"name\":\"dev\",\"listen\":[\"127.0.0.1:6500\"],\"control\":\"/run/g/control\",\"controller\":0}'"
    )]
    Gateway {
        /// Where it is controlled; names it among processes
        control: PathBuf,
        /// What it is, as JSON
        options: String,
    },
    /// Show engine, pool, cache and faults at a glance
    #[command(after_help = "Example:\n  offshoot status")]
    Status,
    /// Print a link that signs in to the engine's console in a browser, once, within ten minutes
    #[command(after_help = "Examples:\n  offshoot console\n  \
                            offshoot console --server https://engine.example:7640 --token-file eve.token")]
    Console,
    Login(LoginArgs),
    Demo(DemoArgs),
    Doctor(DoctorArgs),
    Mcp(McpArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    /// Link sources and follow them
    #[command(
        subcommand,
        after_help = "Example:\n  offshoot dsource link prod --source postgresql://replicator@db:5432/postgres"
    )]
    Dsource(DsourceCommand),
    /// Take and look at snapshots
    #[command(subcommand, after_help = "Example:\n  offshoot snapshot list prod")]
    Snapshot(SnapshotCommand),
    /// Provision and use virtual databases
    #[command(
        subcommand,
        after_help = "Examples:\n  offshoot vdb provision dev --from prod\n  offshoot vdb connect dev"
    )]
    Vdb(VdbCommand),
    /// Use several databases that belong together, at one moment
    #[command(
        subcommand,
        after_help = "Examples:\n  offshoot group create release --members shop,orders\n  \
                      offshoot group provision dev --group release"
    )]
    Group(GroupCommand),
    /// Make copies that hold no real person
    #[command(
        subcommand,
        after_help = "Example:\n  offshoot mask apply masking.yaml --from shop --as shop-masked"
    )]
    Mask(MaskCommand),
    Diff(DiffArgs),
    Bisect(BisectArgs),
    /// Say which other engines send here, and to which this one sends
    #[command(
        subcommand,
        after_help = "Examples:\n  offshoot peer invite --as west\n  \
                      offshoot peer add east --address east.example:7640 --code peer1-…"
    )]
    Peer(PeerCommand),
    /// Send dSources and VDBs to other engines, by the network or as archives
    #[command(
        subcommand,
        after_help = "Examples:\n  offshoot replication create nightly --to east --include all\n  \
                      offshoot replication run nightly\n  \
                      offshoot replication export shop --output shop.offshoot\n  \
                      offshoot replication import shop.offshoot --as west"
    )]
    Replication(ReplicationCommand),
    Failover(FailoverArgs),
    /// Draw which engine sends to which, as far as this one has heard
    ///
    /// Engines tell each other whom they know whenever they speak. An engine is called as it is on the way to it: middle/far is
    /// what 'middle' calls far.
    #[command(after_help = "Examples:\n  offshoot topology\n  offshoot topology --json")]
    Topology,
    /// Give names to moments
    #[command(
        subcommand,
        after_help = "Example:\n  offshoot bookmark create before-release --on prod"
    )]
    Bookmark(BookmarkCommand),
    /// Look at histories
    #[command(subcommand, after_help = "Example:\n  offshoot timeflow show prod")]
    Timeflow(TimeflowCommand),
    /// Say once what VDBs are to be like
    #[command(
        subcommand,
        after_help = "Example:\n  offshoot template create ci --from shop-masked --expires 1d"
    )]
    Template(TemplateCommand),
    /// Set how dSources and VDBs are kept: snapshots, retention, quota
    #[command(subcommand, after_help = "Example:\n  offshoot policy set prod --log 7d")]
    Policy(PolicyCommand),
    /// Look at work in progress
    #[command(subcommand, after_help = "Example:\n  offshoot job list")]
    Job(JobCommand),
    /// Say who may use the engine, and for what
    #[command(
        subcommand,
        after_help = "Example:\n  offshoot user add eve --role developer --parent prod"
    )]
    User(UserCommand),
    /// Give users what they are known by
    #[command(
        subcommand,
        after_help = "Example:\n  offshoot token create --user eve --expires 30d"
    )]
    Token(TokenCommand),
    Audit(AuditArgs),
    /// Tell other programs of events and faults, by messages over HTTP
    #[command(
        subcommand,
        after_help = "Example:\n  offshoot webhook add ci --url https://ci.example/offshoot --events 'fault.*,job.*.failed'"
    )]
    Webhook(WebhookCommand),
    /// Look after the key that passwords in the pool are sealed with
    #[command(subcommand, after_help = "Example:\n  offshoot secret rotate")]
    Secret(SecretCommand),
    /// Look at the pool
    #[command(subcommand, after_help = "Example:\n  offshoot pool status")]
    Pool(PoolCommand),
    /// Measure speed and space, compared with what you would do without Offshoot
    #[command(subcommand, after_help = "Example:\n  offshoot bench provision --repeats 5")]
    Bench(BenchCommand),
}

/// Run the engine of a pool in the foreground
///
/// Creates the pool where the directory is missing or empty. Logs to stderr, prints `ready` on stdout when it answers; on SIGTERM or
/// SIGINT it stops VDBs cleanly and exits. After it was killed, start it again: running VDBs continue, and their
/// clients wait until then.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot serve --pool /data/pool --cache-size 4GiB\n  \
                        offshoot serve --pool /data/pool --socket-group developers\n  \
                        offshoot serve --pool /data/pool --encrypt --secret-key /etc/offshoot/pool.key\n  \
                        offshoot serve --pool /data/pool --listen 0.0.0.0:7640 --host-name engine.example\n\n\
                        Logging is set by OFFSHOOT_LOG, as in OFFSHOOT_LOG=debug; OFFSHOOT_LOG_FORMAT=json writes an object per line.")]
pub struct ServeArgs {
    /// Listen here; by TLS, if it is not on loopback. Port 0 picks a free one [default: 127.0.0.1:7640]
    #[arg(long, overrides_with = "listen", value_name = "ADDRESS", value_parser = listen)]
    pub listen: Option<SocketAddr>,
    /// Let members of this group of the host connect to the pool's Unix socket; they still need a token
    #[arg(long, overrides_with = "socket_group", value_name = "GROUP")]
    pub socket_group: Option<String>,
    /// Answer by TLS with this certificate, in PEM [default: one that the engine makes where it needs one]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of --tls-cert, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// A name that this host is called by, besides its addresses; may be given several times
    #[arg(long = "host-name", value_name = "NAME")]
    pub host_names: Vec<String>,
    /// Memory of the shared block cache
    #[arg(long, overrides_with = "cache_size", value_name = "SIZE", value_parser = size)]
    pub cache_size: Option<u64>,
    /// Memory from which servers of VDBs read without asking the engine, of all of them together; taken as it is used, beside
    /// the cache [default: none]
    #[arg(long, overrides_with = "direct_size", value_name = "SIZE", value_parser = size)]
    pub direct_size: Option<u64>,
    /// The most that data may take of the pool's file system [default: all of it]
    #[arg(long, overrides_with = "capacity", value_name = "SIZE", value_parser = size)]
    pub capacity: Option<u64>,
    /// The file with the key that passwords in the pool are sealed with; made where missing [env:
    /// OFFSHOOT_SECRET_KEY_FILE] [default: one made outside of the pool]
    #[arg(long, overrides_with = "secret_key", value_name = "FILE")]
    pub secret_key: Option<PathBuf>,
    /// Open a pool whose key of the secrets is lost for good: forget what was sealed with it. VDBs keep their passwords, but
    /// the engine no longer knows them; those of sources have to be given again
    #[arg(long)]
    pub forget_secrets: bool,
    /// Encrypt everything in a new pool; without the key of its secrets it cannot be opened
    #[arg(long)]
    pub encrypt: bool,
    /// Read settings from this file; options on the command line override them
    #[arg(long, overrides_with = "config", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Send traces of jobs to this collector, as OTLP by HTTP
    #[arg(long, value_name = "URL")]
    pub traces: Option<String>,
    /// Run servers as plain processes: users of VDBs can then run programs on this host
    #[arg(long)]
    pub unconfined: bool,
    /// Replace the engine that serves the pool; running VDBs and their clients continue
    #[arg(long)]
    pub takeover: bool,
}

/// Remember the certificate of an engine on another host, so that nobody else is taken for it
///
/// The engine shows its fingerprint in `offshoot status` there. Without --fingerprint, the one that the engine shows is
/// asked about on the terminal.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  offshoot login https://engine.example:7640 --fingerprint sha256:…\n  \
                        offshoot vdb list --server https://engine.example:7640 --token-file eve.token"
)]
pub struct LoginArgs {
    /// The address of the engine, as https://HOST:PORT
    pub url: String,
    /// What the certificate must be
    #[arg(long, value_name = "SHA256")]
    pub fingerprint: Option<String>,
}

/// Show what Offshoot does: a sample source, a dSource linked to it, four VDBs, one of them masked, a tour
///
/// Starts its own PostgreSQL and engine in a scratch directory, which is removed at the end. Without --exit
/// everything keeps running until Ctrl-C, so that you can try it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  offshoot demo --exit")]
pub struct DemoArgs {
    /// End once everything was shown
    #[arg(long)]
    pub exit: bool,
    /// Size of the sample source, about 15 MiB each
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub scale: u32,
}

/// What commands that start a job take.
#[derive(Debug, Clone, Copy, Args)]
pub struct JobArgs {
    /// Print the job's id and do not wait for its end
    #[arg(long)]
    pub detach: bool,
}

/// A command that names one object.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// Its name
    pub name: String,
}

/// One object or several.
#[derive(Debug, Args)]
pub struct Names {
    /// Its name; of several, the same is done with each, and one that fails holds up no other
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

impl Names {
    pub fn all(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}

/// A command that names objects and starts a job for each.
#[derive(Debug, Args)]
pub struct NamesJobArgs {
    #[command(flatten)]
    pub names: Names,
    #[command(flatten)]
    pub job: JobArgs,
}

/// A command that names one object and starts a job.
#[derive(Debug, Args)]
pub struct NameJobArgs {
    /// Its name
    pub name: String,
    #[command(flatten)]
    pub job: JobArgs,
}

/// A command that removes an object.
#[derive(Debug, Args)]
pub struct RemovalArgs {
    /// Its name
    pub name: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub job: JobArgs,
}

/// A command that removes objects.
#[derive(Debug, Args)]
pub struct RemovalsArgs {
    #[command(flatten)]
    pub names: Names,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub job: JobArgs,
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    offshoot_server::parse_listen(text).map_err(reason)
}

fn size(text: &str) -> Result<u64, String> {
    offshoot_domain::parse_size(text).map_err(reason)
}

fn duration_ms(text: &str) -> Result<u64, String> {
    let duration = offshoot_domain::parse_duration(text).map_err(reason)?;
    u64::try_from(duration.as_millis()).map_err(|_| format!("{text} is too long"))
}

/// A time, perhaps by the clock of this host.
fn time(text: &str) -> Result<ParsedTime, String> {
    let now = Timestamp::try_from(SystemClock.now()).map_err(|error| error.to_string())?;
    offshoot_domain::parse_time_near(text, now).map_err(reason)
}

/// What clap prints after an argument it does not accept.
fn reason(failure: Failure) -> String {
    format!("{}; {}", failure.message, failure.hint)
}

#[cfg(test)]
mod tests;
