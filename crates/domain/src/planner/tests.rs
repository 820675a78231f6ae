use super::{ProvisionPlan, Target, TimeRefusal, TimeflowView, check_time, openable, plan};
use crate::{LogRange, Owner, Position, Readiness, Snapshot, SnapshotKind};
use jiff::Timestamp;
use offshoot_types::{DsourceId, ErrorKind, LogPosition, SnapshotId, TimeflowId};
use proptest::prelude::*;

/// Positions in these tests are small numbers; the time in seconds is the position.
/// As one kind of database writes them.
fn halves(position: LogPosition) -> String {
    format!("{:X}/{:X}", position.0 >> 32, position.0 & 0xFFFF_FFFF)
}

fn position(log: u64) -> Position {
    Position { log: LogPosition(log), time: time(log) }
}

fn time(log: u64) -> Timestamp {
    Timestamp::from_second(log as i64).expect("in range")
}

fn range(from: u64, to: u64) -> LogRange {
    LogRange { from: position(from), to: position(to) }
}

const PENDING: Readiness = Readiness::Pending;

fn ready(image: u64) -> Readiness {
    Readiness::Ready { image: SnapshotId(image), proven: false }
}

fn snapshot(id: u64, replay_from: u64, log: u64, readiness: Readiness) -> Snapshot {
    Snapshot {
        id: SnapshotId(id),
        owner: Owner::Dsource(DsourceId(1)),
        timeflow: TimeflowId(1),
        position: position(log),
        replay_from: LogPosition(replay_from),
        epoch: 1,
        kind: SnapshotKind::Policy,
        taken_at: time(log),
        readiness,
        unchecked: Vec::new(),
    }
}

fn view<'a>(snapshots: &'a [Snapshot], log: &'a [LogRange]) -> TimeflowView<'a> {
    TimeflowView { name: "prod", snapshots, log, write: &halves }
}

fn at(log: u64) -> Target {
    Target::Position { end: LogPosition(log), next: None }
}

fn clean(snapshot: u64, image: u64) -> ProvisionPlan {
    ProvisionPlan {
        snapshot: SnapshotId(snapshot),
        image: SnapshotId(image),
        clean: true,
        recover_to: None,
        replay_bytes: 0,
    }
}

fn replayed(snapshot: u64, to: u64, replay_bytes: u64) -> ProvisionPlan {
    ProvisionPlan {
        snapshot: SnapshotId(snapshot),
        image: SnapshotId(snapshot),
        clean: false,
        recover_to: Some(LogPosition(to)),
        replay_bytes,
    }
}

#[test]
fn a_ready_snapshot_opens_without_recovery() {
    let snapshots = [snapshot(1, 90, 100, ready(7)), snapshot(2, 190, 200, PENDING)];
    let log = [range(50, 300)];
    let view = view(&snapshots, &log);
    assert_eq!(plan(&view, Target::Snapshot(SnapshotId(1))), Ok(clean(1, 7)));
    assert_eq!(plan(&view, Target::LatestSnapshot), Ok(clean(1, 7)), "ready before newer");
    assert_eq!(plan(&view, at(100)), Ok(clean(1, 7)));
    assert_eq!(plan(&view, Target::Snapshot(SnapshotId(2))), Ok(replayed(2, 200, 10)));
}

#[test]
fn a_position_is_replayed_from_the_nearest_snapshot() {
    let snapshots = [
        snapshot(1, 90, 100, ready(7)),
        snapshot(2, 190, 200, ready(8)),
        snapshot(3, 240, 250, PENDING),
        snapshot(4, 390, 400, ready(9)),
    ];
    let log = [range(50, 500)];
    let view = view(&snapshots, &log);
    assert_eq!(plan(&view, at(299)), Ok(replayed(3, 299, 59)));
    assert_eq!(plan(&view, Target::Latest), Ok(replayed(4, 500, 110)));
    // No commit between 299 and 450: the clean image at 400 shows the same.
    let target = Target::Position { end: LogPosition(299), next: Some(LogPosition(450)) };
    assert_eq!(plan(&view, target), Ok(clean(4, 9)));
    // The image at 400 holds the commit that ends there.
    let target = Target::Position { end: LogPosition(299), next: Some(LogPosition(400)) };
    assert_eq!(plan(&view, target), Ok(replayed(3, 299, 59)));
}

