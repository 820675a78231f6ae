use super::{Retention, SnapshotPolicy};
use crate::{Owner, Position, Readiness, Snapshot, SnapshotKind};
use jiff::Timestamp;
use offshoot_types::{DsourceId, Lsn, SnapshotId, TimeflowId};
use proptest::prelude::*;

fn at_ms(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).expect("in range")
}

#[test]
fn a_snapshot_is_due_after_the_interval_and_only_with_changes() {
    let policy = SnapshotPolicy { every_ms: Some(1000) };
    let last = Some((at_ms(10_000), Lsn(50)));
    assert!(policy.due(at_ms(0), None, Lsn(1)), "the first one is due at once");
    assert!(!policy.due(at_ms(10_999), last, Lsn(51)), "the interval has not passed");
    assert!(policy.due(at_ms(11_000), last, Lsn(51)));
    assert!(!policy.due(at_ms(99_000), last, Lsn(50)), "nothing changed");
    assert!(!policy.due(at_ms(9_000), last, Lsn(51)), "the clock went back");
    assert!(!SnapshotPolicy { every_ms: None }.due(at_ms(99_000), None, Lsn(51)));
}

fn snapshots() -> impl Strategy<Value = Vec<Snapshot>> {
    prop::collection::vec((1_i64..50, 0_u8..3, any::<bool>()), 0..12).prop_map(|rows| {
        let mut rows = rows;
        rows.sort();
        let build = |(index, (at, readiness, manual)): (usize, (i64, u8, bool))| Snapshot {
            id: SnapshotId(index as u64 + 1),
            owner: Owner::Dsource(DsourceId(1)),
            timeflow: TimeflowId(1),
            position: Position { lsn: Lsn(at as u64 * 100), time: at_ms(at * 1000) },
            redo: Lsn(at as u64 * 100 - 10),
            timeline: 1,
            kind: if manual { SnapshotKind::Manual } else { SnapshotKind::Policy },
            taken_at: at_ms(at * 1000),
            readiness: match readiness {
                0 => Readiness::Pending,
                1 => Readiness::Failed { reason: "test".to_owned() },
                _ => Readiness::Ready { image: SnapshotId(1000 + index as u64) },
            },
        };
        rows.into_iter().enumerate().map(build).collect()
    })
}

proptest! {
    /// Whatever opened at or after the horizon before the deletion still has its base.
    #[test]
    fn retention_keeps_every_moment_after_the_horizon(
        all in snapshots(), keep_s in 0_u64..60, pinned in 1_u64..12,
    ) {
        let (now, retention) = (at_ms(50_000), Retention { keep_ms: keep_s * 1000 });
        let horizon = retention.horizon(now);
        let expired = retention.expired(&all, now, |id| id == SnapshotId(pinned));
        let kept: Vec<Snapshot> =
            all.iter().filter(|s| !expired.contains(&s.id)).cloned().collect();
        for s in all.iter().filter(|s| expired.contains(&s.id)) {
            prop_assert!(s.position.time < horizon, "{} is young", s.id);
            prop_assert!(s.kind != SnapshotKind::Manual && s.id != SnapshotId(pinned));
        }
        let base = |of: &[Snapshot]| {
            let ready = of.iter().filter(|s| s.ready_image().is_some());
            ready.filter(|s| s.position.time <= horizon).map(|s| s.position.lsn).max()
        };
        prop_assert_eq!(base(&all), base(&kept));
        for s in &kept {
            prop_assert!(Retention::log_needed_from(&kept) <= Some(s.redo));
        }
        let again = retention.expired(&kept, now, |id| id == SnapshotId(pinned));
        prop_assert_eq!(again, vec![], "a second run finds nothing more");
    }
}

#[test]
fn a_retention_longer_than_time_itself_keeps_everything() {
    assert_eq!(Retention { keep_ms: u64::MAX }.horizon(at_ms(0)), Timestamp::MIN);
}

#[test]
fn lag_is_never_negative() {
    let position = |lsn, ms| Position { lsn: Lsn(lsn), time: at_ms(ms) };
    assert_eq!(position(100, 1000).lag_to(&position(150, 3500)), (50, 2500));
    assert_eq!(position(150, 3500).lag_to(&position(100, 1000)), (0, 0));
}
