//! Timeflows: what can be opened of a dSource or VDB.

use crate::{ObjectKind, Position, Snapshot};
use jiff::Timestamp;
use offshoot_types::TimeflowId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The history of a dSource or VDB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimeflowList {
    /// The name of the dSource or VDB.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// Oldest first. A rewind, a refresh and a new copy of the source each start a new one.
    pub timeflows: Vec<Timeflow>,
}

/// A stretch of history between two commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimeRange {
    /// Its first moment.
    pub from: TimePoint,
    /// Its last moment.
    pub to: TimePoint,
}

/// A stretch of history in which every moment opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenRange {
    /// Its first moment.
    pub from: TimePoint,
    /// Its last moment.
    pub to: TimePoint,
    /// Half of its moments are expected to open within this many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical_open_ms: Option<u64>,
    /// None of its moments is expected to take longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_open_ms: Option<u64>,
}

/// A moment of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimePoint {
    /// The log position.
    #[schema(value_type = String, example = "0/3A2B1C0")]
    pub lsn: String,
    /// The time on the database's clock.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
}

/// How many commits a source made, by time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CommitCounts {
    /// Where the first part begins.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// How long each part is.
    pub part_ms: f64,
    /// Commits of each part. 0 where the log is not kept, and for what has no log of its own.
    pub counts: Vec<u64>,
}

/// One timeflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timeflow {
    /// Its id.
    #[schema(value_type = String, example = "timeflow-1")]
    pub id: TimeflowId,
    /// Whether it is the one that continues.
    pub current: bool,
    /// The timeflow that it took the place of.
    #[schema(required, value_type = Option<String>, example = "timeflow-1")]
    pub parent: Option<TimeflowId>,
    /// The moment it began at, of itself or of the parent it was provisioned from; null for a dSource.
    #[schema(required)]
    pub origin: Option<Position>,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When another took its place.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// Whether the state at its end is kept, so that `vdb rewind --undo` can go back to it.
    pub kept: bool,
    /// Where every moment can be opened, oldest first. Empty for VDBs, which keep no log.
    pub ranges: Vec<OpenRange>,
    /// Where no moment can be opened, between the ranges.
    pub gaps: Vec<TimeRange>,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<Snapshot>,
    /// Snapshots that only make the opening of moments short, oldest first.
    pub recovery_points: Vec<Snapshot>,
    /// The bookmarks on its snapshots, by name.
    pub bookmarks: Vec<String>,
}
