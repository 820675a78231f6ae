//! Snapshots of dSources and VDBs.

use jiff::Timestamp;
use offshoot_types::SnapshotId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which kind of object a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectKind {
    /// A dSource.
    Dsource,
    /// A VDB.
    Vdb,
}

/// Whether a snapshot was proved to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotState {
    /// Taken; being opened, recovered and checked, or waiting for it.
    Pending,
    /// Opened, recovered and checked; VDBs of it need no recovery.
    Ready,
    /// It could not be opened or a check failed; `error` says what.
    Failed,
    /// A recovery point: where a replay to a later moment begins. It is not made ready in advance.
    OnDemand,
}

/// Why a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotKind {
    /// At the end of linking.
    Link,
    /// By the snapshot policy.
    Policy,
    /// On demand.
    Manual,
    /// To keep the provisioning-time objective.
    RecoveryPoint,
    /// Of a VDB before it was rewound or refreshed, so that this can be undone.
    PreRewind,
    /// A masked image.
    Masked,
    /// Of exactly the moment that a bookmark names; it goes with the bookmark.
    Bookmark,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// Its id.
    #[schema(value_type = String, example = "snapshot-7")]
    pub id: SnapshotId,
    /// The name of the dSource or VDB it was taken of.
    pub object: String,
    /// What it was taken of.
    pub object_kind: ObjectKind,
    /// Why it was taken.
    pub kind: SnapshotKind,
    /// The time whose state it holds.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// The log position it holds.
    #[schema(required, value_type = Option<String>, example = "0/3A2B1C0")]
    pub lsn: Option<String>,
    /// Whether it was proved to open: the same as `state` being `ready`.
    pub ready: bool,
    /// How far the proof is.
    pub state: SnapshotState,
    /// The bookmarks that name it: it cannot be deleted before they are.
    #[serde(default)]
    pub bookmarks: Vec<String>,
    /// What the proof found, if it failed.
    #[schema(required)]
    pub error: Option<String>,
    /// What was not checked, and why.
    #[serde(default)]
    pub unchecked: Vec<String>,
}

/// Snapshots of one object or of all, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    /// Oldest first.
    pub snapshots: Vec<Snapshot>,
}

/// Takes a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeSnapshot {
    /// The name of a dSource or VDB.
    pub object: String,
}
