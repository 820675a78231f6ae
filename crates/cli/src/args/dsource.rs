//! `offshoot dsource …`

use super::{JobArgs, ListArgs, NameArgs, NamesJobArgs, RemovalsArgs, duration_ms};
use crate::source::SourceUri;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum DsourceCommand {
    Link(LinkArgs),
    List(ListDsourcesArgs),
    /// Show a dSource: how far it is synchronised, its snapshots
    #[command(after_help = "Example:\n  offshoot dsource show prod")]
    Show(NameArgs),
    Set(SetArgs),
    /// Receive what the source has flushed by now and take a snapshot
    #[command(after_help = "Example:\n  offshoot dsource sync prod")]
    Sync(NamesJobArgs),
    /// Stop following the source
    #[command(after_help = "Example:\n  offshoot dsource pause prod")]
    Pause(NamesJobArgs),
    /// Follow the source again
    #[command(after_help = "Example:\n  offshoot dsource resume prod")]
    Resume(NamesJobArgs),
    /// Remove a dSource; VDBs made from it stay
    ///
    /// Its snapshots and bookmarks go with it. On a terminal it says what goes, and asks.
    #[command(after_help = "Example:\n  offshoot dsource unlink prod")]
    Unlink(RemovalsArgs),
}

/// Link a source database: copy it once and follow its log from then on
///
/// The role needs REPLICATION and CONNECT. The password is taken from --password-file, the URI, PGPASSWORD and
/// ~/.pgpass (or PGPASSFILE), in this order. sslmode, sslrootcert, sslcert and sslkey in the URI mean what
/// they mean to PostgreSQL's own programs; their files are on the engine's host.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot dsource link prod \
                        --source postgresql://replicator@db:5432/postgres \\\n      \
                        --password-file secret.txt --snapshot-every 10min\n  \
                        offshoot dsource link prod --source \\\n      \
                        'postgresql://replicator@db/postgres?sslmode=verify-full&sslrootcert=/etc/db-ca.crt'")]
pub struct LinkArgs {
    /// The name to give it
    pub name: String,
    /// The kind of database
    #[arg(long, default_value = "postgres", value_parser = ["postgres"])]
    pub connector: String,
    /// Where the source is: postgresql://user@host:port/database
    #[arg(long, value_name = "URI", value_parser = SourceUri::parse)]
    pub source: SourceUri,
    /// A file whose first line is the password
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Take a snapshot this often while there are changes [default: 10min]
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    pub snapshot_every: Option<u64>,
    #[command(flatten)]
    pub job: JobArgs,
}

/// Change how the source is reached: its address, role, password or TLS
///
/// It must be the same database, which is checked before anything changes; what was copied and received stays. The
/// password is looked for as `dsource link` does; without one, the present one stays.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot dsource set prod --password-file new-secret.txt\n  \
                        offshoot dsource set prod --source \
                        'postgresql://replicator@db2/postgres?sslmode=verify-full'")]
pub struct SetArgs {
    /// Its name
    pub name: String,
    /// Where the source is now: postgresql://user@host:port/database
    #[arg(long, value_name = "URI", value_parser = SourceUri::parse)]
    pub source: Option<SourceUri>,
    /// A file whose first line is the password
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    #[command(flatten)]
    pub job: JobArgs,
}

/// List dSources
///
/// Columns: name, state, database, size, stored, synced-to, lag, snapshots; and source, linked-at, error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot dsource list --json\n  \
                        offshoot dsource list --state failed,disconnected --columns name,source,error\n  \
                        offshoot dsource list --sort -lag")]
pub struct ListDsourcesArgs {
    /// Only those in this state; may be given several times
    #[arg(long, value_delimiter = ',', value_parser = ["linking", "active", "disconnected",
        "paused", "failed", "masked", "replica", "unlinking"])]
    pub state: Vec<String>,
    #[command(flatten)]
    pub list: ListArgs,
}
