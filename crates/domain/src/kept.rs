//! What of a VDB a refresh keeps, beside its name, port and password.

use serde::{Deserialize, Serialize};

/// What its users made in a VDB beside its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Roles, with their passwords and memberships.
    Roles,
    /// Settings of databases and roles, and of the whole server.
    Settings,
}
