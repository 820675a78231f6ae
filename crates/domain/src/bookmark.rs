//! Named points.

use crate::{ObjectName, Owner, Position};
use jiff::Timestamp;
use offshoot_types::{BookmarkId, SnapshotId};
use serde::{Deserialize, Serialize};

/// A named point of a timeflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bookmark {
    /// The id.
    pub id: BookmarkId,
    /// Unique among bookmarks of all dSources and VDBs.
    pub name: ObjectName,
    /// Whose history it marks.
    pub owner: Owner,
    /// The snapshot that holds exactly this point.
    pub snapshot: SnapshotId,
    /// The point.
    pub position: Position,
    /// When it was set.
    pub created_at: Timestamp,
}
