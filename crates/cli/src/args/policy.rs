//! `offshoot policy …`

use super::{duration_ms, size};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Show how dSources and VDBs are kept: all of them, or one
    #[command(after_help = "Example:\n  offshoot policy show prod")]
    Show {
        /// The name of a dSource or VDB
        #[arg(value_name = "DSOURCE|VDB")]
        name: Option<String>,
    },
    Set(SetArgs),
}

/// Change how a dSource or VDB is kept; settings that are not named stay as they are
///
/// A snapshot stays while any of these durations keeps it, and for ever if `snapshot take` took it or a
/// bookmark names it. `none` switches off a duration or the quota. The latest snapshot that opens is never
/// removed. What is no longer kept is removed soon after.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot policy set prod --snapshot-every 10min --keep-all 24h \
                        --hourly 7d --daily 30d --weekly 1y --log 7d\n  \
                        offshoot policy set dev --snapshot-every 1h --quota 50GiB\n  \
                        offshoot policy set prod --open-within 2s"
)]
pub struct SetArgs {
    /// The name of a dSource or VDB
    #[arg(value_name = "DSOURCE|VDB")]
    pub name: String,
    #[command(flatten)]
    pub change: ChangeArgs,
}

/// At least one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct ChangeArgs {
    /// Take a snapshot this often while there are changes, or `never`
    #[arg(long, value_name = "DURATION", value_parser = duration_or_never)]
    pub snapshot_every: Option<Choice>,
    /// Keep every snapshot for this long; for a VDB also what a rewind or refresh replaced
    #[arg(long, value_name = "DURATION", value_parser = reach)]
    pub keep_all: Option<u64>,
    /// Keep the first snapshot of each hour (UTC) for this long
    #[arg(long, value_name = "DURATION", value_parser = reach)]
    pub hourly: Option<u64>,
    /// Keep the first snapshot of each day (UTC) for this long
    #[arg(long, value_name = "DURATION", value_parser = reach)]
    pub daily: Option<u64>,
    /// Keep the first snapshot of each week (UTC, from Monday) for this long
    #[arg(long, value_name = "DURATION", value_parser = reach)]
    pub weekly: Option<u64>,
    /// Keep the log so that any moment opens for this long (dSources)
    #[arg(long, value_name = "DURATION", value_parser = reach)]
    pub log: Option<u64>,
    /// The most it may take in the pool for itself, or `none`
    #[arg(long, value_name = "SIZE", value_parser = size_or_none)]
    pub quota: Option<Choice>,
    /// Have this many VDBs of the latest moment run before anybody asks for one (dSources): `vdb provision --warm`
    #[arg(long, value_name = "N")]
    pub warm: Option<u32>,
    /// Have any moment open within this time, as near as recovery points must lie for that (dSources; at first 3s)
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    pub open_within: Option<u64>,
}

/// A number, or the word for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice(pub Option<u64>);

/// A duration, or the word for none.
pub(super) fn duration_or_never(text: &str) -> Result<Choice, String> {
    match text {
        "never" | "none" => Ok(Choice(None)),
        _ => duration_ms(text).map(|ms| Choice(Some(ms))),
    }
}

fn reach(text: &str) -> Result<u64, String> {
    match text {
        "none" | "0" => Ok(0),
        _ => duration_ms(text),
    }
}

/// A size, or the word for none.
pub(super) fn size_or_none(text: &str) -> Result<Choice, String> {
    match text {
        "none" => Ok(Choice(None)),
        _ => size(text).map(|bytes| Choice(Some(bytes))),
    }
}
