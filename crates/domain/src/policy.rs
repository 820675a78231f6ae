//! When snapshots are taken and when they may go.

use crate::{Position, Readiness, Snapshot, SnapshotKind};
use jiff::{SignedDuration, Timestamp};
use offshoot_types::{Lsn, SnapshotId};
use serde::{Deserialize, Serialize};

/// When snapshots are taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotPolicy {
    /// Milliseconds between snapshots while there are changes; none: only on demand.
    pub every_ms: Option<u64>,
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        SnapshotPolicy { every_ms: Some(10 * 60 * 1000) }
    }
}

impl SnapshotPolicy {
    /// Whether a snapshot is due: the interval has passed since `last` and the history went on.
    pub fn due(&self, now: Timestamp, last: Option<(Timestamp, Lsn)>, current: Lsn) -> bool {
        match (self.every_ms, last) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(every_ms), Some((taken_at, lsn))) => {
                let passed_ms = now.duration_since(taken_at).as_millis();
                current > lsn && passed_ms >= i128::from(every_ms)
            }
        }
    }
}

/// How long moments are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retention {
    /// Milliseconds for which every moment can be opened.
    pub keep_ms: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { keep_ms: 7 * 24 * 60 * 60 * 1000 }
    }
}

impl Retention {
    /// The oldest time at which every later moment must still open.
    pub fn horizon(&self, now: Timestamp) -> Timestamp {
        let keep = SignedDuration::from_millis(i64::try_from(self.keep_ms).unwrap_or(i64::MAX));
        now.checked_sub(keep).unwrap_or(Timestamp::MIN)
    }

    /// The snapshots of one timeflow that may be deleted.
    ///
    /// Kept are: those at or after the horizon; the newest ready one before it, as the moments just
    /// after the horizon are replayed from it; what a user took; what `pinned` says.
    pub fn expired(
        &self,
        snapshots: &[Snapshot],
        now: Timestamp,
        pinned: impl Fn(SnapshotId) -> bool,
    ) -> Vec<SnapshotId> {
        let horizon = self.horizon(now);
        let old = |snapshot: &&Snapshot| snapshot.position.time < horizon;
        let base = snapshots
            .iter()
            .filter(old)
            .filter(|snapshot| matches!(snapshot.readiness, Readiness::Ready { .. }))
            .max_by_key(|snapshot| (snapshot.position.lsn, snapshot.id))
            .map(|snapshot| snapshot.id);
        snapshots
            .iter()
            .filter(old)
            .filter(|snapshot| snapshot.kind != SnapshotKind::Manual)
            .map(|snapshot| snapshot.id)
            .filter(|id| Some(*id) != base && !pinned(*id))
            .collect()
    }

    /// From where the log must be kept so that `snapshots` (those that stay) can be replayed from;
    /// none where there is no snapshot and no log is needed.
    pub fn log_needed_from(snapshots: &[Snapshot]) -> Option<Lsn> {
        snapshots.iter().map(|snapshot| snapshot.redo.min(snapshot.position.lsn)).min()
    }
}

impl Position {
    /// How far `self` is behind `newer`: bytes of log and milliseconds, never negative.
    pub fn lag_to(&self, newer: &Position) -> (u64, u64) {
        let bytes = newer.lsn.0.saturating_sub(self.lsn.0);
        let ms = newer.time.duration_since(self.time).as_millis().max(0);
        (bytes, u64::try_from(ms).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
