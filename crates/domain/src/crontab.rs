//! Times as crontab(5) writes them.

use cronexpr::{FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};

/// When something is due: minute, hour, day of the month, month, day of the week, and a time zone; UTC where none is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Crontab(String);

impl Crontab {
    /// As it is written.
    ///
    /// # Errors
    /// `InvalidInput` if it is none, or never due.
    pub fn new(text: &str, now: Timestamp) -> Result<Crontab, Failure> {
        let crontab = Crontab(text.trim().to_owned());
        let due = read(&crontab.0).and_then(|read| read.find_next(MakeTimestamp(now)));
        due.map(|_| crontab).map_err(|error| {
            let why = error.to_string();
            let why = why.lines().next_back().unwrap_or_default().trim();
            Failure::new(
                ErrorKind::InvalidInput,
                format!("'{text}' says no time: {why}"),
                "write minute, hour, day, month and weekday, and a time zone if not UTC: '30 2 * * *', '*/10 * * * MON-FRI Europe/Berlin'; \
                 or 'every 5min'",
            )
        })
    }

    /// When it is due next after a time; none: never again, or its time zone is no longer known.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        Some(read(&self.0).ok()?.find_next(MakeTimestamp(time)).ok()?.timestamp())
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn read(text: &str) -> Result<cronexpr::Crontab, cronexpr::Error> {
    let mut options = ParseOptions::default();
    options.fallback_timezone_option = FallbackTimezoneOption::UTC;
    cronexpr::parse_crontab_with(text, options)
}

#[cfg(test)]
mod tests;
