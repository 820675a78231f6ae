//! `offshoot replication create`

use crate::args::{duration_ms, size};
use clap::Args;

/// Say what is sent to another engine, and when
///
/// Of a dSource its snapshots and its log are sent, so that any commit opens there; of a VDB the snapshots that are ready. Passwords that the
/// engine keeps are not, but with --with-secrets. There it is PEER/NAME, read only, and VDBs are provisioned from it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot replication create nightly --to east --include all\n  \
                  offshoot replication create onward --to east --include all,replicas\n  \
                  offshoot replication create shop --to east --include dsource:shop,vdb:dev --schedule 'every 5min'\n  \
                  offshoot replication create shop --to east --include dsource:shop --continuous --rpo 1min\n  \
                  offshoot replication create nights --to east --include all --schedule '30 2 * * * Europe/Berlin'\n  \
                  offshoot replication create standby --to east --include all --continuous --with-secrets\n  \
                  offshoot replication create safe --to test --include all --masked-only --limit 50MB/s"
)]
pub struct CreateArgs {
    /// The name to give it
    pub name: String,
    /// The peer
    #[arg(long, value_name = "PEER")]
    pub to: String,
    /// dSources and VDBs, as dsource:NAME, vdb:NAME or NAME; or all, also those that are made later. Copies of other engines'
    /// are sent on by their names, as dsource:PEER/NAME, or all of them: replicas
    #[arg(long, value_name = "all|replicas|OBJECT,…", value_delimiter = ',', required = true)]
    pub include: Vec<String>,
    /// Send only what is masked
    #[arg(long)]
    pub masked_only: bool,
    /// Send the passwords, too: of a dSource the one for its source, of a VDB its own. A failover uses them; whoever rules the
    /// other engine can, too
    #[arg(long)]
    pub with_secrets: bool,
    /// When it runs by itself: every so often, or at times as crontab writes them, in UTC unless a time zone follows [default:
    /// when it is told to: offshoot replication run]
    #[arg(long, value_name = "'every DURATION'|CRONTAB", value_parser = schedule)]
    pub schedule: Option<Schedule>,
    /// Run always: send what is new as it comes
    #[arg(long, conflicts_with = "schedule")]
    pub continuous: bool,
    /// How far behind the peer may be; what is more is a fault [default: it never is]
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    pub rpo: Option<u64>,
    /// How much it may send a second [default: as much as it can]
    #[arg(long, value_name = "SIZE/s", value_parser = rate)]
    pub limit: Option<u64>,
    /// How many objects are sent at the same time, each by a connection of its own
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub connections: u8,
}

/// When something runs by itself.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// Every so many milliseconds.
    Every(u64),
    /// At these times; the engine reads them.
    Crontab(String),
}

fn schedule(text: &str) -> Result<Schedule, String> {
    match text.trim().strip_prefix("every") {
        Some(every) => duration_ms(every.trim()).map(Schedule::Every),
        None => Ok(Schedule::Crontab(text.trim().to_owned())),
    }
}

fn rate(text: &str) -> Result<u64, String> {
    let amount = text.trim().strip_suffix("/s");
    size(amount.ok_or_else(|| "write it as 50MB/s".to_owned())?)
}
