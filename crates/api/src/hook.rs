//! Hooks: what runs in a VDB when something has been done to it.

use crate::Secret;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookEvent {
    /// After the VDB was provisioned.
    AfterProvision,
    /// After it was refreshed.
    AfterRefresh,
    /// After it went back to a snapshot or bookmark of its own; not when that is undone.
    AfterRewind,
}

/// A hook to run in a VDB: SQL, with the rights of the VDB's user, as one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewHook {
    /// When it runs.
    pub event: HookEvent,
    /// Its statements: 256 KiB at most. Kept as a secret, as they may hold passwords.
    #[schema(value_type = String, example = "UPDATE users SET email = id || '@example.com'")]
    pub sql: Secret,
    /// The database to run it in; the one that the VDB's URI opens where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// How long it may take, from a second to a day; ten minutes where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
}

/// A hook of a VDB, without what it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VdbHook {
    /// When it runs.
    pub event: HookEvent,
    /// The size of its statements.
    pub bytes: u64,
    /// The database it runs in; null: the one that the VDB's URI opens.
    #[schema(required)]
    pub database: Option<String>,
    /// How long it may take.
    pub time_limit_ms: u64,
}

/// A hook of a VDB, as its owner reads it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HookText {
    /// When it runs.
    pub event: HookEvent,
    /// Its statements; null where they went with a lost key.
    #[schema(required)]
    pub sql: Option<String>,
    /// The database it runs in; null: the one that the VDB's URI opens.
    #[schema(required)]
    pub database: Option<String>,
    /// How long it may take.
    pub time_limit_ms: u64,
}

/// Leaves out the statements, as passwords may be in them.
impl fmt::Debug for HookText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookText").field("event", &self.event).finish_non_exhaustive()
    }
}

/// The hooks of a VDB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VdbHooks {
    /// The VDB.
    pub name: String,
    /// One for each event that has one.
    pub hooks: Vec<HookText>,
}
