//! `offshoot diff …`

use super::moment::{lsn, told};
use super::{JobArgs, time};
use clap::Args;
use offshoot_api::{DiffState, Moment};

/// Show what differs between two states
///
/// A state is the name of a dSource or VDB, with a moment behind @: a time as for --at, a snapshot's id, a position of
/// the log, a bookmark's name, or xid:N. Without one it is the latest. What differs is told from the first state to the
/// second: a row is added if only the second has it. Both are opened in private servers, and of tables only the pages
/// that differ are read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        offshoot diff shop@-1h shop\n  \
                        offshoot diff shop@before-release shop@'2026-11-21 14:03' --table orders --rows\n  \
                        offshoot diff shop dev\n  \
                        offshoot diff shop shop@-10min --table customers --sql > bring-back.sql")]
pub struct DiffArgs {
    /// The state to begin with
    #[arg(value_name = "NAME[@MOMENT]", value_parser = state)]
    pub left: DiffState,
    /// The state to end with
    #[arg(value_name = "NAME[@MOMENT]", value_parser = state)]
    pub right: DiffState,
    /// Compare only this table, as orders, public.orders or 'public.*'; may be given several times
    #[arg(long = "table", value_name = "PATTERN")]
    pub tables: Vec<String>,
    /// Show the rows that differ, not only how many
    #[arg(long)]
    pub rows: bool,
    /// Show so many rows of each table
    #[arg(long, value_name = "N", requires = "rows", default_value_t = 100)]
    pub limit: u32,
    /// Print statements that make the tables of the first state what they are in the second
    #[arg(long, conflicts_with = "rows")]
    pub sql: bool,
    #[command(flatten)]
    pub job: JobArgs,
}

/// A name, perhaps with a moment.
fn state(text: &str) -> Result<DiffState, String> {
    let (object, at) = match text.split_once('@') {
        Some((object, at)) => (object, Some(at.trim())),
        None => (text, None),
    };
    if object.is_empty() {
        return Err(format!("'{text}' names no dSource or VDB; write it as NAME or NAME@MOMENT"));
    }
    Ok(DiffState { object: object.to_owned(), moment: at.map_or(Ok(Moment::Latest), moment)? })
}

/// What is written behind the @. A bookmark whose name is that of a moment is written as `bookmark:NAME`.
fn moment(text: &str) -> Result<Moment, String> {
    if text.is_empty() {
        return Err("there is no moment behind the @; write one, or the name alone".to_owned());
    }
    if let Some(name) = text.strip_prefix("bookmark:") {
        return Ok(Moment::Bookmark { name: name.to_owned() });
    }
    if let Some(number) = text.strip_prefix("xid:") {
        let xid = number.parse().map_err(|_| format!("'{number}' is no transaction's number"))?;
        return Ok(Moment::Xid { xid });
    }
    if text == "latest" {
        return Ok(Moment::Latest);
    }
    if let Ok(id) = text.parse() {
        return Ok(Moment::Snapshot { id });
    }
    if text.contains('/') {
        return lsn(text).map(|lsn| Moment::Lsn { lsn });
    }
    Ok(match time(text) {
        Ok(at) => Moment::At { time: told(at) },
        Err(_) => Moment::Bookmark { name: text.to_owned() },
    })
}

#[cfg(test)]
mod tests;