#[test]
fn a_snapshot_behind_the_moment_serves_where_none_is_before_it() {
    let snapshots = [snapshot(1, 190, 200, PENDING)];
    let log = [range(50, 500)];
    let view = view(&snapshots, &log);
    let target = |next| Target::Position { end: LogPosition(150), next: Some(LogPosition(next)) };
    assert_eq!(plan(&view, target(201)), Ok(replayed(1, 200, 10)));
    let failure = plan(&view, target(200)).expect_err("it holds the next commit");
    assert_eq!(failure.code, ErrorKind::MomentUnavailable);
}

#[test]
fn the_first_snapshot_serves_before_it_is_ready() {
    let snapshots = [snapshot(1, 90, 100, PENDING)];
    let log = [range(90, 300)];
    assert_eq!(plan(&view(&snapshots, &log), at(120)), Ok(replayed(1, 120, 30)));
}

#[test]
fn without_log_only_snapshots_open() {
    let snapshots = [snapshot(1, 100, 100, ready(7)), snapshot(2, 200, 200, PENDING)];
    let view = view(&snapshots, &[]);
    assert_eq!(plan(&view, Target::Latest), Ok(clean(1, 7)));
    let pending = plan(&view, Target::Snapshot(SnapshotId(2))).expect("its log is inside");
    assert_eq!((pending.image, pending.clean, pending.recover_to), (SnapshotId(2), false, None));
    let refused = plan(&view, at(150)).expect_err("no log");
    assert!(refused.message.contains("only its snapshots"), "{refused}");
    assert!(check_time(&view, time(150)).is_err());
}

