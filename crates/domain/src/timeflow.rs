//! Histories.

use crate::{Owner, Position};
use jiff::Timestamp;
use offshoot_types::{DatasetId, SnapshotId, TimeflowId};
use serde::{Deserialize, Serialize};

/// Log without a gap, from one position to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRange {
    /// The start of the first record kept.
    pub from: Position,
    /// The end of the last record kept.
    pub to: Position,
}

/// Where a timeflow branched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The snapshot it was cloned from.
    pub snapshot: SnapshotId,
    /// The point it began at.
    pub position: Position,
}

/// The history of one dSource or VDB; a rewind or refresh starts a new one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeflow {
    /// The id.
    pub id: TimeflowId,
    /// Whose history it is.
    pub owner: Owner,
    /// The timeflow it branched off; none for a dSource's first.
    #[serde(default)]
    pub parent: Option<TimeflowId>,
    /// Where it branched off.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// The dataset that holds its present state; none once that is gone.
    #[serde(default)]
    pub dataset: Option<DatasetId>,
    /// The log kept, oldest range first, with the gaps between. Empty for VDBs.
    #[serde(default)]
    pub log: Vec<LogRange>,
    /// The dataset with that log, of a dSource's timeflow that has ended; none once it is given up.
    #[serde(default)]
    pub log_dataset: Option<DatasetId>,
    /// When it began.
    pub started_at: Timestamp,
    /// When another replaced it; none for the current one.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
}
