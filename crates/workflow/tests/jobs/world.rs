//! The outside world of the tests, and workflows that build something in it.

use offshoot_catalog::{Catalog, Keyring, SecretKey, Subject};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure};
use offshoot_workflow::{CrashPoint, CrashPoints, Key, Runner, StepContext, Submission, Workflow};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Longer than any test waits on a busy machine; reaching it is a failure.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub const STEPS: usize = 3;

/// Where in a step something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Start,
    Middle,
    End,
    Undo,
}

/// How a step misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misbehaviour {
    Fail,
    Panic,
}

/// What survives a crash of the engine: its things are named `object/step.part`.
#[derive(Default)]
pub struct World {
    pub things: Mutex<BTreeSet<String>>,
    /// Coming misbehaviour, each with how often it still happens.
    pub faults: Mutex<Vec<(usize, Place, Misbehaviour, u32)>>,
    /// Do everything twice.
    pub repeat: bool,
    /// Jobs of workflow `gated` wait in step 0 until this is open.
    pub gate: Mutex<bool>,
    pub gate_moved: Condvar,
    pub inside: Mutex<usize>,
    pub inside_moved: Condvar,
    /// Undos wait at the gate.
    pub hold_undo: bool,
}

impl World {
    fn touch(&self, step: usize, place: Place) -> Result<(), Failure> {
        let mut faults = self.faults.lock();
        let fault = faults
            .iter_mut()
            .find(|(at, here, _, left)| (*at, *here) == (step, place) && *left > 0);
        let Some((_, _, misbehaviour, left)) = fault else { return Ok(()) };
        *left -= 1;
        match misbehaviour {
            Misbehaviour::Panic => std::panic::resume_unwind(Box::new("a defect")),
            Misbehaviour::Fail => {
                Err(Failure::new(ErrorKind::PoolFull, format!("fault at {step} {place:?}"), "mend"))
            }
        }
    }

    pub fn make(&self, object: &str, step: usize, part: &str) {
        self.things.lock().insert(format!("{object}/{step}.{part}"));
    }

    pub fn open_gate(&self) {
        *self.gate.lock() = true;
        self.gate_moved.notify_all();
    }

    /// Waits until `count` jobs are inside the gate together.
    pub fn await_inside(&self, count: usize) {
        let mut inside = self.inside.lock();
        while *inside < count {
            let late = self.inside_moved.wait_for(&mut inside, PATIENCE).timed_out();
            assert!(!late, "only {} of {count} jobs run at once", *inside);
        }
    }

    pub fn is_clean(&self) -> bool {
        self.things.lock().is_empty()
    }

    pub fn is_complete(&self, object: &str) -> bool {
        let things = self.things.lock();
        let all =
            (0..STEPS).flat_map(|step| ["a", "b"].map(|part| format!("{object}/{step}.{part}")));
        all.into_iter().all(|thing| things.contains(&thing)) && things.len() == 2 * STEPS
    }
}

/// What each step notes.
const NOTES: [Key<usize>; STEPS] = [Key::new("note0"), Key::new("note1"), Key::new("note2")];

fn run<const N: usize>(ctx: &StepContext<World>) -> Result<(), Failure> {
    let (world, object) = (ctx.app(), ctx.input::<String>()?);
    for (before, note) in NOTES.into_iter().enumerate().take(N) {
        assert_eq!(ctx.need(note)?, before, "notes of earlier steps stay");
    }
    for _ in 0..1 + usize::from(world.repeat) {
        world.touch(N, Place::Start)?;
        ctx.set(NOTES[N], &N)?;
        world.make(&object, N, "a");
        world.touch(N, Place::Middle)?;
        world.make(&object, N, "b");
        ctx.progress(N as u64 + 1, STEPS as u64, "steps");
        world.touch(N, Place::End)?;
    }
    Ok(())
}

fn undo<const N: usize>(ctx: &StepContext<World>) -> Result<(), Failure> {
    let (world, object) = (ctx.app(), ctx.input::<String>()?);
    assert!(!ctx.is_cancelled(), "an undo is never cancelled");
    if world.hold_undo {
        wait_at_gate(ctx)?;
    }
    for _ in 0..1 + usize::from(world.repeat) {
        world.touch(N, Place::Undo)?;
        let mut things = world.things.lock();
        let later = format!("{object}/{}.", N + 1);
        assert!(!things.iter().any(|thing| thing.starts_with(&later)), "later steps go first");
        things.retain(|thing| !thing.starts_with(&format!("{object}/{N}.")));
    }
    Ok(())
}

