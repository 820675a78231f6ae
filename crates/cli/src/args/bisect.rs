//! `offshoot bisect`

use super::moment::{lsn, told};
use super::time;
use super::{JobArgs, duration_ms};
use clap::Args;
use offshoot_api::Moment;
use offshoot_domain::ParsedTime;
use offshoot_types::JobId;

/// Find the commit at which the answer to a query changed
///
/// Opens both ends and asks there, then moments between, until one commit is left; shows when it was, which transaction,
/// the answers before and after, and what it changed. The query only reads, with the rights of a VDB's user. Its answer is
/// the first column of its first row. docs/bisect.md says more.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot bisect shop --from -1d --query 'SELECT count(*) > 0 FROM orders WHERE total < 0' --until true\n  \
                        offshoot bisect shop --from '2026-11-21 09:00+00' --to '2026-11-21 17:00+00' \\\n    \
                        --query 'SELECT email FROM customers WHERE id = 7'\n  \
                        offshoot bisect shop --from 0/3A2B1C0 --query 'SELECT count(*) FROM prices' --expect 1200\n  \
                        offshoot bisect --show job-12"
)]
pub struct BisectArgs {
    /// The dSource
    #[arg(value_name = "DSOURCE", required_unless_present = "show")]
    pub object: Option<String>,
    /// The earlier end: a time, as '2026-11-21 14:03+00' or -1h, or a position of the log
    #[arg(long, value_name = "TIME|LSN", value_parser = end, allow_hyphen_values = true, required_unless_present = "show")]
    pub from: Option<End>,
    /// The later end [default: the latest moment]
    #[arg(long, value_name = "TIME|LSN", value_parser = end, allow_hyphen_values = true)]
    pub to: Option<End>,
    /// One query, which only reads
    #[arg(long, value_name = "SQL", required_unless_present = "show")]
    pub query: Option<String>,
    /// Find the commit at which the answer becomes this; NULL is SQL's
    #[arg(long, value_name = "VALUE", conflicts_with = "expect")]
    pub until: Option<String>,
    /// Find the commit at which the answer is no longer this [default: what it is at --from]
    #[arg(long, value_name = "VALUE")]
    pub expect: Option<String>,
    /// The database to ask [default: that of the source's URI]
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// Take a refusal of the database for an answer: a table that is not there yet, for example
    #[arg(long)]
    pub errors_are_answers: bool,
    /// How long an answer may take
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration_ms)]
    pub time_limit: u64,
    /// Search nothing, and show what an earlier search has found, by its job
    #[arg(long, value_name = "JOB", conflicts_with_all = ["object", "from", "to", "query", "until", "expect", "database", "detach"])]
    pub show: Option<JobId>,
    #[command(flatten)]
    pub job: JobArgs,
}

/// One end of a range of history.
#[derive(Debug, Clone)]
pub enum End {
    /// The last commit not after it.
    Time(ParsedTime),
    /// A position of the log.
    Lsn(String),
}

impl End {
    /// The moment; says on stderr if a time was taken as UTC.
    pub fn moment(self) -> Moment {
        match self {
            End::Time(at) => Moment::At { time: told(at) },
            End::Lsn(lsn) => Moment::Lsn { lsn },
        }
    }
}

fn end(text: &str) -> Result<End, String> {
    match lsn(text) {
        Ok(lsn) => Ok(End::Lsn(lsn)),
        Err(_) => time(text).map(End::Time),
    }
}
