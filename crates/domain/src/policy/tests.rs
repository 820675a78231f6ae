use super::{DAY_MS, HOUR_MS, Policy, PolicyChange, SnapshotPolicy, WEEK_MS};
use crate::{Owner, Position};
use jiff::Timestamp;
use offshoot_types::{DsourceId, ErrorKind, LogPosition, VdbId};

fn at_ms(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).expect("in range")
}

#[test]
fn a_snapshot_is_due_after_the_interval_and_only_with_changes() {
    let policy = SnapshotPolicy { every_ms: Some(1000) };
    let last = Some((at_ms(10_000), LogPosition(50)));
    assert!(policy.due(at_ms(0), None, LogPosition(1)), "the first one is due at once");
    assert!(!policy.due(at_ms(10_999), last, LogPosition(51)), "the interval has not passed");
    assert!(policy.due(at_ms(11_000), last, LogPosition(51)));
    assert!(!policy.due(at_ms(99_000), last, LogPosition(50)), "nothing changed");
    assert!(!policy.due(at_ms(9_000), last, LogPosition(51)), "the clock went back");
    assert!(!SnapshotPolicy { every_ms: None }.due(at_ms(99_000), None, LogPosition(51)));
}

#[test]
fn lag_is_never_negative() {
    let position = |log, ms| Position { log: LogPosition(log), time: at_ms(ms) };
    assert_eq!(position(100, 1000).lag_to(&position(150, 3500)), (50, 2500));
    assert_eq!(position(150, 3500).lag_to(&position(100, 1000)), (0, 0));
}

const DSOURCE: Owner = Owner::Dsource(DsourceId(1));
const VDB: Owner = Owner::Vdb(VdbId(1));

#[test]
fn a_change_leaves_the_rest_as_it_was() {
    let change = PolicyChange {
        snapshot_every_ms: Some(None),
        weekly_ms: Some(52 * WEEK_MS),
        quota_bytes: Some(Some(1 << 30)),
        ..PolicyChange::default()
    };
    let old = Policy::default();
    let new = old.changed(&change, DSOURCE).unwrap();
    assert_eq!(new.snapshots.every_ms, None);
    assert_eq!(new.quota_bytes, Some(1 << 30));
    assert_eq!(new.retention.weekly_ms, 52 * WEEK_MS);
    assert_eq!(new.retention.log_ms, old.retention.log_ms);
    assert_eq!(old.changed(&PolicyChange::default(), DSOURCE), Ok(old));
    assert_eq!(Policy::of_vdb().changed(&PolicyChange::default(), VDB), Ok(Policy::of_vdb()));
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let none = PolicyChange::default();
    let cases = [
        (DSOURCE, PolicyChange { snapshot_every_ms: Some(Some(10)), ..none }, "never"),
        (DSOURCE, PolicyChange { quota_bytes: Some(Some(0)), ..none }, "none"),
        (VDB, PolicyChange { log_ms: Some(DAY_MS), ..none }, "dSource"),
        (VDB, PolicyChange { open_within_ms: Some(3000), ..none }, "dSource"),
        (DSOURCE, PolicyChange { open_within_ms: Some(10), ..none }, "--open-within 3s"),
        (DSOURCE, PolicyChange { hourly_ms: Some(HOUR_MS), ..none }, "more than 1 d"),
        (DSOURCE, PolicyChange { weekly_ms: Some(WEEK_MS), ..none }, "more than 30 d"),
        (DSOURCE, PolicyChange { keep_all_ms: Some(8 * DAY_MS), ..none }, "--hourly more than 8 d"),
        (DSOURCE, PolicyChange { log_ms: Some(u64::MAX), ..none }, "shorter"),
    ];
    for (of, change, mend) in cases {
        let failure = Policy::default().changed(&change, of).expect_err(mend);
        assert_eq!(failure.code, ErrorKind::InvalidInput);
        assert!(failure.hint.contains(mend), "{failure:?}");
    }
    // Steps that are left out are no limit to the others.
    let sparse = PolicyChange { hourly_ms: Some(0), daily_ms: Some(0), ..none };
    assert!(Policy::default().changed(&sparse, DSOURCE).is_ok());
}

#[test]
fn what_an_older_catalog_holds_is_read() {
    let old = r#"{"snapshot_policy":{"every_ms":1000},"retention":{"keep_ms":60000}}"#;
    let policy: Policy = serde_json::from_str(old).unwrap();
    assert_eq!(policy.snapshots.every_ms, Some(1000));
    assert_eq!(policy.retention.log_ms, 60_000);
    assert_eq!(policy.retention.daily_ms, Policy::default().retention.daily_ms);
    assert_eq!(policy.quota_bytes, None);
}
