//! Moments of a timeflow: requested and resolved.

use jiff::Timestamp;
use offshoot_types::SnapshotId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A moment to open, as asked for: `{"kind": "at", "time": "2026-11-21T14:03:27.5Z"}`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Moment {
    /// The last moment the engine has.
    #[default]
    Latest,
    /// What a snapshot holds.
    Snapshot {
        /// The snapshot.
        #[schema(value_type = String, example = "snapshot-7")]
        id: SnapshotId,
    },
    /// The last commit not after a time.
    At {
        /// The time on the source's clock.
        #[schema(value_type = String, format = DateTime)]
        time: Timestamp,
    },
    /// A log position.
    Lsn {
        /// The position.
        #[schema(value_type = String, example = "0/3A2B1C0")]
        lsn: String,
    },
    /// What a bookmark names.
    Bookmark {
        /// The bookmark.
        name: String,
    },
    /// The commit of a transaction.
    Xid {
        /// The transaction's number.
        xid: u32,
    },
}

/// The moment that a VDB was opened at.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Position {
    /// The snapshot it was cloned from.
    #[schema(required, value_type = Option<String>, example = "snapshot-7")]
    pub snapshot: Option<SnapshotId>,
    /// The log position it was recovered to.
    #[schema(required, value_type = Option<String>, example = "0/3A2B1C0")]
    pub lsn: Option<String>,
    /// The time, on the source's clock, whose state it holds.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub time: Option<Timestamp>,
}
