//! Every step failed, repeated and crashed, alone and in pairs.

use crate::world::{
    Crash, Crashes, Misbehaviour, PATIENCE, Place, STEPS, World, engine, scratch, submission,
};
use offshoot_catalog::{Job, JobState};
use offshoot_types::JobId;
use offshoot_workflow::{CrashPoint, Runner};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

type Fault = (usize, Place, Misbehaviour, u32);

fn crashes() -> Vec<Crash> {
    let points =
        [CrashPoint::Before, CrashPoint::After, CrashPoint::BeforeUndo, CrashPoint::AfterUndo];
    let mut all = Vec::new();
    for step in 0..STEPS {
        all.extend(points.map(|point| Crash { step, point, midway: false }));
        all.push(Crash { step, point: CrashPoint::Before, midway: true });
    }
    all
}

fn faults() -> Vec<Fault> {
    let mut all = Vec::new();
    for step in 0..STEPS {
        for place in [Place::Start, Place::Middle, Place::End] {
            all.push((step, place, Misbehaviour::Fail, 1));
        }
        all.push((step, Place::Middle, Misbehaviour::Panic, 1));
    }
    all
}

/// Waits for the end of the job or the next crash; none after a crash.
fn outcome(runner: &Runner<World>, crashes: &Crashes, seen: usize, id: JobId) -> Option<Job> {
    let rounds = PATIENCE.as_millis() / 2;
    for _ in 0..rounds {
        let job = runner.wait(id, Duration::from_millis(2)).expect("the job is known");
        if job.state.is_final() {
            return Some(job);
        }
        if *crashes.happened.lock() > seen {
            return None;
        }
    }
    panic!("neither an end nor a crash");
}

/// Runs a job through faults and crashes, restarting the engine after each crash; checks the end.
fn survive(kind: &'static str, repeat: bool, fault: Option<Fault>, plan: &[Crash]) -> JobState {
    let what = format!("{kind} repeat={repeat} {fault:?} {plan:?}");
    let faults = Mutex::new(fault.into_iter().collect());
    let world = Arc::new(World { repeat, faults, ..World::default() });
    let to_come = Mutex::new(plan.iter().copied().collect());
    let crashes = Arc::new(Crashes { to_come, world: Some(world.clone()), ..Crashes::default() });
    let dir = scratch();

    let (mut runner, mut catalog) = engine(dir.path(), crashes.clone());
    let id = runner.submit(&world, submission(kind, "thing")).expect("submitted");
    let mut seen = 0;
    let job = loop {
        if let Some(job) = outcome(&runner, &crashes, seen, id) {
            break job;
        }
        seen += 1;
        (runner, catalog) = engine(dir.path(), crashes.clone());
        assert_eq!(runner.resume(&world).expect("resumed"), [id], "{what}");
    };
    assert!(job.settled, "{what}: {job:?}");
    match job.state {
        JobState::Done => assert!(world.is_complete("thing"), "{what}: {:?}", world.things),
        JobState::Failed => assert!(world.is_clean(), "{what}: {:?}", world.things),
        other => panic!("{what}: {other:?}"),
    }
    assert_eq!(job.error.is_none(), job.state == JobState::Done, "{what}");
    assert_eq!(catalog.job(id).expect("kept"), job, "{what}: what is told is what is kept");
    assert_eq!(catalog.unsettled_jobs().expect("readable"), [], "{what}");
    assert_eq!(catalog.faults().expect("readable"), [], "{what}");
    assert!(!runner.is_busy("thing"), "{what}: the lock stays behind");
    job.state
}

#[test]
fn every_step_failed_and_crashed() {
    for kind in ["build", "commit"] {
        for repeat in [false, true] {
            for fault in faults().into_iter().map(Some).chain([None]) {
                survive(kind, repeat, fault, &[]);
                for crash in crashes() {
                    survive(kind, repeat, fault, &[crash]);
                }
            }
        }
    }
}

#[test]
fn crashes_in_pairs() {
    for fault in [None, Some((2, Place::Middle, Misbehaviour::Fail, 1))] {
        for first in crashes() {
            for second in crashes() {
                survive("build", false, fault, &[first, second]);
                survive("commit", false, fault, &[first, second]);
            }
        }
    }
}

#[test]
fn the_point_of_no_return_decides() {
    let crash = |step, point| [Crash { step, point, midway: false }];
    let end = |kind, step, point| survive(kind, false, None, &crash(step, point));
    assert_eq!(end("build", 2, CrashPoint::After), JobState::Failed, "it can still be undone");
    assert_eq!(end("commit", 1, CrashPoint::After), JobState::Failed);
    assert_eq!(end("commit", 2, CrashPoint::Before), JobState::Done);
    assert_eq!(end("commit", 2, CrashPoint::After), JobState::Done);
    let fault = Some((2, Place::Middle, Misbehaviour::Fail, 2));
    assert_eq!(survive("commit", false, fault, &[]), JobState::Done, "it is tried again");
    assert_eq!(survive("build", false, fault, &[]), JobState::Failed);
}
