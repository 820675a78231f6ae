//! From which image a moment is opened.
//!
//! A dSource has snapshots, each an image of the staging standby, and the log. Two images matter:
//!
//! ```text
//!  log   ════╪═════════════╪══════════════╪═══════▶ log
//!            s1            s2       ▲     s3
//!       taken image   taken image   │ target
//!       clean image   clean image   └ replay s2's *taken* image up to here
//! ```
//!
//! - The **clean** image of a ready snapshot was recovered, promoted and shut down. It opens
//!   immediately, but no more log of the source can be replayed into it.
//! - The image **as taken** still follows the log, so every later position opens by replay.
//!
//! A moment is a set of commits. Every position from the end of its last commit up to the end of the
//! next commit shows the same set, so a clean image anywhere in that interval opens it as it is.
//!
//! Rules (each is a property in the tests): a plan never shows a commit after the moment; it replays
//! only log that is kept without a gap from the base's `replay_from` to the moment; of the usable bases
//! it takes the one from which least log is replayed; the same question always gets the same answer.

use crate::{LogRange, Position, Snapshot};
use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure, LogPosition, SnapshotId};

/// How positions are written for users.
pub type Notation<'a> = &'a dyn Fn(LogPosition) -> String;

/// The part of a history that a plan is made for: one timeflow.
#[derive(Clone, Copy)]
pub struct TimeflowView<'a> {
    /// The owner's name, for messages.
    pub name: &'a str,
    /// The timeflow's snapshots, in any order.
    pub snapshots: &'a [Snapshot],
    /// The log kept, oldest first, with the gaps between.
    pub log: &'a [LogRange],
    /// How its positions are written.
    pub write: Notation<'a>,
}

/// A moment after times and transactions are resolved to positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The newest ready snapshot; if there is none, the newest that may become ready.
    LatestSnapshot,
    /// The end of the log; without log, the newest snapshot.
    Latest,
    /// Exactly this snapshot.
    Snapshot(SnapshotId),
    /// After the commit that ends at `end`.
    Position {
        /// The end of the last commit included.
        end: LogPosition,
        /// The end of the next commit; none if unknown.
        next: Option<LogPosition>,
    },
}

/// How a moment is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvisionPlan {
    /// The snapshot the moment is opened from.
    pub snapshot: SnapshotId,
    /// The store's snapshot to clone.
    pub image: SnapshotId,
    /// The image was shut down clean: no recovery.
    pub clean: bool,
    /// The position up to which log is replayed (inclusive); none: no replay.
    pub recover_to: Option<LogPosition>,
    /// Bytes of log to replay, at most.
    pub replay_bytes: u64,
}

/// Why a time cannot be opened (now).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeRefusal {
    /// Later than what was received: ask the source once before this is final.
    NotYet(Failure),
    /// Before the first moment kept, or in a gap.
    Never(Failure),
}

impl From<TimeRefusal> for Failure {
    fn from(refusal: TimeRefusal) -> Failure {
        match refusal {
            TimeRefusal::NotYet(failure) | TimeRefusal::Never(failure) => failure,
        }
    }
}

/// The ranges in which every moment can be opened, oldest first: each begins at its first usable
/// snapshot, as earlier log is useless.
pub fn openable(view: &TimeflowView<'_>) -> Vec<LogRange> {
    let first_base = |range: &LogRange| {
        let usable = view.snapshots.iter().filter(|s| replayable_in(s, range));
        usable.map(|s| s.position).min_by_key(|position| position.log)
    };
    let clip = |range: &LogRange| Some(LogRange { from: first_base(range)?, to: range.to });
    view.log.iter().filter_map(clip).collect()
}

