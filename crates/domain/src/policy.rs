//! How a dSource or VDB is kept: when snapshots are taken, how long they stay, how large it may grow.

mod retention;

pub use retention::{KeptLog, Retention};

use crate::{Owner, Position, format_duration};
use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure, LogPosition};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
const WEEK_MS: u64 = 7 * DAY_MS;
/// The shortest interval between snapshots: a shorter one would only ever take snapshots.
const EVERY_MS_MIN: u64 = 1000;
/// The promise of a dSource until its user makes another.
const OPEN_WITHIN_MS: u64 = 3000;
/// The shortest: a server takes about that long to start.
const OPEN_WITHIN_MS_MIN: u64 = 1000;
/// The most warm copies of a dSource.
const WARM_MAX: u32 = 32;
/// The longest duration of a policy: beyond it, arithmetic with times overflows.
const DURATION_MS_MAX: u64 = 1000 * 365 * DAY_MS;

/// When snapshots are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Whether a snapshot is due: the interval has passed since `last` and the history continued.
    pub fn due(
        &self,
        now: Timestamp,
        last: Option<(Timestamp, LogPosition)>,
        current: LogPosition,
    ) -> bool {
        match last {
            None => self.every_ms.is_some(),
            Some((taken_at, log)) => self.has_passed(now, taken_at) && current > log,
        }
    }

    /// Whether the interval has passed since a snapshot was taken.
    pub fn has_passed(&self, now: Timestamp, taken_at: Timestamp) -> bool {
        let passed_ms = now.duration_since(taken_at).as_millis();
        self.every_ms.is_some_and(|every_ms| passed_ms >= i128::from(every_ms))
    }
}

/// What a user may set about how a dSource or VDB is kept. The default is that of a dSource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// When snapshots are taken.
    #[serde(alias = "snapshot_policy")]
    pub snapshots: SnapshotPolicy,
    /// How long snapshots and log stay.
    pub retention: Retention,
    /// The most it may take in the pool for itself, in bytes; none: as much as there is.
    pub quota_bytes: Option<u64>,
    /// How many VDBs of the latest moment of a dSource run before anybody asks for one.
    pub warm: u32,
    /// Milliseconds within which any moment of a dSource is to open: recovery points lie as near as that takes.
    pub open_within_ms: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            snapshots: SnapshotPolicy::default(),
            retention: Retention::default(),
            quota_bytes: None,
            warm: 0,
            open_within_ms: OPEN_WITHIN_MS,
        }
    }
}

/// What to change in a policy; absent fields stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PolicyChange {
    /// Milliseconds between snapshots; `Some(None)`: never.
    pub snapshot_every_ms: Option<Option<u64>>,
    /// See [`Retention::keep_all_ms`].
    pub keep_all_ms: Option<u64>,
    /// See [`Retention::hourly_ms`].
    pub hourly_ms: Option<u64>,
    /// See [`Retention::daily_ms`].
    pub daily_ms: Option<u64>,
    /// See [`Retention::weekly_ms`].
    pub weekly_ms: Option<u64>,
    /// See [`Retention::log_ms`].
    pub log_ms: Option<u64>,
    /// Bytes; `Some(None)`: no quota.
    pub quota_bytes: Option<Option<u64>>,
    /// See [`Policy::warm`].
    pub warm: Option<u32>,
    /// See [`Policy::open_within_ms`].
    pub open_within_ms: Option<u64>,
}

impl Policy {
    /// The policy of a VDB until its user sets another: snapshots only on demand, as each is proved
    /// by starting a server, and everything kept for a week.
    pub fn of_vdb() -> Self {
        let retention =
            Retention { keep_all_ms: WEEK_MS, hourly_ms: 0, daily_ms: 0, weekly_ms: 0, log_ms: 0 };
        Policy { snapshots: SnapshotPolicy { every_ms: None }, retention, ..Policy::default() }
    }

