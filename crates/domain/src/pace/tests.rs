use super::*;
use crate::{Position, Readiness, SnapshotKind};
use jiff::Timestamp;
use offshoot_types::{DsourceId, SnapshotId, TimeflowId};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn image(id: u64, position: u64, replay_from: u64) -> Snapshot {
    Snapshot {
        id: SnapshotId(id),
        owner: DsourceId(1).into(),
        timeflow: TimeflowId(1),
        position: Position { log: LogPosition(position), time: Timestamp::UNIX_EPOCH },
        replay_from: LogPosition(replay_from),
        epoch: 1,
        kind: SnapshotKind::RecoveryPoint,
        taken_at: Timestamp::UNIX_EPOCH,
        readiness: Readiness::Pending,
        unchecked: Vec::new(),
    }
}

const PACE: Pace = Pace { start_ms: 1000, bytes_per_second: 10 * MIB, page_us: 100 };

#[test]
fn a_promise_says_how_far_apart_points_lie() {
    assert_eq!(PACE.spacing(5000), 30 * MIB);
    // What cannot be promised is tried as well as it goes.
    assert_eq!(PACE.spacing(500), SPACING_MIN);
    assert_eq!(PACE.spacing(u64::MAX), SPACING_MAX);
    assert_eq!(PACE.expected_ms(30 * MIB), 4000);
}

#[test]
fn slow_openings_count_at_once_and_quick_ones_slowly() {
    let slow = PACE.opened(10 * MIB, 0, 3000);
    assert_eq!(slow.bytes_per_second, 15 * MIB / 2);
    let quick = PACE.opened(10 * MIB, 0, 1500);
    assert_eq!(quick.bytes_per_second, 10 * MIB + 10 * MIB / 32);
    assert_eq!(PACE.opened(0, 0, 3000), Pace { start_ms: 2000, ..PACE });
    assert_eq!(PACE.opened(0, 0, 680), Pace { start_ms: 990, ..PACE });
    // Little log says nothing about the rate.
    assert_eq!(PACE.replayed(MIB, 9000), PACE);
    // A start that is over before it began.
    assert!(PACE.opened(400 * MIB, 0, 10).bytes_per_second > PACE.bytes_per_second);
    assert!(PACE.replayed(4 * MIB, u64::MAX).bytes_per_second >= 1);
}

#[test]
fn the_pages_that_log_changes_say_how_long_it_takes() {
    // An opening shows the time for a page,
    let shown = PACE.opened(10 * MIB, 5000, 3000);
    assert_eq!(shown.page_us, 175);
    assert_eq!(PACE.opened(10 * MIB, 100_000, 1500).page_us, 77);
    assert_eq!(PACE.opened(10 * MIB, 999, 9000).page_us, 100);
    assert_eq!(PACE.opened(10 * MIB, 100_000, 0).page_us, 75);
    // and a point the pages.
    assert_eq!(PACE.changed(10 * MIB, 20_000).bytes_per_second, 15 * MIB / 2);
    assert_eq!(PACE.changed(10 * MIB, 5000).bytes_per_second, 10 * MIB + 10 * MIB / 32);
    assert_eq!(PACE.changed(MIB, 20_000), PACE);
    // Few pages say that it is no slower than is planned with at first, and no more.
    let first = Pace::default().bytes_per_second;
    assert_eq!(
        PACE.changed(16 * MIB, 0).bytes_per_second,
        10 * MIB + (first - 10 * MIB).div_ceil(32)
    );
    let quick = Pace { bytes_per_second: 2 * first, ..PACE };
    assert_eq!(quick.changed(16 * MIB, 0), quick);
    assert!(PACE.changed(10 * MIB, u64::MAX).bytes_per_second >= 1);
}

#[test]
fn ranges_say_how_long_their_moments_take() {
    let images = [image(1, 0, 0), image(2, 20 * MIB, 20 * MIB), image(3, 60 * MIB, 30 * MIB)];
    let times = |from, to| PACE.open_times(&images, (LogPosition(from), LogPosition(to)));
    assert_eq!(times(0, 10 * MIB), Some(OpenTimes { typical_ms: 1500, longest_ms: 2000 }));
    // Before the third image 40 MiB are replayed; from it at least 30.
    let whole = times(0, 70 * MIB).unwrap();
    assert!((4990..=5000).contains(&whole.longest_ms), "{whole:?}");
    assert!((2500..=3500).contains(&whole.typical_ms), "{whole:?}");
    let late = [image(1, 50, 50)];
    assert_eq!(PACE.open_times(&late, (LogPosition(0), LogPosition(10))), None);
    assert_eq!(PACE.open_times(&[], (LogPosition(0), LogPosition(10))), None);
}

proptest! {
    #[test]
    fn estimates_stay_between_what_was_and_what_is_seen(old: u64, seen: u64, better: bool) {
        let new = learned(old, seen, better);
        prop_assert!((old.min(seen)..=old.max(seen)).contains(&new));
        prop_assert!(old == seen || new != old);
    }

    #[test]
    fn any_opening_leaves_a_pace_that_can_be_planned_with(
        seen in prop::collection::vec(any::<(u64, u64, u64)>(), 0..50), within: u64
    ) {
        let pace = seen.iter().fold(Pace::default(), |pace, (bytes, pages, ms)| {
            pace.opened(*bytes, *pages, *ms).changed(*bytes, *pages)
        });
        prop_assert!((SPACING_MIN..=SPACING_MAX).contains(&pace.spacing(within)));
        prop_assert!(pace.expected_ms(u64::MAX) > 0);
    }
}