/// Whether the moment `at` can be opened.
///
/// # Errors
/// See [`TimeRefusal`]; the failures name the nearest moments that open.
pub fn check_time(view: &TimeflowView<'_>, at: Timestamp) -> Result<(), TimeRefusal> {
    let ranges = openable(view);
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
        return Err(TimeRefusal::Never(nothing_kept(view)));
    };
    let what = format!("{at} of '{}'", view.name);
    if at < first.from.time {
        let failure = unavailable(
            format!("{what} is before the first moment kept, {}", first.from.time),
            format!(
                "ask for {} or later, or choose an older snapshot: offshoot snapshot list {}",
                first.from.time, view.name
            ),
        );
        return Err(TimeRefusal::Never(failure));
    }
    if at > last.to.time {
        let failure = unavailable(
            format!("{what} is after the last moment received, {}", last.to.time),
            format!("ask for {} or earlier, or for the latest", last.to.time),
        );
        return Err(TimeRefusal::NotYet(failure));
    }
    match ranges.windows(2).find(|pair| at > pair[0].to.time && at < pair[1].from.time) {
        None => Ok(()),
        Some(pair) => Err(TimeRefusal::Never(gap(&what, pair[0].to.time, pair[1].from.time))),
    }
}

/// Chooses how `target` is opened.
///
/// # Errors
/// [`ErrorKind::NotFound`] for an unknown snapshot, [`ErrorKind::WrongState`] for one that failed or
/// if there is none, [`ErrorKind::MomentUnavailable`] for a position outside what is kept; the
/// message names the first or last moment that opens.
pub fn plan(view: &TimeflowView<'_>, target: Target) -> Result<ProvisionPlan, Failure> {
    match target {
        Target::LatestSnapshot => plan_newest(view),
        Target::Latest => match openable(view).last() {
            Some(range) => plan_position(view, range.to.log, None),
            None => plan_newest(view),
        },
        Target::Snapshot(id) => match view.snapshots.iter().find(|s| s.id == id) {
            Some(snapshot) => plan_snapshot(view, snapshot),
            None => Err(Failure::new(
                ErrorKind::NotFound,
                format!("'{}' has no snapshot {id}", view.name),
                format!("see what it has: offshoot snapshot list {}", view.name),
            )),
        },
        Target::Position { end, next } => plan_position(view, end, next),
    }
}

fn plan_newest(view: &TimeflowView<'_>) -> Result<ProvisionPlan, Failure> {
    let rank = |s: &&Snapshot| (s.ready_image().is_some(), s.position.log, s.id);
    let newest = view.snapshots.iter().filter(|s| !s.is_failed()).max_by_key(rank);
    plan_snapshot(view, newest.ok_or_else(|| nothing_kept(view))?)
}

fn plan_snapshot(view: &TimeflowView<'_>, snapshot: &Snapshot) -> Result<ProvisionPlan, Failure> {
    if let crate::Readiness::Failed { reason } = &snapshot.readiness {
        return Err(Failure::new(
            ErrorKind::WrongState,
            format!("{} of '{}' cannot be opened: {reason}", snapshot.id, view.name),
            "choose another snapshot or moment",
        ));
    }
    if let Some(plan) = open_clean(snapshot) {
        return Ok(plan);
    }
    // Not ready yet. The owner's log brings the image to a consistent point; without log it is the
    // image of a running VDB, whose own log is inside.
    let logged = view.log.iter().any(|range| replayable_in(snapshot, range));
    match (logged, view.log.is_empty()) {
        (true, _) => Ok(replay(snapshot, snapshot.position.log)),
        (false, true) => Ok(ProvisionPlan {
            snapshot: snapshot.id,
            image: snapshot.id,
            clean: false,
            recover_to: None,
            replay_bytes: 0,
        }),
        (false, false) => Err(unavailable(
            format!("the log that {} of '{}' needs is not kept", snapshot.id, view.name),
            "choose another snapshot or moment",
        )),
    }
}

