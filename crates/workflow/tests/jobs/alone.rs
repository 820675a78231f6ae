//! Having an object alone that others share.

use crate::world::{Crash, Crashes, PATIENCE, World, engine, scratch, submission};
use offshoot_catalog::JobState;
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, JobId};
use offshoot_workflow::{CrashPoint, Runner};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

struct Sharing {
    world: Arc<World>,
    runner: Runner<World>,
    _dir: TempDir,
}

impl Sharing {
    fn new() -> Sharing {
        let dir = scratch();
        let (runner, _) = engine(dir.path(), Arc::default());
        Sharing { world: Arc::default(), runner, _dir: dir }
    }

    /// Begins a job on an object of its own that shares `parent`.
    fn begin(&self, kind: &'static str, object: &str) -> Result<JobId, ErrorKind> {
        let shares = submission(kind, object).shared("parent");
        self.runner.submit(&self.world, shares).map_err(|failure| failure.code)
    }

    fn ends(&self, id: JobId) -> JobState {
        let job = self.runner.wait(id, PATIENCE).expect("known");
        assert!(job.state.is_final(), "it has not ended: {job:?}");
        job.state
    }

    fn await_taken(&self) {
        let deadline = SystemClock.elapsed() + PATIENCE;
        while !self.runner.is_taken("parent") {
            assert!(SystemClock.elapsed() < deadline, "nobody insists");
            SystemClock.sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn others_begin_while_it_waits_politely() {
    let sharing = Sharing::new();
    let first = sharing.begin("gated", "one").expect("begun");
    sharing.world.await_inside(1);
    let alone = sharing.begin("alone-politely", "thing").expect("begun");
    let second = sharing.begin("gated", "two").expect("it shares the object still");
    sharing.world.await_inside(2);
    let early = sharing.runner.wait(alone, Duration::from_millis(50)).expect("known");
    assert_eq!(early.state, JobState::Running);
    sharing.world.open_gate();
    for id in [first, second, alone] {
        assert_eq!(sharing.ends(id), JobState::Done);
    }
    assert!(!sharing.runner.is_busy("parent"), "it is given back");
}

#[test]
fn in_the_end_nobody_else_begins() {
    let sharing = Sharing::new();
    let first = sharing.begin("gated", "one").expect("begun");
    sharing.world.await_inside(1);
    let alone = sharing.begin("alone", "thing").expect("begun");
    sharing.await_taken();
    assert_eq!(sharing.begin("build", "two"), Err(ErrorKind::Busy));
    sharing.world.open_gate();
    for id in [first, alone] {
        assert_eq!(sharing.ends(id), JobState::Done);
    }
    let second = sharing.begin("build", "two").expect("the object is free");
    assert_eq!(sharing.ends(second), JobState::Done);
}

#[test]
fn who_is_cancelled_while_it_waits_gives_the_object_back() {
    let sharing = Sharing::new();
    let first = sharing.begin("gated", "one").expect("begun");
    sharing.world.await_inside(1);
    let alone = sharing.begin("alone", "thing").expect("begun");
    sharing.await_taken();
    sharing.runner.cancel(alone).expect("cancelled");
    assert_eq!(sharing.ends(alone), JobState::Cancelled);
    assert!(!sharing.runner.is_taken("parent"));
    sharing.world.open_gate();
    assert_eq!(sharing.ends(first), JobState::Done);
}

#[test]
fn of_those_that_were_left_none_waits_for_one_behind_it() {
    let dir = scratch();
    let crashes = Arc::new(Crashes::default());
    let dies = |step| Crash { step, point: CrashPoint::Before, midway: false };
    crashes.to_come.lock().extend([dies(1), dies(2)]);
    let world = Arc::new(World::default());
    let (runner, _) = engine(dir.path(), crashes.clone());
    let mut ids = Vec::new();
    for (count, kind) in ["alone-at-last", "commit"].into_iter().enumerate() {
        let shares = submission(kind, kind).shared("parent");
        ids.push(runner.submit(&world, shares).expect("submitted"));
        crashes.await_happened(count + 1);
    }
    let (runner, _) = engine(dir.path(), Arc::default());
    assert_eq!(runner.resume(&world).expect("resumed"), ids);
    for id in ids {
        assert_eq!(runner.wait(id, PATIENCE).expect("known").state, JobState::Done);
    }
}
