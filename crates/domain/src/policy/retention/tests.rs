use super::{KeptLog, Retention};
use crate::policy::{DAY_MS, HOUR_MS, WEEK_MS};
use crate::{Owner, Position, Readiness, Snapshot, SnapshotKind};
use jiff::Timestamp;
use offshoot_types::{DsourceId, LogPosition, SnapshotId, TimeflowId};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Log between two snapshots.
const SPACING_BYTES: u64 = 64 << 20;
const LOG: KeptLog = KeptLog { timeflow: TimeflowId(1), from: LogPosition(0) };
/// A Monday, 00:00 UTC.
const MONDAY_MS: u64 = 1_767_571_200_000;

fn at_ms(ms: u64) -> Timestamp {
    Timestamp::from_millisecond(ms as i64).expect("in range")
}

fn snapshot(id: u64, at: u64, kind: SnapshotKind, readiness: Readiness) -> Snapshot {
    let log = LogPosition(1 << 20 | (at - MONDAY_MS + WEEK_MS) << 10);
    Snapshot {
        id: SnapshotId(id),
        owner: Owner::Dsource(DsourceId(1)),
        timeflow: TimeflowId(1),
        position: Position { log, time: at_ms(at) },
        replay_from: LogPosition(log.0 - 10),
        epoch: 1,
        kind,
        taken_at: at_ms(at),
        readiness,
        unchecked: Vec::new(),
    }
}

fn ready(id: u64, at: u64) -> Snapshot {
    let image = SnapshotId(1_000_000 + id);
    snapshot(id, at, SnapshotKind::Policy, Readiness::Ready { image, proven: false })
}

fn only(change: impl FnOnce(&mut Retention)) -> Retention {
    let mut retention =
        Retention { keep_all_ms: 0, hourly_ms: 0, daily_ms: 0, weekly_ms: 0, log_ms: 0 };
    change(&mut retention);
    retention
}

fn kept(of: &Retention, all: &[Snapshot], log: Option<KeptLog>, now: u64) -> Vec<Snapshot> {
    let expired = of.expired(all, (log, SPACING_BYTES), at_ms(now), |_| false);
    all.iter().filter(|one| !expired.contains(&one.id)).cloned().collect()
}

fn ids(of: &[Snapshot]) -> BTreeSet<u64> {
    of.iter().map(|one| one.id.0).collect()
}

/// Every ten minutes for a number of days, all ready.
fn history(days: u64) -> Vec<Snapshot> {
    (0..days * 144).map(|n| ready(n + 1, MONDAY_MS + n * 600_000)).collect()
}

#[test]
fn all_then_one_an_hour_a_day_a_week() {
    let all = history(28);
    let now = MONDAY_MS + 28 * DAY_MS;
    let policy = Retention {
        keep_all_ms: DAY_MS,
        hourly_ms: 2 * DAY_MS,
        daily_ms: WEEK_MS,
        weekly_ms: 4 * WEEK_MS,
        log_ms: 0,
    };
    let left = kept(&policy, &all, None, now);
    let age_h = |one: &Snapshot| (now - one.position.time.as_millisecond() as u64) / HOUR_MS;
    let between =
        |from: u64, to: u64| left.iter().filter(|s| (from..to).contains(&age_h(s))).count();
    assert_eq!(between(0, 24), 144 - 1, "ten-minute ones; the last is ten minutes old");
    assert_eq!(between(24, 48), 24, "hourly ones");
    assert_eq!(between(48, 7 * 24), 5, "daily ones");
    assert_eq!(between(7 * 24, 29 * 24), 4, "weekly ones");
    let mondays = left.iter().filter(|one| age_h(one) > 7 * 24);
    for one in mondays {
        let since = one.position.time.as_millisecond() as u64 - MONDAY_MS;
        assert_eq!(since % WEEK_MS, 0, "{} is not the first of its week", one.id);
    }
}

