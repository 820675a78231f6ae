//! A position in a database's log.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// A position in a log that the engine received: bytes from an origin that its connector chose, in the order
/// of the log. Users read and write the connector's text, never this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
#[serde(transparent)]
pub struct LogPosition(pub u64);

impl LogPosition {
    /// The position before everything.
    pub const START: LogPosition = LogPosition(0);
    /// A position behind everything.
    pub const END: LogPosition = LogPosition(u64::MAX);

    /// Bytes of log from an earlier position to this one; 0 if that is not earlier.
    pub fn bytes_since(self, earlier: LogPosition) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A number, or as records of earlier releases have it: two halves in hexadecimal digits with a slash between.
impl<'de> Deserialize<'de> for LogPosition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrHalves)
    }
}

struct NumberOrHalves;

impl Visitor<'_> for NumberOrHalves {
    type Value = LogPosition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a position in a log: a number, or two halves of one in hexadecimal digits")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<LogPosition, E> {
        Ok(LogPosition(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<LogPosition, E> {
        u64::try_from(number).map(LogPosition).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<LogPosition, E> {
        let half = |digits: &str| u32::from_str_radix(digits, 16).map_err(E::custom);
        let (high, low) = text.split_once('/').ok_or_else(|| E::custom("no slash"))?;
        Ok(LogPosition(u64::from(half(high)?) << 32 | u64::from(half(low)?)))
    }
}

#[cfg(test)]
mod tests;
