//! Exclusion, cancelling, stopping, and undos that fail.

use crate::world::{
    Crash, Crashes, Misbehaviour, PATIENCE, Place, World, engine, scratch, submission, workflows,
};
use offshoot_catalog::{Catalog, Job, JobState, StepState, Subject};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, JobId};
use offshoot_workflow::{CrashPoint, Runner, Submission};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

struct Bench {
    world: Arc<World>,
    runner: Runner<World>,
    catalog: Arc<Catalog>,
    dir: TempDir,
}

fn bench() -> Bench {
    let dir = scratch();
    let (runner, catalog) = engine(dir.path(), Arc::default());
    Bench { world: Arc::default(), runner, catalog, dir }
}

impl Bench {
    fn submit(&self, kind: &'static str, object: &str) -> JobId {
        self.runner.submit(&self.world, submission(kind, object)).expect("submitted")
    }

    fn end(&self, id: JobId) -> JobState {
        let job = self.runner.wait(id, PATIENCE).expect("known");
        assert!(job.state.is_final(), "it has not ended: {job:?}");
        job.state
    }

    fn break_step(&self, step: usize, place: Place, times: u32) {
        self.world.faults.lock().push((step, place, Misbehaviour::Fail, times));
    }
}

#[test]
fn a_job_reports_its_course() {
    let bench = bench();
    let id = bench.submit("build", "thing");
    assert_eq!(bench.end(id), JobState::Done);
    let job = bench.runner.job(id).expect("known");
    assert_eq!((job.kind.as_str(), &job.object), ("build", &Subject::named("thing")));
    assert_eq!((job.progress.done, job.progress.total), (3, 3));
    assert!(job.ended_at >= Some(job.started_at));
    for step in &job.steps {
        assert_eq!(step.state, StepState::Done);
        assert!(step.started_at.is_some() && step.ended_at >= step.started_at);
    }
    let listed = bench.runner.jobs(10).expect("listed");
    assert_eq!(listed, [job]);
    assert_eq!(bench.runner.job(JobId(99)).expect_err("unknown").code, ErrorKind::NotFound);
}

#[test]
fn two_jobs_on_one_object_exclude_each_other() {
    let bench = bench();
    let first = bench.submit("gated", "thing");
    let refused = bench.runner.submit(&bench.world, submission("build", "thing"));
    let failure = refused.expect_err("busy");
    assert_eq!(failure.code, ErrorKind::Busy);
    assert!(failure.message.contains(&format!("{first} (gated)")), "{failure}");
    assert!(failure.hint.contains(&format!("job watch {first}")), "{}", failure.hint);
    assert!(bench.runner.is_busy("thing") && !bench.runner.is_busy("other"));
    bench.world.open_gate();
    assert_eq!(bench.end(first), JobState::Done);
    let second = bench.submit("build", "thing");
    assert_eq!(bench.end(second), JobState::Done);
}

#[test]
fn it_is_known_whether_the_engine_itself_is_in_the_way() {
    let bench = bench();
    let own = submission("gated", "kept").of_engine();
    bench.runner.submit(&bench.world, own).expect("submitted");
    bench.submit("gated", "thing");
    let in_the_way = |object| bench.runner.waits_for_engine(&submission("build", object));
    assert_eq!(in_the_way("kept"), Some(true));
    assert_eq!(in_the_way("thing"), Some(false), "whatever else the engine does");
    assert_eq!(in_the_way("other"), None);
    bench.world.open_gate();
}

#[test]
fn jobs_on_different_objects_run_at_once() {
    let bench = bench();
    let parent = |object: &str| submission("gated", object).shared("parent");
    let ids: Vec<JobId> = (0..6)
        .map(|n| bench.runner.submit(&bench.world, parent(&format!("t{n}"))).expect("submitted"))
        .collect();
    bench.world.await_inside(6);
    let refused = bench.runner.submit(&bench.world, submission("build", "parent"));
    assert_eq!(refused.expect_err("its children need it").code, ErrorKind::Busy);
    bench.world.open_gate();
    assert!(ids.into_iter().all(|id| bench.end(id) == JobState::Done));
    let id = bench.submit("build", "parent");
    assert_eq!(bench.end(id), JobState::Done);
}