#[test]
fn what_a_user_took_a_bookmark_names_or_nothing_replaces_stays() {
    let mut all = history(2);
    all[5].kind = SnapshotKind::Manual;
    let newest = all.last().map(|one| one.id.0).unwrap();
    let expired =
        only(|_| ()).expired(&all, (None, SPACING_BYTES), at_ms(MONDAY_MS + 900 * DAY_MS), |id| {
            id == SnapshotId(9)
        });
    let left: BTreeSet<u64> =
        ids(&all).into_iter().filter(|id| !expired.contains(&SnapshotId(*id))).collect();
    assert_eq!(left, BTreeSet::from([6, 9, newest]));
}

#[test]
fn one_that_is_not_proved_takes_no_place_of_one_that_is() {
    let hour = only(|of| of.hourly_ms = WEEK_MS);
    let mut all = history(1);
    let now = MONDAY_MS + DAY_MS;
    all[0].readiness = Readiness::Failed { reason: "test".to_owned() };
    all[1].readiness = Readiness::Pending;
    let left = ids(&kept(&hour, &all, None, now));
    assert!(left.contains(&3) && !left.contains(&1) && !left.contains(&2), "{left:?}");
    // Where nothing in the hour is proved, what may become so is kept.
    for one in &mut all[2..6] {
        one.readiness = Readiness::Pending;
    }
    assert!(ids(&kept(&hour, &all, None, now)).contains(&2));
}

#[test]
fn the_log_begins_where_the_oldest_promised_moment_is_replayed_from() {
    let policy = only(|of| (of.log_ms, of.daily_ms) = (2 * HOUR_MS, WEEK_MS));
    let mut all = history(3);
    let now = MONDAY_MS + 3 * DAY_MS;
    let base = all.iter().rposition(|one| one.position.time <= policy.horizon(at_ms(now))).unwrap();
    let left = kept(&policy, &all, Some(LOG), now);
    assert!(ids(&left).contains(&all[base].id.0));
    let needed = policy.log_needed_from(&left, LOG, at_ms(now));
    assert_eq!(needed, Some(all[base].replay_from), "not from that of two days ago");
    // One that cannot be opened is no base.
    all[base].readiness = Readiness::Failed { reason: "test".to_owned() };
    let needed = policy.log_needed_from(&all, LOG, at_ms(now));
    assert_eq!(needed, Some(all[base - 1].replay_from));
    // One that waits for its proof needs log too.
    all[base - 4].readiness = Readiness::Pending;
    let needed = policy.log_needed_from(&all, LOG, at_ms(now));
    assert_eq!(needed, Some(all[base - 4].replay_from));
}

#[test]
fn a_history_shorter_than_the_window_keeps_its_beginning() {
    let policy = only(|of| of.log_ms = WEEK_MS);
    let mut all = history(1);
    all[0].readiness = Readiness::Pending;
    let left = kept(&policy, &all, Some(LOG), MONDAY_MS + DAY_MS);
    assert!(ids(&left).contains(&1));
    assert_eq!(
        policy.log_needed_from(&left, LOG, at_ms(MONDAY_MS + DAY_MS)),
        Some(all[0].replay_from)
    );
    // Also where older ones are kept for another reason, whose log is gone.
    let log = KeptLog { from: all[70].replay_from, ..LOG };
    let left = kept(&policy, &all, Some(log), MONDAY_MS + DAY_MS);
    assert!(ids(&left).contains(&71));
}

#[test]
fn recovery_points_stay_while_log_is_replayed_from_them() {
    let mut all = history(2);
    for one in all.iter_mut().skip(1).step_by(2) {
        (one.kind, one.readiness) = (SnapshotKind::RecoveryPoint, Readiness::Pending);
    }
    let policy = only(|of| (of.keep_all_ms, of.log_ms) = (2 * DAY_MS, DAY_MS));
    let now = MONDAY_MS + 2 * DAY_MS;
    let old = |one: &&Snapshot| one.position.time < policy.horizon(at_ms(now));
    let left = kept(&policy, &all, Some(LOG), now);
    let points = |of: &[Snapshot]| {
        of.iter().filter(old).filter(|one| one.kind == SnapshotKind::RecoveryPoint).count()
    };
    assert!(points(&all) > 0);
    assert_eq!(points(&left), 0, "nothing is replayed from those before the window");
}

