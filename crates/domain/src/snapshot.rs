//! Snapshots.

use crate::{Owner, Position};
use jiff::Timestamp;
use offshoot_types::{LogPosition, SnapshotId, TimeflowId};
use serde::{Deserialize, Serialize};

/// Why a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotKind {
    /// By the snapshot policy.
    Policy,
    /// A user asked for it, and only a user deletes it: retention never does.
    Manual,
    /// At the end of a link or a SnapSync.
    Link,
    /// To keep the time to open any moment short.
    RecoveryPoint,
    /// Of a VDB just before a rewind or refresh, so that it can be undone.
    PreRewind,
    /// A masked image. It opens as it is, and no log goes on from it.
    Masked,
    /// Made for a bookmark, and removed with it. It was recovered up to exactly that moment.
    Bookmark,
}

/// Whether a snapshot opens at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Readiness {
    /// Not yet recovered and checked.
    Pending,
    /// Recovered, shut down clean and checked: opening it needs no recovery.
    Ready {
        /// The clean image in the store.
        image: SnapshotId,
        /// Whether all of it passed every check, so that another image needs checking only where it
        /// differs from this one.
        #[serde(default)]
        proven: bool,
    },
    /// It could not be recovered or did not pass the checks.
    Failed {
        /// What was found.
        reason: String,
    },
}

/// An immutable root of a dataset, with the database position it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The store's id of the image as it was taken (of a running standby or VDB: it opens with
    /// recovery, and log can be replayed into it).
    pub id: SnapshotId,
    /// Whose history it is part of.
    pub owner: Owner,
    /// The timeflow it lies on.
    pub timeflow: TimeflowId,
    /// What it holds: every commit up to `position.log`.
    pub position: Position,
    /// Where recovery of the image starts to read log; at or before `position.log`.
    #[serde(alias = "redo")]
    pub replay_from: LogPosition,
    /// The epoch of the log at `position`.
    #[serde(alias = "timeline")]
    pub epoch: u32,
    /// Why it was taken.
    pub kind: SnapshotKind,
    /// When it was taken, by the engine's clock.
    pub taken_at: Timestamp,
    /// Whether it opens at once.
    pub readiness: Readiness,
    /// What was not checked when it was made ready, and why.
    #[serde(default)]
    pub unchecked: Vec<String>,
}

impl Snapshot {
    /// The clean image, if the snapshot is ready.
    pub fn ready_image(&self) -> Option<SnapshotId> {
        match self.readiness {
            Readiness::Ready { image, .. } => Some(image),
            Readiness::Pending | Readiness::Failed { .. } => None,
        }
    }

    /// The same, if all of it was checked.
    pub fn proven_image(&self) -> Option<SnapshotId> {
        match self.readiness {
            Readiness::Ready { image, proven: true } => Some(image),
            _ => None,
        }
    }

    /// Whether the owner's log can be replayed into the image as taken.
    pub fn follows_log(&self) -> bool {
        !matches!(self.kind, SnapshotKind::Bookmark | SnapshotKind::Masked)
    }

    /// Of two that are before a moment, that with the greater one is opened there by replaying less log.
    pub fn nearness(&self) -> (LogPosition, LogPosition, SnapshotId) {
        (self.replay_from, self.position.log, self.id)
    }

    /// Whether it is kept for its content, not only to shorten replay or for a bookmark.
    pub fn is_lasting(&self) -> bool {
        !matches!(self.kind, SnapshotKind::RecoveryPoint | SnapshotKind::Bookmark)
    }

    /// Whether it waits for its proof.
    pub fn awaits_proof(&self) -> bool {
        self.readiness == Readiness::Pending && self.kind != SnapshotKind::RecoveryPoint
    }

    /// Whether making it ready failed.
    pub fn is_failed(&self) -> bool {
        matches!(self.readiness, Readiness::Failed { .. })
    }
}
