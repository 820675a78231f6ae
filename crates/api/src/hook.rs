//! Hooks: what runs in a VDB when something has been done to it.

use crate::Secret;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookEvent {
    /// Before the VDB is opened first; a program only, as there is no server.
    BeforeProvision,
    /// After the VDB was provisioned.
    AfterProvision,
    /// Before its data is replaced by a refresh.
    BeforeRefresh,
    /// After it was refreshed.
    AfterRefresh,
    /// Before it goes back to a snapshot or bookmark of its own; not when that is undone.
    BeforeRewind,
    /// After it went back to a snapshot or bookmark of its own; not when that is undone.
    AfterRewind,
    /// Before its user stops it.
    BeforeStop,
    /// After its user stopped it; a program only, as there is no server.
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
    pub const fn as_str(self) -> &'static str {
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
}

/// What a hook is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Statements, run as one transaction of the VDB's user.
    Sql,
    /// A program, run confined beside the server as a client of it.
    Program,
}

/// A hook of a VDB: SQL, with the rights of the VDB's user, as one transaction; or a program, confined, as a client of the
/// VDB. One of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewHook {
    /// When it runs.
    pub event: HookEvent,
    /// Its statements: 256 KiB at most. Kept as a secret, as they may hold passwords.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "UPDATE users SET email = id || '@example.com'")]
    pub sql: Option<Secret>,
    /// The program: 256 KiB at most, its first line as in `#!/bin/sh`. Kept as statements are. Not for developers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub program: Option<Secret>,
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
    /// What it is written in.
    pub kind: HookKind,
    /// The size of its text.
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
    /// What it is written in.
    pub kind: HookKind,
    /// Its statements; null for a program, and where they went with a lost key.
    #[schema(required)]
    pub sql: Option<String>,
    /// The program; null for statements, and where it went with a lost key.
    #[schema(required)]
    pub program: Option<String>,
    /// The database it runs in; null: the one that the VDB's URI opens.
    #[schema(required)]
    pub database: Option<String>,
    /// How long it may take.
    pub time_limit_ms: u64,
}

/// Leaves out what it runs, as passwords may be in it.
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