#[test]
fn a_retention_longer_than_time_itself_keeps_everything() {
    let policy = only(|of| of.keep_all_ms = u64::MAX);
    assert_eq!(ids(&kept(&policy, &history(1), None, MONDAY_MS + WEEK_MS)).len(), 144);
    assert_eq!(only(|of| of.log_ms = u64::MAX).horizon(at_ms(0)), Timestamp::MIN);
}

fn snapshots() -> impl Strategy<Value = Vec<Snapshot>> {
    let span = 40 * DAY_MS;
    prop::collection::vec((0..span, 0_u8..6, 0_u8..8), 0..60).prop_map(|mut rows| {
        rows.sort();
        let build = |(index, (at, readiness, kind)): (usize, (u64, u8, u8))| {
            let id = index as u64 + 1;
            let kind = match kind {
                0 => SnapshotKind::Manual,
                1 | 2 => SnapshotKind::RecoveryPoint,
                _ => SnapshotKind::Policy,
            };
            let readiness = match (kind, readiness) {
                (SnapshotKind::RecoveryPoint, _) | (_, 0) => Readiness::Pending,
                (_, 1) => Readiness::Failed { reason: "test".to_owned() },
                _ => Readiness::Ready { image: SnapshotId(1000 + id), proven: false },
            };
            snapshot(id, MONDAY_MS + at, kind, readiness)
        };
        rows.into_iter().enumerate().map(build).collect()
    })
}

prop_compose! {
    fn policies()(
        keep_all in 0..3 * DAY_MS, hourly in 0..5 * DAY_MS, daily in 0..20 * DAY_MS,
        weekly in 0..60 * DAY_MS, log in 0..10 * DAY_MS,
    ) -> Retention {
        Retention {
            keep_all_ms: keep_all, hourly_ms: hourly, daily_ms: daily, weekly_ms: weekly, log_ms: log,
        }
    }
}

/// The snapshot that a time is opened from.
fn base_of(of: &[Snapshot], at: Timestamp) -> Option<SnapshotId> {
    let ready = of.iter().filter(|one| one.ready_image().is_some() && one.position.time <= at);
    ready.max_by_key(|one| (one.position.log, one.id)).map(|one| one.id)
}

