//! A position in a PostgreSQL log.

use offshoot_types::LogPosition;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A byte position in the write-ahead log, written `0/3A2B1C0` as PostgreSQL does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Lsn(pub u64);

/// A text that is not an LSN.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an LSN; write it as 0/3A2B1C0")]
pub struct ParseLsnError(pub String);

impl From<LogPosition> for Lsn {
    fn from(position: LogPosition) -> Lsn {
        Lsn(position.0)
    }
}

impl From<Lsn> for LogPosition {
    fn from(lsn: Lsn) -> LogPosition {
        LogPosition(lsn.0)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Lsn {
    type Err = ParseLsnError;
    fn from_str(text: &str) -> Result<Self, ParseLsnError> {
        let bad = || ParseLsnError(text.to_owned());
        let half = |digits: &str| {
            (!digits.starts_with('+')).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
        };
        let (high, low) = text.split_once('/').ok_or_else(bad)?;
        let (high, low) = (half(high).ok_or_else(bad)?, half(low).ok_or_else(bad)?);
        Ok(Lsn(u64::from(high) << 32 | u64::from(low)))
    }
}

impl Serialize for Lsn {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Lsn {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
