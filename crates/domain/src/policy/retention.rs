//! Which snapshots and which log may be removed.
//!
//! A snapshot stays while **any** of these keeps it:
//!
//! | it stays | because |
//! |---|---|
//! | a user took it (`snapshot take`) | only who asked for it deletes it |
//! | it is pinned: a bookmark names it, a job works on it | |
//! | it is the newest that is ready, or the newest that may become so | an object never loses its last state |
//! | it is younger than `keep_all` | |
//! | it is the first of its hour / day / week (UTC, Monday first), and that is within `hourly` / `daily` / `weekly` | |
//! | moments within `log` are replayed from it: the newest ready one before the window, and within it the first of each stretch of log that is replayed in the promised time ([`crate::Pace::spacing`]) | any moment of the window opens, and soon |
//!
//! # Why the first of each hour
//! Hours are within days, days within weeks. The first of a week is the first of its day and the first of its
//! hour, so a shorter step never drops what a longer one will want, and no later snapshot replaces it. So
//! what survives of an hour does not depend on when and how often retention runs (a property in the tests). A
//! period counts while any part of it is within reach; otherwise its first snapshot would be dropped although
//! its second is already gone.
//!
//! "First" is the first that is ready or, while none is, the first that may become ready. Snapshots that
//! failed to open are kept as long as all are, so that users can look at them.

use crate::{Readiness, Snapshot, SnapshotKind};
use jiff::{SignedDuration, Timestamp};
use offshoot_types::{LogPosition, SnapshotId, TimeflowId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

use super::{DAY_MS, HOUR_MS, WEEK_MS};

/// 1970 began on a Thursday: three days into a week.
const EPOCH_IN_WEEK_MS: u64 = 3 * DAY_MS;

/// How long snapshots and log stay. 0 keeps nothing for that reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retention {
    /// Milliseconds for which every snapshot stays; of a VDB also the states that a rewind or refresh
    /// replaced.
    pub keep_all_ms: u64,
    /// Milliseconds for which the first snapshot of each hour stays.
    pub hourly_ms: u64,
    /// Milliseconds for which the first snapshot of each day stays.
    pub daily_ms: u64,
    /// Milliseconds for which the first snapshot of each week stays.
    pub weekly_ms: u64,
    /// Milliseconds for which every moment can be opened, as the log is kept.
    #[serde(alias = "keep_ms")]
    pub log_ms: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Retention {
            keep_all_ms: DAY_MS,
            hourly_ms: WEEK_MS,
            daily_ms: 30 * DAY_MS,
            weekly_ms: 0,
            log_ms: WEEK_MS,
        }
    }
}

/// The log that is kept of a dSource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptLog {
    /// The timeflow it belongs to.
    pub timeflow: TimeflowId,
    /// Where it begins.
    pub from: LogPosition,
}

impl KeptLog {
    /// Whether log can be replayed into a snapshot's image as taken.
    fn follows(&self, snapshot: &Snapshot) -> bool {
        snapshot.timeflow == self.timeflow
            && snapshot.replay_from >= self.from
            && snapshot.follows_log()
            && !snapshot.is_failed()
    }
}

impl Retention {
    /// The oldest time at which every later moment must still open.
    pub fn horizon(&self, now: Timestamp) -> Timestamp {
        before(now, self.log_ms)
    }

    /// The time since which every snapshot and every replaced state stays.
    pub fn keep_all_from(&self, now: Timestamp) -> Timestamp {
        before(now, self.keep_all_ms)
    }