    /// The policy with a change made.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for an invalid policy, with what would be valid.
    pub fn changed(&self, change: &PolicyChange, of: Owner) -> Result<Policy, Failure> {
        let old = &self.retention;
        let policy = Policy {
            snapshots: SnapshotPolicy {
                every_ms: change.snapshot_every_ms.unwrap_or(self.snapshots.every_ms),
            },
            retention: Retention {
                keep_all_ms: change.keep_all_ms.unwrap_or(old.keep_all_ms),
                hourly_ms: change.hourly_ms.unwrap_or(old.hourly_ms),
                daily_ms: change.daily_ms.unwrap_or(old.daily_ms),
                weekly_ms: change.weekly_ms.unwrap_or(old.weekly_ms),
                log_ms: change.log_ms.unwrap_or(old.log_ms),
            },
            quota_bytes: change.quota_bytes.unwrap_or(self.quota_bytes),
            warm: change.warm.unwrap_or(self.warm),
            open_within_ms: change.open_within_ms.unwrap_or(self.open_within_ms),
        };
        if matches!(of, Owner::Vdb(_)) && change.open_within_ms.is_some() {
            let message = "a VDB keeps no log: its snapshots open as they are";
            let hint = "use --open-within with the dSource whose moments are opened";
            return Err(Failure::new(ErrorKind::InvalidInput, message, hint));
        }
        policy.check(of)?;
        Ok(policy)
    }

    /// How soon moments open, and how many wait opened.
    fn check_openings(&self, of: Owner) -> Result<(), Failure> {
        if !(OPEN_WITHIN_MS_MIN..=HOUR_MS).contains(&self.open_within_ms) {
            return refuse(
                "moments can be promised to open within a second to an hour".to_owned(),
                "use --open-within 3s".to_owned(),
            );
        }
        if self.warm > WARM_MAX {
            return refuse(
                format!("{} warm copies are more than the {WARM_MAX} that may be kept", self.warm),
                "each takes the memory of an idle server: keep as many as are asked for at once"
                    .to_owned(),
            );
        }
        if matches!(of, Owner::Vdb(_)) && self.warm > 0 {
            return refuse(
                "warm copies are of dSources".to_owned(),
                "use --warm with the dSource that VDBs are provisioned from".to_owned(),
            );
        }
        Ok(())
    }

    /// Whether it is one that may be set.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] with what would be valid.
    pub fn check(&self, of: Owner) -> Result<(), Failure> {
        if self.snapshots.every_ms.is_some_and(|every_ms| every_ms < EVERY_MS_MIN) {
            return refuse(
                "snapshots cannot be taken more often than every second".to_owned(),
                "use --snapshot-every 10min, or --snapshot-every never".to_owned(),
            );
        }
        if self.quota_bytes == Some(0) {
            return refuse(
                "nothing fits a quota of 0 bytes".to_owned(),
                "use --quota 50GiB, or --quota none to have none".to_owned(),
            );
        }
        self.check_openings(of)?;
        let Retention { keep_all_ms, hourly_ms, daily_ms, weekly_ms, log_ms } = self.retention;
        if matches!(of, Owner::Vdb(_)) && log_ms > 0 {
            return refuse(
                "a VDB keeps no log of its own, only snapshots".to_owned(),
                "use --snapshot-every and --keep-all, or --log with its dSource".to_owned(),
            );
        }
        let all = [
            self.snapshots.every_ms.unwrap_or(0),
            keep_all_ms,
            hourly_ms,
            daily_ms,
            weekly_ms,
            log_ms,
        ];
        if all.into_iter().any(|ms| ms > DURATION_MS_MAX) {
            return refuse(
                "a policy reaches back 1000 years at most".to_owned(),
                "give shorter durations".to_owned(),
            );
        }
        // A longer step that ends before a shorter one keeps nothing, which is surely not what was
        // meant.
        let mut within = ("--keep-all", keep_all_ms);
        for step in [("--hourly", hourly_ms), ("--daily", daily_ms), ("--weekly", weekly_ms)] {
            if step.1 == 0 {
                continue;
            }
            if step.1 < within.1 {
                let [shorter, longer] =
                    [step.1, within.1].map(|ms| format_duration(Duration::from_millis(ms)));
                return refuse(
                    format!(
                        "{} {shorter} keeps nothing that {} {longer} does not keep already",
                        step.0, within.0
                    ),
                    format!("give {} more than {longer}, or none to leave it out", step.0),
                );
            }
            within = step;
        }
        Ok(())
    }
}

fn refuse(message: String, hint: String) -> Result<(), Failure> {
    Err(Failure::new(ErrorKind::InvalidInput, message, hint))
}

impl Position {
    /// How far `self` is behind `newer`: bytes of log and milliseconds, never negative.
    pub fn lag_to(&self, newer: &Position) -> (u64, u64) {
        let bytes = newer.log.0.saturating_sub(self.log.0);
        let ms = newer.time.duration_since(self.time).as_millis().max(0);
        (bytes, u64::try_from(ms).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