fn wait_at_gate(ctx: &StepContext<World>) -> Result<(), Failure> {
    let world = ctx.app();
    *world.inside.lock() += 1;
    world.inside_moved.notify_all();
    let deadline = ctx.clock().elapsed() + PATIENCE;
    let mut open = world.gate.lock();
    while !*open {
        ctx.check_cancelled()?;
        assert!(ctx.clock().elapsed() < deadline, "the gate stays shut");
        world.gate_moved.wait_for(&mut open, Duration::from_millis(5));
    }
    Ok(())
}

/// `build` can be undone at every step, `commit` only until its last; `gated` waits in the middle,
/// `gated-commit` past its point of no return; `lasting` continues after the end of the engine; `alone` and
/// `alone-politely` end when they have `parent` to themselves; the last two steps of `ended` may fail.
pub fn workflows() -> Vec<Workflow<World>> {
    vec![
        Workflow::new("build")
            .step("0", run::<0>, undo::<0>)
            .step("1", run::<1>, undo::<1>)
            .step("2", run::<2>, undo::<2>),
        Workflow::new("commit")
            .step("0", run::<0>, undo::<0>)
            .step("1", run::<1>, undo::<1>)
            .point_of_no_return()
            .step("2", run::<2>, |_| panic!("never undone")),
        Workflow::new("gated")
            .step("0", run::<0>, undo::<0>)
            .step_without_undo("gate", wait_at_gate),
        Workflow::new("gated-commit").point_of_no_return().step_without_undo("gate", wait_at_gate),
        Workflow::new("ended")
            .step("0", run::<0>, undo::<0>)
            .point_of_no_return()
            .step_without_undo("1", run::<1>)
            .ending("2", run::<2>)
            .ending("gate", wait_at_gate),
        Workflow::new("lasting")
            .step("0", run::<0>, undo::<0>)
            .step_without_undo("gate", wait_at_gate)
            .goes_on(),
        Workflow::new("alone")
            .step("0", run::<0>, undo::<0>)
            .step_without_undo("1", |ctx| ctx.have_alone("parent", Duration::ZERO)),
        Workflow::new("alone-politely")
            .step("0", run::<0>, undo::<0>)
            .step_without_undo("1", |ctx| ctx.have_alone("parent", PATIENCE)),
        Workflow::new("alone-at-last")
            .point_of_no_return()
            .step_without_undo("1", |ctx| ctx.have_alone("parent", Duration::ZERO)),
    ]
}

/// A clock whose pauses take no time.
#[derive(Default)]
pub struct Hasty(SystemClock);

impl Clock for Hasty {
    fn now(&self) -> SystemTime {
        self.0.now()
    }
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
    fn sleep(&self, _: Duration) {}
}

/// Where and how the engine dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    pub step: usize,
    pub point: CrashPoint,
    /// Half of the step's work happens first: the engine dies in the middle of it.
    pub midway: bool,
}

/// The crashes to come, in order.
#[derive(Default)]
pub struct Crashes {
    pub to_come: Mutex<VecDeque<Crash>>,
    pub happened: Mutex<usize>,
    pub world: Option<Arc<World>>,
}

impl Crashes {
    pub fn await_happened(&self, count: usize) {
        let deadline = SystemClock.elapsed() + PATIENCE;
        while *self.happened.lock() < count {
            assert!(SystemClock.elapsed() < deadline, "no crash came");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl CrashPoints for Crashes {
    fn reached(&self, _: &str, step: &str, point: CrashPoint) -> Result<(), Failure> {
        let mut to_come = self.to_come.lock();
        let Some(crash) = to_come.front().copied() else { return Ok(()) };
        if crash.step.to_string() != step || crash.point != point {
            return Ok(());
        }
        to_come.pop_front();
        if let Some(world) = self.world.as_ref().filter(|_| crash.midway) {
            world.make("thing", crash.step, "a");
        }
        *self.happened.lock() += 1;
        // Ends the job's thread without another write to the catalog.
        std::panic::resume_unwind(Box::new("crash"));
    }
}

/// A directory whose flushes cost nothing, if there is one: these tests reopen files, not disks.
pub fn scratch() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a directory")
}

/// Where there are no secrets, any will do.
pub fn keys() -> Keyring {
    SecretKey::of([0; 32]).into()
}

pub fn engine(dir: &Path, crashes: Arc<Crashes>) -> (Runner<World>, Arc<Catalog>) {
    let catalog =
        Arc::new(Catalog::open(&dir.join("catalog.db"), keys()).expect("the catalog opens"));
    let clock = Arc::new(Hasty::default());
    (Runner::with_crash_points(catalog.clone(), clock, workflows(), crashes), catalog)
}

pub fn submission(kind: &'static str, object: &str) -> Submission {
    Submission::new(kind, Subject::named(object), &object).exclusive(object)
}