fn plan_position(
    view: &TimeflowView<'_>,
    end: LogPosition,
    next: Option<LogPosition>,
) -> Result<ProvisionPlan, Failure> {
    let shows_same = |s: &&Snapshot| {
        s.position.log == end || (s.position.log > end && Some(s.position.log) < next)
    };
    let same = || view.snapshots.iter().filter(shows_same);
    let clean = same().filter(|s| s.ready_image().is_some());
    if let Some(plan) = clean.min_by_key(|s| (s.position.log, s.id)).and_then(open_clean) {
        return Ok(plan);
    }
    if let Some(range) = view.log.iter().find(|range| range.from.log <= end && end <= range.to.log)
    {
        let serves = |s: &&Snapshot| s.position.log <= end && replayable_in(s, range);
        if let Some(base) = view.snapshots.iter().filter(serves).max_by_key(|s| s.nearness()) {
            return Ok(replay(base, end));
        }
    }
    // No base is before the moment, but one after it shows the same commits.
    let replayable = |s: &&Snapshot| view.log.iter().any(|range| replayable_in(s, range));
    match same().filter(replayable).min_by_key(|s| (s.position.log, s.id)) {
        Some(base) => Ok(replay(base, base.position.log)),
        None => Err(outside(view, end)),
    }
}

fn open_clean(snapshot: &Snapshot) -> Option<ProvisionPlan> {
    let image = snapshot.ready_image()?;
    Some(ProvisionPlan {
        snapshot: snapshot.id,
        image,
        clean: true,
        recover_to: None,
        replay_bytes: 0,
    })
}

fn replay(base: &Snapshot, to: LogPosition) -> ProvisionPlan {
    ProvisionPlan {
        snapshot: base.id,
        image: base.id,
        clean: false,
        recover_to: Some(to),
        replay_bytes: to.0.saturating_sub(base.replay_from.0),
    }
}

/// Whether the log of `range` can be replayed into the image of `snapshot` as taken.
fn replayable_in(snapshot: &Snapshot, range: &LogRange) -> bool {
    !snapshot.is_failed()
        && snapshot.follows_log()
        && range.from.log <= snapshot.replay_from
        && snapshot.replay_from <= snapshot.position.log
        && snapshot.position.log <= range.to.log
}

fn outside(view: &TimeflowView<'_>, end: LogPosition) -> Failure {
    let ranges = openable(view);
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
        return nothing_kept(view);
    };
    let say = |at: Position| format!("{} ({})", (view.write)(at.log), at.time);
    let what = format!("{} of '{}'", (view.write)(end), view.name);
    if end < first.from.log {
        return unavailable(
            format!("{what} is before the first moment kept, {}", say(first.from)),
            "ask for that one or a later one",
        );
    }
    if end > last.to.log {
        return unavailable(
            format!("{what} is after the last moment received, {}", say(last.to)),
            "ask for that one or an earlier one, or for the latest",
        );
    }
    match ranges.windows(2).find(|pair| end > pair[0].to.log && end < pair[1].from.log) {
        Some(pair) => gap(&what, say(pair[0].to), say(pair[1].from)),
        None => Failure::internal(format!("no snapshot serves {what}, though it is kept")),
    }
}

fn gap(what: &str, before: impl std::fmt::Display, after: impl std::fmt::Display) -> Failure {
    unavailable(
        format!("{what} is in a gap of the log, between {before} and {after}"),
        "ask for a moment before or after the gap",
    )
}

fn nothing_kept(view: &TimeflowView<'_>) -> Failure {
    let newest = view.snapshots.iter().max_by_key(|snapshot| snapshot.id);
    let failed = newest.and_then(|snapshot| match &snapshot.readiness {
        crate::Readiness::Failed { reason } => Some(format!("{}: {reason}", snapshot.id)),
        _ => None,
    });
    let take = "take one: offshoot snapshot take";
    let (message, hint) = match (view.snapshots.iter().all(Snapshot::is_failed), failed) {
        (true, Some(failed)) => (format!("has no snapshot that could be opened; {failed}"), take),
        (true, None) => ("has no snapshot".to_owned(), take),
        (false, _) if view.log.is_empty() => {
            let message = "keeps no log: only its snapshots open".to_owned();
            (message, "choose one: offshoot snapshot list")
        }
        (false, _) => ("keeps no log that follows a snapshot".to_owned(), take),
    };
    Failure::new(
        ErrorKind::WrongState,
        format!("'{}' {message}", view.name),
        format!("{hint} {}", view.name),
    )
}

fn unavailable(message: String, hint: impl Into<String>) -> Failure {
    Failure::new(ErrorKind::MomentUnavailable, message, hint)
}

#[cfg(test)]
mod tests;
