//! What users see of an error: which kind, what failed and why, and how to fix it.

use serde::{Deserialize, Serialize};
use std::{fmt, io};

/// The kinds of failure a user can act on. The text form is the `code` of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request itself is wrong.
    InvalidInput,
    /// No object of that name or id.
    NotFound,
    /// The name, port or object is taken.
    AlreadyExists,
    /// Another operation holds the object.
    Busy,
    /// The object's state does not allow the operation.
    WrongState,
    /// The moment is outside what is kept.
    MomentUnavailable,
    /// The source refuses or lacks something.
    SourceRefused,
    /// The source cannot be reached.
    SourceUnreachable,
    /// Something is missing on this host.
    HostUnprepared,
    /// The pool has no room.
    PoolFull,
    /// Data on disk is damaged.
    DataDamaged,
    /// The job was cancelled.
    Cancelled,
    /// No or a wrong token.
    Unauthorized,
    /// The caller is known, but may not do this.
    Forbidden,
    /// The engine cannot be reached.
    EngineUnreachable,
    /// A defect of Offshoot.
    Internal,
}

impl ErrorKind {
    /// The `code` of the API.
    pub fn code(self) -> &'static str {
        match self {
            ErrorKind::InvalidInput => "invalid_input",
            ErrorKind::NotFound => "not_found",
            ErrorKind::AlreadyExists => "already_exists",
            ErrorKind::Busy => "busy",
            ErrorKind::WrongState => "wrong_state",
            ErrorKind::MomentUnavailable => "moment_unavailable",
            ErrorKind::SourceRefused => "source_refused",
            ErrorKind::SourceUnreachable => "source_unreachable",
            ErrorKind::HostUnprepared => "host_unprepared",
            ErrorKind::PoolFull => "pool_full",
            ErrorKind::DataDamaged => "data_damaged",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Unauthorized => "unauthorized",
            ErrorKind::Forbidden => "forbidden",
            ErrorKind::EngineUnreachable => "engine_unreachable",
            ErrorKind::Internal => "internal",
        }
    }
}

/// A failure as it is shown to a user, stored with a job and sent by the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, for scripts.
    pub code: ErrorKind,
    /// What failed and why.
    pub message: String,
    /// How to fix it; empty when nothing the user can do is known.
    pub hint: String,
}

impl Failure {
    /// A failure with the fix the user should try.
    pub fn new(code: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure { code, message: plain(message.into()), hint: plain(hint.into()) }
    }

    /// A defect of ours.
    pub fn internal(message: impl Into<String>) -> Self {
        Failure::new(
            ErrorKind::Internal,
            message,
            "this is a defect of Offshoot; please report it with the engine's log",
        )
    }

    /// The pool has no room.
    pub fn pool_full(message: impl Into<String>) -> Self {
        let hint = "delete VDBs or snapshots that are no longer needed, or enlarge the pool";
        Failure::new(ErrorKind::PoolFull, message, hint)
    }

    /// `PoolFull` if the operating system's reason was lack of room.
    #[must_use]
    pub fn or_pool_full(self, reason: &io::Error) -> Self {
        match reason.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Failure::pool_full(self.message)
            }
            _ => self,
        }
    }
}

/// A text without what a terminal would take for commands, or would show in another order. Failures quote
/// servers, files and names, and end up on terminals and in logs.
fn plain(text: String) -> String {
    let acts = |letter: char| {
        letter.is_control() && letter != '\n' && letter != '\t'
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.contains(acts) { text.replace(acts, "\u{fffd}") } else { text }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests;