#[test]
fn of_many_submitters_one_wins() {
    let bench = bench();
    let won: Vec<JobId> = std::thread::scope(|scope| {
        let submit = || bench.runner.submit(&bench.world, submission("gated", "thing")).ok();
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(submit)).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(won.len(), 1);
    bench.world.open_gate();
    assert_eq!(bench.end(won[0]), JobState::Done);
}

#[test]
fn a_cancelled_job_is_undone() {
    let bench = bench();
    let id = bench.submit("gated", "thing");
    bench.world.await_inside(1);
    let early = bench.runner.wait(id, Duration::from_millis(10)).expect("known");
    assert_eq!(early.state, JobState::Running, "waiting ends at its deadline");
    bench.runner.cancel(id).expect("cancelled");
    assert_eq!(bench.end(id), JobState::Cancelled);
    assert!(bench.world.is_clean());
    let job = bench.catalog.job(id).expect("known");
    assert_eq!(job.error.map(|error| error.code), Some(ErrorKind::Cancelled));
    assert_eq!(bench.runner.cancel(id).expect_err("it has ended").code, ErrorKind::WrongState);
    assert_eq!(bench.runner.cancel(JobId(99)).expect_err("unknown").code, ErrorKind::NotFound);
}

#[test]
fn past_the_point_of_no_return_nothing_is_cancelled() {
    let bench = bench();
    let id = bench.submit("gated-commit", "thing");
    bench.world.await_inside(1);
    let failure = bench.runner.cancel(id).expect_err("too late");
    assert!(failure.message.contains("can no longer be cancelled"), "{failure}");
    bench.world.open_gate();
    assert_eq!(bench.end(id), JobState::Done);
}

#[test]
fn a_failure_is_told_with_its_cause_and_undone() {
    let bench = bench();
    bench.break_step(1, Place::Middle, 1);
    let id = bench.submit("build", "thing");
    assert_eq!(bench.end(id), JobState::Failed);
    let job = bench.runner.job(id).expect("known");
    let error = job.error.expect("a cause");
    assert_eq!((error.code, error.hint.as_str()), (ErrorKind::PoolFull, "mend"));
    let states: Vec<StepState> = job.steps.iter().map(|step| step.state).collect();
    assert_eq!(states, [StepState::Undone, StepState::Undone, StepState::Pending]);
    assert!(bench.world.is_clean());
}

#[test]
fn an_undo_that_fails_is_a_fault_and_is_tried_again() {
    let bench = bench();
    bench.break_step(2, Place::Middle, 1);
    bench.break_step(1, Place::Undo, 7); // more than is tried at once
    let id = bench.submit("build", "thing");
    assert_eq!(bench.end(id), JobState::Failed);
    let job = bench.runner.job(id).expect("known");
    assert!(!job.settled);
    assert_eq!(
        job.error.map(|error| error.code),
        Some(ErrorKind::PoolFull),
        "the first cause stays"
    );
    let faults = bench.catalog.faults().expect("readable");
    assert_eq!(faults.len(), 1);
    assert!(faults[0].message.contains("step '1' could not be undone"), "{faults:?}");
    assert!(!bench.runner.is_busy("thing"), "the object is not stuck");
    let left = bench.world.things.lock().len();
    assert_eq!(left, 4, "steps before the one that cannot be undone are left alone");

    // A new engine tries again, and so does the same one when asked.
    let (runner, catalog) = engine(bench.dir.path(), Arc::default());
    assert_eq!(runner.resume(&bench.world).expect("resumed"), [id]);
    let job = runner.wait(id, PATIENCE).expect("known");
    assert_eq!((job.state, job.settled), (JobState::Failed, true));
    assert!(bench.world.is_clean());
    assert_eq!(catalog.faults().expect("readable"), [], "the fault is gone");
    assert_eq!(runner.resume(&bench.world).expect("resumed"), [], "nothing is left");
}

#[test]
fn what_cannot_be_finished_stays_a_fault_until_it_can() {
    let bench = bench();
    bench.break_step(2, Place::End, 4);
    let id = bench.submit("commit", "thing");
    assert_eq!(bench.end(id), JobState::Failed);
    let job = bench.runner.job(id).expect("known");
    assert!(!job.settled && job.error.is_some());
    assert_eq!(bench.catalog.faults().expect("readable").len(), 1);
    assert_eq!(bench.runner.resume(&bench.world).expect("resumed"), [id]);
    assert_eq!(bench.end(id), JobState::Done);
    let job = bench.runner.job(id).expect("known");
    assert!(job.settled && job.error.is_none());
    assert!(bench.world.is_complete("thing"));
    assert_eq!(bench.catalog.faults().expect("readable"), []);
}

#[test]
fn after_a_crash_objects_are_held_until_they_are_undone() {
    let dir = scratch();
    let crash = Crash { step: 1, point: CrashPoint::After, midway: false };
    let crashes = Arc::new(Crashes::default());
    crashes.to_come.lock().extend([crash, crash]);
    let world = Arc::new(World { hold_undo: true, ..World::default() });
    let (runner, _) = engine(dir.path(), crashes.clone());
    let mut ids = Vec::new();
    for (count, object) in ["one", "two"].into_iter().enumerate() {
        let both = submission("build", object).shared("parent");
        ids.push(runner.submit(&world, both).expect("submitted"));
        crashes.await_happened(count + 1);
    }
    // The next engine finds both and holds their objects, even of the one whose turn has not come.
    let (runner, _) = engine(dir.path(), Arc::default());
    assert_eq!(runner.resume(&world).expect("resumed"), ids);
    world.await_inside(1);
    for object in ["one", "two", "parent"] {
        let refused = runner.submit(&world, submission("build", object));
        assert_eq!(refused.expect_err("held").code, ErrorKind::Busy, "{object}");
    }
    assert_eq!(runner.resume(&world).expect("resumed"), [], "they are being worked on");
    world.open_gate();
    for id in ids {
        let job = runner.wait(id, PATIENCE).expect("known");
        assert_eq!((job.state, job.settled), (JobState::Failed, true));
        assert!(job.error.expect("a cause").message.contains("the engine stopped"));
    }
    assert!(world.is_clean());
    assert!(!runner.is_busy("parent"));
}

#[test]
fn stopping_cancels_what_can_be_cancelled() {
    let bench = bench();
    let id = bench.submit("gated", "thing");
    bench.world.await_inside(1);
    assert_eq!(bench.runner.stop(PATIENCE), []);
    assert_eq!(bench.catalog.job(id).expect("known").state, JobState::Cancelled);
    assert!(bench.world.is_clean());
    let refused = bench.runner.submit(&bench.world, submission("build", "thing"));
    assert_eq!(refused.expect_err("stopping").code, ErrorKind::Busy);
}

#[test]
fn stopping_ends_at_its_deadline() {
    let bench = bench();
    let id = bench.submit("gated-commit", "thing");
    bench.world.await_inside(1);
    assert_eq!(bench.runner.stop(Duration::from_millis(20)), [id]);
    bench.world.open_gate();
    assert_eq!(bench.end(id), JobState::Done);
}

#[test]
fn what_goes_on_is_left_to_the_next_engine() {
    left_to_the_next_engine("lasting");
}

#[test]
fn an_ending_is_left_to_the_next_engine() {
    left_to_the_next_engine("ended");
}

fn left_to_the_next_engine(kind: &'static str) {
    let bench = bench();
    let id = bench.submit(kind, "thing");
    bench.world.await_inside(1);
    // Stopped cleanly, and then killed: the second engine's table of jobs is just dropped.
    assert_eq!(bench.runner.stop(PATIENCE), []);
    for _ in 0..2 {
        let job = bench.catalog.job(id).expect("known");
        assert_eq!(
            (job.state, job.settled, job.cancel_requested),
            (JobState::Running, false, false)
        );
        assert_eq!(job.steps[0].state, StepState::Done);
        let next = Runner::new(bench.catalog.clone(), Arc::new(SystemClock), workflows());
        assert!(!next.has_unsettled().expect("readable"));
        assert_eq!(next.resume(&bench.world).expect("resumed"), [], "nobody waits for it");
        assert!(next.is_busy("thing"));
        std::mem::forget(next);
    }
    bench.world.await_inside(3);
    bench.world.open_gate();
    let deadline = SystemClock.elapsed() + PATIENCE;
    while !bench.catalog.job(id).expect("known").state.is_final() {
        assert!(SystemClock.elapsed() < deadline, "it does not end");
        SystemClock.sleep(Duration::from_millis(5));
    }
    assert_eq!(bench.catalog.job(id).expect("known").state, JobState::Done);
}

#[test]
fn an_ending_that_fails_fails_the_job_and_undoes_nothing() {
    for place in [Place::Start, Place::Middle, Place::End] {
        let bench = bench();
        bench.break_step(2, place, 1);
        let id = bench.submit("ended", "thing");
        assert_eq!(bench.end(id), JobState::Failed);
        let job = bench.runner.job(id).expect("known");
        assert!(job.settled && job.error.is_some(), "{job:?}");
        let states: Vec<_> = job.steps.iter().map(|step| step.state).collect();
        let (done, failed, pending) = (StepState::Done, StepState::Failed, StepState::Pending);
        assert_eq!(states, [done, done, failed, pending]);
        assert!(bench.world.things.lock().contains("thing/1.b"), "what was made stays");
        assert_eq!(bench.catalog.faults().expect("readable"), []);
        assert_eq!(bench.runner.resume(&bench.world).expect("resumed"), [], "nothing is left");
        assert!(!bench.runner.is_busy("thing"));
    }
}

#[test]
fn a_step_before_an_ending_is_tried_again_as_ever() {
    let bench = bench();
    bench.world.open_gate();
    bench.break_step(1, Place::Middle, 2);
    let id = bench.submit("ended", "thing");
    assert_eq!(bench.end(id), JobState::Done);
    assert!(bench.world.is_complete("thing"));
}

#[test]
fn an_ending_can_be_cancelled() {
    let bench = bench();
    let id = bench.submit("ended", "thing");
    bench.world.await_inside(1);
    bench.runner.cancel(id).expect("it can be");
    assert_eq!(bench.end(id), JobState::Cancelled);
    assert!(bench.world.is_complete("thing"), "what was made stays");
    assert_eq!(bench.runner.resume(&bench.world).expect("resumed"), []);
}

#[test]
fn what_goes_on_can_be_cancelled() {
    let bench = bench();
    let id = bench.submit("lasting", "thing");
    bench.world.await_inside(1);
    bench.runner.cancel(id).expect("it can be");
    assert_eq!(bench.end(id), JobState::Cancelled);
    assert!(bench.world.is_clean());
    assert_eq!(bench.runner.resume(&bench.world).expect("resumed"), []);
}

/// A job that could not be undone, for the next engine to take up.
fn left_undone() -> (Bench, Job) {
    let bench = bench();
    bench.break_step(2, Place::Middle, 1);
    bench.break_step(1, Place::Undo, 4);
    let id = bench.submit("build", "thing");
    assert_eq!(bench.end(id), JobState::Failed);
    let job = bench.catalog.job(id).expect("known");
    (bench, job)
}

#[test]
fn jobs_of_another_version_are_left_alone() {
    let (bench, mut job) = left_undone();
    job.steps[2].name = "renamed".to_owned();
    bench.catalog.save_job(&job).expect("saved");
    assert_eq!(bench.runner.resume(&bench.world).expect("resumed"), []);
    let faults = bench.catalog.faults().expect("readable");
    assert!(faults[0].message.contains("another version"), "{faults:?}");
}

#[test]
fn a_job_of_before_a_step_was_added_is_undone_and_finished() {
    for missing in 0..3 {
        let (bench, mut job) = left_undone();
        let id = job.id;
        let all = job.steps.len();
        job.steps.remove(missing);
        bench.catalog.save_job(&job).expect("saved");
        assert_eq!(bench.runner.resume(&bench.world).expect("resumed"), [id]);
        assert_eq!(bench.end(id), JobState::Failed);
        let job = bench.catalog.job(id).expect("known");
        assert!(job.settled && job.steps.len() == all, "{job:?}");
        assert!(bench.world.is_clean(), "without step {missing}");
    }
}

#[test]
fn a_wrong_submission_is_refused() {
    let bench = bench();
    let unknown = Submission::new("nothing", Subject::named("thing"), &"thing");
    let failure = bench.runner.submit(&bench.world, unknown).expect_err("unknown");
    assert!(failure.message.contains("'nothing'"));
    let misfit = Submission::new("build", Subject::named("thing"), &42).exclusive("thing");
    let id = bench.runner.submit(&bench.world, misfit).expect("submitted");
    // Neither run nor undo understands the input: that is reported, not hidden.
    assert_eq!(bench.end(id), JobState::Failed);
    let error = bench.runner.job(id).expect("known").error.expect("a cause");
    assert_eq!(error.code, ErrorKind::Internal);
}