#[test]
fn refusals_name_the_nearest_moment_that_opens() {
    let snapshots = [snapshot(1, 90, 100, ready(7)), snapshot(2, 390, 400, ready(8))];
    let log = [range(50, 200), range(350, 500)];
    let view = view(&snapshots, &log);
    assert_eq!(openable(&view), [range(100, 200), range(400, 500)]);
    for (log, named) in [(99, "0/64"), (501, "0/1F4"), (210, "0/C8"), (360, "0/190")] {
        let failure = plan(&view, at(log)).expect_err("outside");
        assert_eq!(failure.code, ErrorKind::MomentUnavailable);
        assert!(failure.message.contains(named), "{log}: {failure}");
        assert!(!failure.hint.is_empty());
    }
    let first = time(100).to_string();
    match check_time(&view, time(99)) {
        Err(TimeRefusal::Never(failure)) => assert!(failure.message.contains(&first), "{failure}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(check_time(&view, time(300)), Err(TimeRefusal::Never(_))), "a gap");
    assert!(matches!(check_time(&view, time(501)), Err(TimeRefusal::NotYet(_))));
    for inside in [100, 150, 200, 400, 500] {
        assert_eq!(check_time(&view, time(inside)), Ok(()));
    }
}

#[test]
fn what_cannot_be_opened_says_why() {
    let failed = Readiness::Failed { reason: "page 7 is damaged".to_owned() };
    let snapshots = [snapshot(1, 90, 100, failed)];
    let log = [range(50, 200)];
    let view = view(&snapshots, &log);
    let failure = plan(&view, Target::Snapshot(SnapshotId(1))).expect_err("failed");
    assert!(failure.message.contains("page 7 is damaged"));
    let failure = plan(&view, Target::Snapshot(SnapshotId(2))).expect_err("unknown");
    assert_eq!(failure.code, ErrorKind::NotFound);
    for target in [Target::Latest, Target::LatestSnapshot, at(150)] {
        let failure = plan(&view, target).expect_err("nothing opens");
        assert_eq!(failure.code, ErrorKind::WrongState);
        assert!(failure.message.contains("page 7 is damaged"), "{failure}");
    }
}

/// A history of commits, log with gaps, and snapshots anywhere on it.
#[derive(Debug, Clone)]
struct World {
    commits: Vec<u64>,
    log: Vec<LogRange>,
    snapshots: Vec<Snapshot>,
}

fn worlds() -> impl Strategy<Value = World> {
    let commits = prop::collection::btree_set(1_u64..200, 1..20);
    let edges = prop::collection::btree_set(0_u64..220, 0..8);
    let snapshots = prop::collection::vec((1_u64..210, 0_u64..15, 0_u8..4), 0..10);
    (commits, edges, snapshots).prop_map(|(commits, edges, rows)| {
        let edges: Vec<u64> = edges.into_iter().collect();
        let log = edges.chunks_exact(2).map(|pair| range(pair[0], pair[1])).collect();
        let build = |(index, (log, back, readiness)): (usize, (u64, u64, u8))| {
            let readiness = match readiness {
                0 => PENDING,
                1 => Readiness::Failed { reason: "test".to_owned() },
                _ => ready(1000 + index as u64),
            };
            snapshot(index as u64 + 1, log.saturating_sub(back), log, readiness)
        };
        let snapshots = rows.into_iter().enumerate().map(build).collect();
        World { commits: commits.into_iter().collect(), log, snapshots }
    })
}

impl World {
    fn commits_until(&self, log: LogPosition) -> usize {
        self.commits.iter().filter(|end| **end <= log.0).count()
    }

    /// Whether log is kept without a gap over these positions.
    fn logged(&self, from: LogPosition, to: LogPosition) -> bool {
        self.log.iter().any(|range| range.from.log <= from && to <= range.to.log)
    }

    fn serves(&self, s: &Snapshot, log: LogPosition) -> bool {
        !s.is_failed() && s.position.log <= log && self.logged(s.replay_from, log)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Every commit of every history: the plan shows exactly its commits, by the shortest replay,
    /// or there is truly no way.
    #[test]
    fn plans_show_exactly_the_moment(world in worlds()) {
        let view = view(&world.snapshots, &world.log);
        for (index, commit) in world.commits.iter().enumerate() {
            let (log, next) = (LogPosition(*commit), world.commits.get(index + 1).map(|end| LogPosition(*end)));
            let wanted = world.commits_until(log);
            let same = |s: &&Snapshot| {
                s.ready_image().is_some() && world.commits_until(s.position.log) == wanted
                    // After the last commit nothing is known, so only the position itself is sure.
                    && s.position.log >= log && (next.is_some() || s.position.log == log)
            };
            let serving = || world.snapshots.iter().filter(|s| world.serves(s, log));
            match plan(&view, Target::Position { end: log, next }) {
                Ok(plan) => {
                    let base = world.snapshots.iter().find(|s| s.id == plan.snapshot).expect("known");
                    match plan.recover_to {
                        None => {
                            prop_assert!(plan.clean && base.ready_image() == Some(plan.image));
                            prop_assert_eq!(world.commits_until(base.position.log), wanted);
                        }
                        Some(to) => {
                            prop_assert!(!plan.clean && plan.image == base.id);
                            prop_assert_eq!(world.commits_until(to), wanted);
                            prop_assert!(world.serves(base, to));
                            prop_assert!(world.snapshots.iter().find(same).is_none());
                            match serving().map(|s| s.replay_from).max() {
                                Some(nearest) => {
                                    prop_assert_eq!((base.replay_from, to), (nearest, log));
                                }
                                None => prop_assert_eq!(to, base.position.log),
                            }
                        }
                    }
                }
                Err(failure) => {
                    prop_assert!(failure.code != ErrorKind::Internal, "{}", failure);
                    prop_assert!(world.snapshots.iter().find(same).is_none());
                    prop_assert!(serving().next().is_none(), "{} though a base serves", failure);
                }
            }
        }
    }

    /// Whatever `openable` promises is kept, at any position and time of it.
    #[test]
    fn what_is_promised_opens(world in worlds(), part in 0.0..=1.0_f64) {
        let view = view(&world.snapshots, &world.log);
        for range in openable(&view) {
            let span = (range.to.log.0 - range.from.log.0) as f64;
            let log = range.from.log.0 + (span * part) as u64;
            prop_assert!(plan(&view, at(log)).is_ok(), "{} in {:?}", log, range);
            prop_assert_eq!(check_time(&view, time(log)), Ok(()));
        }
    }

    /// The order in which snapshots are listed changes nothing.
    #[test]
    fn the_same_question_gets_the_same_answer(world in worlds(), log in 0_u64..220) {
        let mut reversed = world.snapshots.clone();
        reversed.reverse();
        for target in [Target::Latest, Target::LatestSnapshot, at(log)] {
            let (one, other) = (view(&world.snapshots, &world.log), view(&reversed, &world.log));
            prop_assert_eq!(plan(&one, target), plan(&other, target));
        }
    }
}
