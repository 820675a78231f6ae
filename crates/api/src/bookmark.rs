//! Bookmarks: names for moments.

use crate::{Moment, ObjectKind};
use jiff::Timestamp;
use offshoot_types::{BookmarkId, SnapshotId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A name for a moment of a dSource or VDB, which can be opened as long as the bookmark exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bookmark {
    /// Its id.
    #[schema(value_type = String, example = "bookmark-1")]
    pub id: BookmarkId,
    /// Its name, unique among all bookmarks.
    pub name: String,
    /// The name of the dSource or VDB it is on.
    pub object: String,
    /// What that is.
    pub object_kind: ObjectKind,
    /// The snapshot that holds exactly this moment.
    #[schema(value_type = String, example = "snapshot-7")]
    pub snapshot: SnapshotId,
    /// The log position.
    #[schema(value_type = String, example = "0/3A2B1C0")]
    pub lsn: String,
    /// The time whose state it names.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// When it was set.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// All bookmarks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BookmarkList {
    /// By name.
    pub bookmarks: Vec<Bookmark>,
}

/// Sets a bookmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBookmark {
    /// The name to give it: 1–63 of `a-z 0-9 _ -`, starting with a letter.
    pub name: String,
    /// The dSource or VDB.
    pub on: String,
    /// The moment; the latest where absent.
    #[serde(default)]
    pub moment: Moment,
}
