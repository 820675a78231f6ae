//! How dSources and VDBs are kept: snapshots, retention, quota.

use crate::ObjectKind;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// How a dSource or VDB is kept. A snapshot stays while any of these durations keeps it; 0 keeps nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Policy {
    /// The name of the dSource or VDB.
    pub name: String,
    /// What that is.
    pub kind: ObjectKind,
    /// How often snapshots are taken while there are changes; null for never.
    #[schema(required)]
    pub snapshot_every_ms: Option<u64>,
    /// For how long every snapshot stays; for a VDB also what a rewind or refresh replaced.
    pub keep_all_ms: u64,
    /// For how long the first snapshot of each hour (UTC) stays.
    pub hourly_ms: u64,
    /// For how long the first snapshot of each day (UTC) stays.
    pub daily_ms: u64,
    /// For how long the first snapshot of each week (UTC, from Monday) stays.
    pub weekly_ms: u64,
    /// For how long log is kept, so that every moment can be opened. 0 with VDBs.
    pub log_ms: u64,
    /// The most it may take in the pool for itself; null for no limit.
    #[schema(required)]
    pub quota_bytes: Option<u64>,
    /// How many VDBs of its latest moment run before anybody asks for one. 0 with VDBs.
    #[serde(default)]
    pub warm: u32,
    /// Within how many milliseconds any moment of a dSource is promised to open. 0 with VDBs.
    #[serde(default)]
    pub open_within_ms: u64,
}

/// Policies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyList {
    /// Those of dSources first, then of VDBs; by name.
    pub policies: Vec<Policy>,
}

/// Changes a policy; absent fields stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPolicy {
    /// How often to take a snapshot while there are changes; null for never.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub snapshot_every_ms: Option<Option<u64>>,
    /// For how long every snapshot is to stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_all_ms: Option<u64>,
    /// For how long the first snapshot of each hour is to stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_ms: Option<u64>,
    /// For how long the first snapshot of each day is to stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_ms: Option<u64>,
    /// For how long the first snapshot of each week is to stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekly_ms: Option<u64>,
    /// For how long every moment is to open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_ms: Option<u64>,
    /// The most it may take in the pool for itself; null for no limit.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub quota_bytes: Option<Option<u64>>,
    /// How many VDBs of a dSource's latest moment are to run before anybody asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<u32>,
    /// Within how many milliseconds any moment of a dSource is to open: 1,000 to 3,600,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_within_ms: Option<u64>,
}

/// Tells null from absent.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}
