//! Moments: what a user asks to open, and the positions they resolve to.

use crate::parse_duration;
use jiff::{Timestamp, ToSpan, civil, tz::TimeZone};
use offshoot_types::{ErrorKind, Failure, LogPosition, SnapshotId};
use serde::{Deserialize, Serialize};

/// A point of a database's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The end of the last log record included.
    #[serde(alias = "lsn")]
    pub log: LogPosition,
    /// The database's clock there.
    pub time: Timestamp,
}

/// The moment a user asks for. As JSON: `"latest"`, `{"at": "2026-11-21T14:03:27.5Z"}` and so on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// The newest moment that can be opened.
    #[default]
    Latest,
    /// Exactly this snapshot.
    Snapshot(SnapshotId),
    /// After the last commit not after this time.
    At(Timestamp),
    /// After the last commit that ends at or before this position, as its connector writes it.
    #[serde(alias = "lsn")]
    Log(String),
    /// After the commit of this transaction, by the label that the database gave it.
    #[serde(alias = "xid", deserialize_with = "text_or_number")]
    Transaction(String),
    /// A bookmark's point.
    Bookmark(String),
}

/// Labels were numbers in the jobs of earlier releases.
fn text_or_number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Label {
        Text(String),
        Number(u64),
    }
    Ok(match Label::deserialize(deserializer)? {
        Label::Text(text) => text,
        Label::Number(number) => number.to_string(),
    })
}

/// A time as a user wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedTime {
    /// The time.
    pub time: Timestamp,
    /// No zone was given, so UTC was assumed: worth telling the user.
    pub assumed_utc: bool,
}

/// Reads the text of `--at`: `2026-11-21 14:03:27.5+00`, RFC 3339, or without a zone (taken as UTC).
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if the text is not a time.
pub fn parse_time(text: &str) -> Result<ParsedTime, Failure> {
    let text = text.trim();
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(ParsedTime { time, assumed_utc: false });
    }
    // "… 14:03:27 +00" and "… 14:03:27 UTC" are how psql and people write zones.
    if let Some((start, zone)) = text.rsplit_once(' ') {
        let offset = match zone {
            "UTC" | "GMT" | "Z" | "utc" => Some("Z"),
            _ => zone.starts_with(['+', '-']).then_some(zone),
        };
        if let Some(time) = offset.and_then(|offset| format!("{start}{offset}").parse().ok()) {
            return Ok(ParsedTime { time, assumed_utc: false });
        }
    }
    text.parse::<civil::DateTime>()
        .and_then(|local| local.to_zoned(TimeZone::UTC))
        .map(|zoned| ParsedTime { time: zoned.timestamp(), assumed_utc: true })
        .map_err(|_| not_a_time(text))
}

/// Reads a time as [`parse_time`] does, or one by `now`: `-1h` and `1h ago` are an hour before it; `today 14:03` and
/// `yesterday 14:03:27` are times of those days in UTC.
///
/// # Errors
/// As [`parse_time`].
pub fn parse_time_near(text: &str, now: Timestamp) -> Result<ParsedTime, Failure> {
    let text = text.trim();
    if text == "now" {
        return Ok(ParsedTime { time: now, assumed_utc: false });
    }
    let before = text.strip_prefix('-').or_else(|| text.strip_suffix("ago"));
    if let Some(before) = before.and_then(|before| parse_duration(before).ok()) {
        let time = now.checked_sub(before).map_err(|_| not_a_time(text))?;
        return Ok(ParsedTime { time, assumed_utc: false });
    }
    let (word, clock) = text.split_once(' ').unwrap_or((text, "00:00"));
    let days = match word.to_ascii_lowercase().as_str() {
        "today" => 0,
        "yesterday" => 1,
        _ => return parse_time(text),
    };
    let today = now.to_zoned(TimeZone::UTC).date();
    let day = today.checked_sub(days.days()).map_err(|_| not_a_time(text))?;
    parse_time(&format!("{day} {}", clock.trim())).map_err(|_| not_a_time(text))
}

fn not_a_time(text: &str) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        format!("'{text}' is not a time"),
        "write it as '2026-11-21 14:03:27.5+00', 2026-11-21T14:03:27Z, -1h, '90s ago' or 'yesterday 14:03'",
    )
}

#[cfg(test)]
mod tests;
