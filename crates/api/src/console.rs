//! Signing in to the console: a one-time code for a session, whose token is good for some hours.

use crate::Role;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A code that opens one session.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConsoleCode {
    /// The code.
    pub code: String,
    /// What follows the engine's address in a link that signs in: a browser keeps what is behind `#` to itself.
    #[schema(example = "/#code=…")]
    pub path: String,
    /// Until when it opens one.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
}

/// Leaves out the code.
impl fmt::Debug for ConsoleCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleCode").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// Opens a session.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenConsoleSession {
    /// A code that was not used before.
    pub code: String,
}

/// Leaves out the code.
impl fmt::Debug for OpenConsoleSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenConsoleSession").finish_non_exhaustive()
    }
}

/// A session that was opened. This is the only time that its token is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenedConsoleSession {
    /// The token: shown as `Authorization: Bearer TOKEN`.
    pub token: String,
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
}

/// Leaves out the token.
impl fmt::Debug for OpenedConsoleSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedConsoleSession")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// Who asks, as the engine knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConsoleSession {
    /// The user; null: the administrator, who has the pool.
    #[schema(required)]
    pub user: Option<String>,
    /// What it may do.
    pub role: Role,
    /// When the session ends; null: what was shown is no session's token.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
}
