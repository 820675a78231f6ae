//! dSources: the engine's synchronised copies of source databases.

use crate::{ErrorDetail, Secret, Snapshot, Warning};
use jiff::Timestamp;
use offshoot_types::DsourceId;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// What a dSource is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DsourceState {
    /// The first copy is being made.
    Linking,
    /// The source's log is received as it is written.
    Active,
    /// The source cannot be reached at present; the engine keeps trying.
    Disconnected,
    /// Paused by the user, or taken over by another engine: then `error` says so.
    Paused,
    /// Stopped by something only a user can fix; `error` says what.
    Failed,
    /// Made by masking another dSource; it follows nothing.
    Masked,
    /// It is a copy of another engine's dSource: read only, it follows no source.
    Replica,
    /// Being removed.
    Unlinking,
}

/// How far a dSource has followed its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SyncedTo {
    /// The end of the log that is durable in the pool.
    #[schema(value_type = String, example = "0/3A2B1C0")]
    pub lsn: String,
    /// The source's clock when all it had flushed was received; any moment up to it can be opened.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub time: Option<Timestamp>,
}

/// A dSource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Dsource {
    /// Its id.
    #[schema(value_type = String, example = "dsource-1")]
    pub id: DsourceId,
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: DsourceState,
    /// The kind of database.
    #[schema(example = "postgres")]
    pub connector: String,
    /// The URI of the source, without a password.
    pub source: String,
    /// The source's version, as it reports it; empty before it was first reached.
    pub server_version: String,
    /// What its files would take outside the pool.
    pub logical_bytes: u64,
    /// What it takes in the pool.
    pub stored_bytes: u64,
    /// How far it has followed its source; null before the first copy is complete.
    #[schema(required)]
    pub synced_to: Option<SyncedTo>,
    /// Log the source has flushed and the engine does not have; null when the source cannot be asked.
    #[schema(required)]
    pub lag_bytes: Option<u64>,
    /// Age of `synced_to.time`; null when the source cannot be asked.
    #[schema(required)]
    pub lag_ms: Option<u64>,
    /// How far the source's clock is ahead of the engine's; less than 0: behind; null where they cannot be compared.
    #[serde(default)]
    #[schema(required)]
    pub clock_skew_ms: Option<i64>,
    /// How often snapshots are taken while there are changes; null for never.
    #[schema(required)]
    pub snapshot_every_ms: Option<u64>,
    /// When it was linked.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<Snapshot>,
    /// What stopped it, where something did.
    #[schema(required)]
    pub error: Option<ErrorDetail>,
    /// What is not wrong, but should be known.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// All dSources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DsourceList {
    /// By name.
    pub dsources: Vec<Dsource>,
}

/// Links a source database.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkDsource {
    /// The name to give the dSource: 1–63 of `a-z 0-9 _ -`, starting with a letter.
    pub name: String,
    /// The kind of database: `postgres`.
    #[schema(example = "postgres")]
    pub connector: String,
    /// The URI of the source. A password in it is taken out before anything is stored.
    #[schema(example = "postgresql://replicator@db.example.com:5432/postgres")]
    pub source: String,
    /// The password; kept as a secret and never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// How often to take a snapshot while there are changes; the engine's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_every_ms: Option<u64>,
}

/// Changes how the source of a dSource is reached. What is absent stays.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetDsource {
    /// The new URI: another address, role or `sslmode` of the same database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        example = "postgresql://replicator@db2.example.com:5432/postgres?sslmode=verify-full"
    )]
    pub source: Option<String>,
    /// The new password; kept as a secret and never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
}

/// Leaves out the source, as a password may be in it.
impl fmt::Debug for SetDsource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetDsource").finish_non_exhaustive()
    }
}

/// Leaves out the source, as a password may be in it.
impl fmt::Debug for LinkDsource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkDsource")
            .field("name", &self.name)
            .field("connector", &self.connector)
            .finish_non_exhaustive()
    }
}