    /// The snapshots of one dSource or VDB that may be deleted; `logs` are those of a dSource, and `spacing` is how much
    /// log may lie between two snapshots on them.
    pub fn expired(
        &self,
        snapshots: &[Snapshot],
        (logs, spacing): (impl IntoIterator<Item = KeptLog>, u64),
        now: Timestamp,
        pinned: impl Fn(SnapshotId) -> bool,
    ) -> Vec<SnapshotId> {
        let mut kept: HashSet<SnapshotId> = HashSet::new();
        let proved = |one: &Snapshot| one.ready_image().is_some();
        kept.extend(newest(snapshots, |one| one.is_lasting() && proved(one)));
        kept.extend(newest(snapshots, |one| one.follows_log() && !one.is_failed()));
        for (period_ms, shift_ms, reach_ms) in [
            (HOUR_MS, 0, self.hourly_ms),
            (DAY_MS, 0, self.daily_ms),
            (WEEK_MS, EPOCH_IN_WEEK_MS, self.weekly_ms),
        ] {
            let period = |time: Timestamp| {
                let shifted = i128::from(time.as_millisecond()) + i128::from(shift_ms);
                shifted.div_euclid(i128::from(period_ms))
            };
            let oldest = period(before(now, reach_ms));
            let lasting = snapshots.iter().filter(|one| one.is_lasting());
            let firsts = firsts(lasting, |one| period(one.position.time));
            let reached = firsts.into_iter().filter(|(of, _)| reach_ms > 0 && *of >= oldest);
            kept.extend(reached.map(|(_, id)| id));
        }
        for log in logs {
            kept.extend(self.replayed_from(snapshots, (log, spacing), now));
        }
        let young = self.keep_all_from(now);
        let stays = |one: &Snapshot| {
            one.kind == SnapshotKind::Manual
                || (self.keep_all_ms > 0 && one.is_lasting() && one.position.time >= young)
                || kept.contains(&one.id)
                || pinned(one.id)
        };
        snapshots.iter().filter(|one| !stays(one)).map(|one| one.id).collect()
    }

    /// The snapshots from which the moments of the window are replayed.
    fn replayed_from(
        &self,
        snapshots: &[Snapshot],
        (log, spacing): (KeptLog, u64),
        now: Timestamp,
    ) -> impl Iterator<Item = SnapshotId> {
        let horizon = self.horizon(now);
        let base = self.base(snapshots, log, now).map(|one| one.id);
        let on_log = snapshots.iter().filter(|one| log.follows(one));
        let spaced = firsts(on_log, |one| i128::from(one.position.log.0 / spacing.max(1)));
        let young: HashSet<SnapshotId> =
            snapshots.iter().filter(|one| one.position.time >= horizon).map(|one| one.id).collect();
        base.into_iter().chain(spaced.into_values().filter(move |id| young.contains(id)))
    }

    /// The snapshot from which the oldest promised moment is replayed: the newest ready one at or before
    /// the horizon; if the history is shorter than that, its first.
    fn base<'a>(
        &self,
        snapshots: &'a [Snapshot],
        log: KeptLog,
        now: Timestamp,
    ) -> Option<&'a Snapshot> {
        let horizon = self.horizon(now);
        let on_log = || snapshots.iter().filter(|one| log.follows(one));
        let position = |one: &&Snapshot| (one.position.log, one.id);
        on_log()
            .filter(|one| one.ready_image().is_some() && one.position.time <= horizon)
            .max_by_key(position)
            .or_else(|| on_log().min_by_key(position))
    }

    /// The position from which log must be kept so that every promised moment opens and every
    /// snapshot that waits for its proof can be recovered; none if no snapshot follows the log.
    pub fn log_needed_from(
        &self,
        snapshots: &[Snapshot],
        log: KeptLog,
        now: Timestamp,
    ) -> Option<LogPosition> {
        let base = self.base(snapshots, log, now)?;
        let unproved = snapshots.iter().filter(|one| log.follows(one) && one.awaits_proof());
        unproved.chain([base]).map(|one| one.replay_from.min(one.position.log)).min()
    }
}

fn before(now: Timestamp, ms: u64) -> Timestamp {
    let span = SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
    now.checked_sub(span).unwrap_or(Timestamp::MIN)
}

fn newest(snapshots: &[Snapshot], of: impl Fn(&Snapshot) -> bool) -> Option<SnapshotId> {
    let newest = snapshots.iter().filter(|one| of(one)).max_by_key(|one| (one.taken_at, one.id));
    newest.map(|one| one.id)
}

/// The first snapshot of each period: the first that is ready, otherwise the first that may become
/// ready.
fn firsts<'a>(
    snapshots: impl Iterator<Item = &'a Snapshot>,
    period: impl Fn(&Snapshot) -> i128,
) -> BTreeMap<i128, SnapshotId> {
    let mut firsts: BTreeMap<i128, &Snapshot> = BTreeMap::new();
    for one in snapshots.filter(|one| !one.is_failed()) {
        let rank = |of: &Snapshot| {
            let unproved = of.readiness == Readiness::Pending;
            (unproved, of.position.time, of.position.log, of.id)
        };
        let first = firsts.entry(period(one)).or_insert(one);
        if rank(one) < rank(first) {
            *first = one;
        }
    }
    firsts.into_iter().map(|(period, one)| (period, one.id)).collect()
}

#[cfg(test)]
mod tests;