proptest! {
    /// Running once at the end or many times on the way leaves the same: what survives does not
    /// depend on when retention runs.
    #[test]
    fn the_survivors_do_not_depend_on_when_it_is_asked(
        all in snapshots(), policy in policies(), mut rounds in prop::collection::vec(0..60 * DAY_MS, 0..12),
    ) {
        // Readiness and users decide by themselves, not by time; what is newest depends on time.
        let all: Vec<Snapshot> = all.into_iter().filter(|one| one.ready_image().is_some()).collect();
        let end = MONDAY_MS + 60 * DAY_MS;
        rounds.sort_unstable();
        let mut left: Vec<Snapshot> = Vec::new();
        let (mut seen, mut promised) = (0, all.clone());
        for now in rounds.into_iter().map(|at| MONDAY_MS + at).chain([end]) {
            let taken = all[seen..].iter().take_while(|one| one.taken_at <= at_ms(now)).count();
            left.extend_from_slice(&all[seen..seen + taken]);
            seen += taken;
            left = kept(&policy, &left, None, now);
            promised.retain(|one| one.taken_at > at_ms(now) || ids(&left).contains(&one.id.0));
        }
        let at_once = kept(&policy, &all, None, end);
        prop_assert_eq!(ids(&left), ids(&at_once));
        prop_assert_eq!(ids(&promised), ids(&left), "one that was dropped is not missed later");
    }

    /// Every moment of the window still opens, from the same base or a nearer one; what else was
    /// promised is there; a second run finds nothing.
    #[test]
    fn what_is_promised_stays(
        all in snapshots(), policy in policies(), pinned in 1_u64..60, at in 0..50 * DAY_MS,
        moment in 0..10 * DAY_MS,
    ) {
        let now = MONDAY_MS + at;
        let all: Vec<Snapshot> = all.into_iter().filter(|one| one.taken_at <= at_ms(now)).collect();
        let pin = |id| id == SnapshotId(pinned);
        let expired = policy.expired(&all, (Some(LOG), SPACING_BYTES), at_ms(now), pin);
        let left: Vec<Snapshot> =
            all.iter().filter(|one| !expired.contains(&one.id)).cloned().collect();
        for gone in all.iter().filter(|one| expired.contains(&one.id)) {
            prop_assert!(gone.kind != SnapshotKind::Manual && !pin(gone.id));
            let young = gone.position.time >= at_ms(now - policy.keep_all_ms);
            prop_assert!(!young || policy.keep_all_ms == 0 || gone.kind == SnapshotKind::RecoveryPoint);
        }
        let horizon = policy.horizon(at_ms(now));
        prop_assert_eq!(base_of(&all, horizon), base_of(&left, horizon));
        let needed = policy.log_needed_from(&left, LOG, at_ms(now));
        if let Some(base) = base_of(&all, at_ms((now - policy.log_ms + moment).min(now))) {
            // Whatever could open the moment before, a remaining snapshot opens it with the
            // remaining log.
            let moment = all.iter().find(|one| one.id == base).unwrap();
            let serves = |one: &&Snapshot| {
                one.position.log <= moment.position.log && needed <= Some(one.replay_from) && !one.is_failed()
            };
            prop_assert!(left.iter().any(|one| serves(&one)), "{} is not served", base);
        }
        let usable = |of: &[Snapshot]| of.iter().any(|one| !one.is_failed());
        let proved = |of: &[Snapshot]| of.iter().any(|one| one.ready_image().is_some());
        prop_assert_eq!((usable(&all), proved(&all)), (usable(&left), proved(&left)));
        prop_assert_eq!(policy.expired(&left, (Some(LOG), SPACING_BYTES), at_ms(now), pin), vec![]);
    }

    /// Time only ever removes: what may go now may go at any later time.
    #[test]
    fn time_only_takes_away(
        all in snapshots(), policy in policies(), at in 40 * DAY_MS..50 * DAY_MS, later in 0..50 * DAY_MS,
    ) {
        let now = MONDAY_MS + at;
        let (first, second) =
            (kept(&policy, &all, None, now), kept(&policy, &all, None, now + later));
        prop_assert!(ids(&second).is_subset(&ids(&first)));
    }

    /// Without users and failures, their number is bounded by the policy, whatever the source does.
    #[test]
    fn the_number_kept_is_bounded(every_s in 60_u64..3000, policy in policies()) {
        let policy = Retention { keep_all_ms: policy.keep_all_ms / 4, ..policy };
        let every_ms = every_s * 1000;
        let end = MONDAY_MS + 45 * DAY_MS;
        let count = 45 * DAY_MS / every_ms;
        let all: Vec<Snapshot> =
            (0..=count).map(|n| ready(n + 1, MONDAY_MS + n * every_ms)).collect();
        let periods = |reach_ms: u64, period_ms: u64| match reach_ms {
            0 => 0,
            _ => reach_ms / period_ms + 2,
        };
        let bound = policy.keep_all_ms / every_ms + 1
            + periods(policy.hourly_ms, HOUR_MS)
            + periods(policy.daily_ms, DAY_MS)
            + periods(policy.weekly_ms, WEEK_MS)
            + 2;
        let left = kept(&policy, &all, None, end).len() as u64;
        prop_assert!(left <= bound, "{} of {}", left, bound);
    }
}
