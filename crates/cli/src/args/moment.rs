//! Which moment to open.

use super::time;
use clap::Args;
use jiff::Timestamp;
use offshoot_api::Moment;
use offshoot_domain::ParsedTime;
use offshoot_types::SnapshotId;

/// At most one of these; the latest moment if none is given.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct MomentArgs {
    /// The latest moment (the default)
    #[arg(long)]
    pub latest: bool,
    /// What this snapshot holds
    #[arg(long, value_name = "ID")]
    pub snapshot: Option<SnapshotId>,
    /// The last commit not after this time, as '2026-11-21 14:03:27.5+00', -1h, '90s ago' or 'yesterday 14:03'; UTC without a
    /// zone
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub at: Option<ParsedTime>,
    /// This position of the log, as 0/3A2B1C0
    #[arg(long, value_name = "LSN", value_parser = lsn)]
    pub lsn: Option<String>,
    /// What this bookmark names
    #[arg(long, value_name = "NAME")]
    pub bookmark: Option<String>,
    /// The commit of this transaction
    #[arg(long, value_name = "N")]
    pub xid: Option<u32>,
}

impl MomentArgs {
    /// The requested moment; says on stderr if a time was taken as UTC.
    pub fn moment(&self) -> Moment {
        if let Some(id) = self.snapshot {
            return Moment::Snapshot { id };
        }
        if let Some(at) = self.at {
            return Moment::At { time: told(at) };
        }
        if let Some(lsn) = self.lsn.clone() {
            return Moment::Lsn { lsn };
        }
        if let Some(name) = self.bookmark.clone() {
            return Moment::Bookmark { name };
        }
        self.xid.map_or(Moment::Latest, |xid| Moment::Xid { xid })
    }
}

/// At most one of these; the latest moment if none is given.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct TimeArgs {
    /// The latest moment that all have (the default)
    #[arg(long)]
    pub latest: bool,
    /// The last commits not after this time, as '2026-11-21 14:03:27.5+00' or -1h; UTC without a zone
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    pub at: Option<ParsedTime>,
}

impl TimeArgs {
    /// The requested time; says on stderr if it was taken as UTC.
    pub fn time(&self) -> Option<Timestamp> {
        self.at.map(told)
    }
}

pub(super) fn told(at: ParsedTime) -> Timestamp {
    if at.assumed_utc {
        eprintln!("note: the time has no zone and is taken as UTC: {}", at.time);
    }
    at.time
}

/// Text that cannot be a position is refused before the engine is asked.
pub(super) fn lsn(text: &str) -> Result<String, String> {
    let is_half = |half: &str| {
        (1..=8).contains(&half.len()) && half.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match text.split_once('/') {
        Some((high, low)) if is_half(high) && is_half(low) => Ok(text.to_owned()),
        _ => Err(format!("'{text}' is not an LSN; write it as 0/3A2B1C0")),
    }
}
