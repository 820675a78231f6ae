//! Hooks: what runs in a VDB when something has been done to it.

use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

const BYTES_MAX: usize = 256 << 10;
const DATABASE_BYTES_MAX: usize = 63;
const TIME_LIMIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookEvent {
    /// After the VDB was provisioned.
    AfterProvision,
    /// After it was refreshed.
    AfterRefresh,
    /// After it went back to a snapshot or bookmark of its own; not when that is undone.
    AfterRewind,
}

impl HookEvent {
    /// The event as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            HookEvent::AfterProvision => "after-provision",
            HookEvent::AfterRefresh => "after-refresh",
            HookEvent::AfterRewind => "after-rewind",
        }
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A hook of a VDB. Its text may hold passwords: it is a secret of the catalog, named by its revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// Unique among all hooks there ever were.
    pub revision: String,
    /// The size of its text.
    pub bytes: u64,
    /// The database it runs in; none: the one that users connect to first.
    #[serde(default)]
    pub database: Option<String>,
    /// How long it may take, in milliseconds.
    pub time_limit_ms: u64,
}

impl Hook {
    /// How long a hook may take where nobody says.
    pub const TIME_LIMIT: Duration = Duration::from_secs(600);

    /// A hook with this text, if it can be one.
    ///
    /// # Errors
    /// `InvalidInput` with what would be valid.
    pub fn new(
        revision: String,
        text: &str,
        database: Option<String>,
        time_limit: Option<Duration>,
    ) -> Result<Hook, Failure> {
        if text.trim().is_empty() {
            return Err(invalid(
                "a hook without a statement",
                "leave it out, or give a file with SQL",
            ));
        }
        if text.len() > BYTES_MAX {
            let hint = "load more from elsewhere: offshoot vdb connect NAME -- -f FILE";
            return Err(invalid("a hook has 256 KiB at most", hint));
        }
        if text.contains('\0') {
            return Err(invalid("a hook is text, without zero bytes", "give a file with SQL"));
        }
        if database.as_ref().is_some_and(|name| !is_name(name)) {
            return Err(invalid(
                "the hook's database has no such name",
                "give the name of a database",
            ));
        }
        let limit = time_limit.unwrap_or(Hook::TIME_LIMIT);
        if limit < Duration::from_secs(1) || limit > TIME_LIMIT_MAX {
            let hint = "use --hook-time-limit 10min";
            return Err(invalid("a hook may take from one second to a day", hint));
        }
        let time_limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Ok(Hook { revision, bytes: text.len() as u64, database, time_limit_ms })
    }

    /// How long it may take.
    pub fn time_limit(&self) -> Duration {
        Duration::from_millis(self.time_limit_ms)
    }
}

/// A hook that did not run to its end: the VDB is without what it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookFailure {
    /// Which.
    pub event: HookEvent,
    /// Why.
    pub failure: Failure,
    /// When.
    pub at: Timestamp,
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= DATABASE_BYTES_MAX && !name.chars().any(char::is_control)
}

fn invalid(message: &str, hint: &str) -> Failure {
    Failure::new(ErrorKind::InvalidInput, message, hint)
}

#[cfg(test)]
mod tests;
