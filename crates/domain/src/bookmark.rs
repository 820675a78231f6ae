//! Named points.

use crate::{ObjectName, Owner, Position};
use jiff::Timestamp;
use offshoot_types::{BookmarkId, SnapshotId, TimeflowId};
use serde::{Deserialize, Serialize};

/// A named point of a timeflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bookmark {
    /// The id.
    pub id: BookmarkId,
    /// Unique among bookmarks.
    pub name: ObjectName,
    /// Whose history it marks.
    pub owner: Owner,
    /// The timeflow the point lies on.
    pub timeflow: TimeflowId,
    /// The snapshot that holds exactly this point, where one was taken for it.
    pub snapshot: Option<SnapshotId>,
    /// The point.
    pub position: Position,
    /// When it was set.
    pub created_at: Timestamp,
}
