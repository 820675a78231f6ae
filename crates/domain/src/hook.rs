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
    /// Before the VDB is opened first: its data is ready, and there is no server.
    BeforeProvision,
    /// After the VDB was provisioned.
    AfterProvision,
    /// Before its data is replaced by a refresh: the new data is ready.
    BeforeRefresh,
    /// After it was refreshed.
    AfterRefresh,
    /// Before it goes back to a snapshot or bookmark of its own; not when that is undone.
    BeforeRewind,
    /// After it went back to a snapshot or bookmark of its own; not when that is undone.
    AfterRewind,
    /// Before its user stops it.
    BeforeStop,
    /// After its user stopped it: there is no server.
    AfterStop,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [HookEvent; 8] = [
        HookEvent::BeforeProvision,
        HookEvent::AfterProvision,
        HookEvent::BeforeRefresh,
        HookEvent::AfterRefresh,
        HookEvent::BeforeRewind,
        HookEvent::AfterRewind,
        HookEvent::BeforeStop,
        HookEvent::AfterStop,
    ];

    /// The event as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            HookEvent::BeforeProvision => "before-provision",
            HookEvent::AfterProvision => "after-provision",
            HookEvent::BeforeRefresh => "before-refresh",
            HookEvent::AfterRefresh => "after-refresh",
            HookEvent::BeforeRewind => "before-rewind",
            HookEvent::AfterRewind => "after-rewind",
            HookEvent::BeforeStop => "before-stop",
            HookEvent::AfterStop => "after-stop",
        }
    }

    /// Whether there is a server then.
    pub fn has_server(self) -> bool {
        !matches!(self, HookEvent::BeforeProvision | HookEvent::AfterStop)
    }

    /// Whether the VDB lacks something if this hook has failed. If one before fails, nothing is done.
    pub fn completes(self) -> bool {
        use HookEvent::{AfterProvision, AfterRefresh, AfterRewind};
        matches!(self, AfterProvision | AfterRefresh | AfterRewind)
    }

    /// What runs after that which this runs before.
    pub fn counterpart(self) -> Option<HookEvent> {
        match self {
            HookEvent::BeforeProvision => Some(HookEvent::AfterProvision),
            HookEvent::BeforeRefresh => Some(HookEvent::AfterRefresh),
            HookEvent::BeforeRewind => Some(HookEvent::AfterRewind),
            HookEvent::BeforeStop => Some(HookEvent::AfterStop),
            _ => None,
        }
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a hook is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Statements in the database's language: run in a session of the VDB's user.
    #[default]
    Sql,
    /// A program: run beside the server, confined, as a client of it.
    Program,
}

/// A hook of a VDB. Its text may hold passwords: it is a secret of the catalog, named by its revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// Unique among all hooks there ever were.
    pub revision: String,
    /// What it is written in; SQL in records of earlier releases.
    #[serde(default)]
    pub kind: HookKind,
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

    /// A hook of an event with this text, if it can be one.
    ///
    /// # Errors
    /// `InvalidInput` with what would be valid.
    pub fn new(
        revision: String,
        (event, kind): (HookEvent, HookKind),
        text: &str,
        database: Option<String>,
        time_limit: Option<Duration>,
    ) -> Result<Hook, Failure> {
        match kind {
            HookKind::Sql if !event.has_server() => {
                let message = format!("there is no server to run SQL {event}");
                return Err(invalid(
                    &message,
                    "give a program: a file that begins with #!/bin/sh, for example",
                ));
            }
            HookKind::Program if !text.starts_with("#!/") => {
                let message = "the program does not say who reads it";
                return Err(invalid(message, "let its first line be #!/bin/sh, for example"));
            }
            _ => {}
        }
        if text.trim().is_empty() {
            return Err(invalid(
                "a hook without a statement",
                "leave it out, or give a file with one",
            ));
        }
        if text.len() > BYTES_MAX {
            let hint = "load more from elsewhere: offshoot vdb connect NAME -- -f FILE";
            return Err(invalid("a hook has 256 KiB at most", hint));
        }
        if text.contains('\0') {
            return Err(invalid("a hook is text, without zero bytes", "give a file with text"));
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
        Ok(Hook { revision, kind, bytes: text.len() as u64, database, time_limit_ms })
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
