//! The course of one job.

use crate::context::StepContext;
use crate::crash_point::CrashPoint;
use crate::jobs::Shared;
use crate::live::{Begun, Live, cancelled, first_open};
use crate::workflow::{Step, Workflow};
use offshoot_catalog::{Job, JobState, StepState};
use offshoot_types::{ErrorKind, Failure};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often to try a step whose failure leaves something behind, with growing pauses.
const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Execution<'a, C> {
    shared: &'a Arc<Shared<C>>,
    app: &'a Arc<C>,
    live: &'a Arc<Live>,
    workflow: &'a Workflow<C>,
}

/// How the forward course ended, other than done.
enum Halt {
    /// What was done must be undone.
    Undo(Failure),
    /// Past the point of no return: it stays unfinished for now.
    Stuck(Failure),
    /// An ending failed or was cancelled: what was done stays.
    Kept(Failure),
    /// The engine stops, and the next one continues.
    Left,
}

impl<'a, C> Execution<'a, C> {
    /// The course of a job whose workflow is known.
    pub fn new(shared: &'a Arc<Shared<C>>, app: &'a Arc<C>, live: &'a Arc<Live>) -> Self {
        let kind = live.job.lock().kind.clone();
        let workflow = &shared.workflows[kind.as_str()];
        Execution { shared, app, live, workflow }
    }

    /// Finishes or undoes the job from wherever it is; returns it as it ended. It has been saved, and
    /// is published by the caller once its locks are free.
    pub fn drive(&self) -> Job {
        let interrupted = self.interruption();
        let halt = match interrupted {
            Some(failure) => Err(Halt::Undo(failure)),
            None => self.forward(),
        };
        let mut job = match halt {
            Ok(job) => return job,
            Err(Halt::Left) => {
                let job = self.live.job.lock().clone();
                self.shared.save(&job);
                return job;
            }
            Err(Halt::Undo(failure)) => match self.backward(failure) {
                Ok(()) => self.ended(JobState::Failed, true),
                Err((step, failure)) => {
                    let why = format!("step '{step}' could not be undone: {failure}");
                    self.stuck(&why, &failure.hint)
                }
            },
            Err(Halt::Kept(failure)) => {
                let mut job = self.ended(JobState::Failed, true);
                job.error = Some(failure);
                job
            }
            Err(Halt::Stuck(failure)) => {
                self.live.job.lock().error = Some(failure.clone());
                self.stuck(&format!("it could not be finished: {failure}"), &failure.hint)
            }
        };
        let by_request = job.error.as_ref().is_some_and(|e| e.code == ErrorKind::Cancelled);
        if job.settled && job.cancel_requested && by_request {
            job.state = JobState::Cancelled;
        }
        self.shared.save(&job);
        if job.settled {
            self.forgive(&job);
        }
        job
    }

    /// Why a job that an earlier process began must be undone; none for one that goes forward.
    fn interruption(&self) -> Option<Failure> {
        let job = self.live.job.lock();
        let step = job.steps.get(first_open(&job))?;
        let forward = self.workflow.only_forward(first_open(&job)) || self.shared.goes_on(&job);
        if self.live.begun == Begun::Here || forward {
            return None;
        }
        let message = format!("the engine stopped while {} was at step '{}'", job.id, step.name);
        let stopped = || Failure::new(ErrorKind::Internal, message, "it was undone; run it again");
        Some(job.error.clone().unwrap_or_else(stopped))
    }

    fn forward(&self) -> Result<Job, Halt> {
        let first = first_open(&self.live.job.lock());
        for index in first..self.workflow.steps().len() {
            let ending = self.workflow.is_ending(index);
            let only_forward = self.workflow.only_forward(index) && !ending;
            let halt = |failure| match (only_forward, ending) {
                (true, _) => Halt::Stuck(failure),
                (false, true) => Halt::Kept(failure),
                (false, false) => Halt::Undo(failure),
            };
            if only_forward {
                self.live.cancel.store(false, Ordering::Relaxed);
            } else if ending && self.shared.table.lock().stopping {
                return Err(Halt::Left);
            } else if self.live.cancel.load(Ordering::Relaxed) {
                let left = self.shared.goes_on(&self.live.job.lock());
                return Err(if left { Halt::Left } else { halt(cancelled(self.live.id)) });
            }
            self.mark(index, StepState::Running).map_err(halt)?;
            let step = &self.workflow.steps()[index];
            let attempts = if only_forward { ATTEMPTS } else { 1 };
            let result = self.attempt(step, false, attempts);
            if let Err(failure) = result {
                let mut job = self.live.job.lock();
                if failure.code == ErrorKind::Cancelled && self.shared.goes_on(&job) {
                    return Err(Halt::Left);
                }
                job.steps[index].state = StepState::Failed;
                job.steps[index].ended_at = Some(self.shared.now());
                return Err(halt(failure));
            }
            // Made durable together with the beginning of the next step, or the end of the job.
            let mut job = self.live.job.lock();
            job.steps[index].state = StepState::Done;
            job.steps[index].ended_at = Some(self.shared.now());
        }
        let mut job = self.ended(JobState::Done, true);
        job.error = None;
        if let Err(error) = self.shared.catalog.save_job(&job) {
            // Nobody was told that it is done, and after a restart it would not be done.
            let last = job.steps.len().saturating_sub(1);
            return Err(match self.workflow.only_forward(last) {
                true => Halt::Stuck(error.into()),
                false => Halt::Undo(error.into()),
            });
        }
        self.forgive(&job);
        Ok(job)
    }

    /// Undoes every step that was begun, last first.
    fn backward(&self, failure: Failure) -> Result<(), (&'static str, Failure)> {
        {
            let mut job = self.live.job.lock();
            tracing::warn!(job = %job.id, kind = %job.kind, object = %job.object, %failure, "undoing");
            (job.state, job.error) = (JobState::Undoing, Some(failure));
            self.shared.save(&job);
        }
        for (index, step) in self.workflow.steps().iter().enumerate().rev() {
            let state = self.live.job.lock().steps[index].state;
            if matches!(state, StepState::Pending | StepState::Undone) {
                continue;
            }
            self.attempt(step, true, ATTEMPTS).map_err(|failure| (step.name, failure))?;
            if let Err(failure) = self.mark(index, StepState::Undone) {
                tracing::error!(job = %self.live.id, %failure, "the undo could not be recorded");
            }
        }
        Ok(())
    }

    /// Runs or undoes a step.
    fn attempt(&self, step: &Step<C>, undoing: bool, attempts: u32) -> Result<(), Failure> {
        let (work, before, after) = match undoing {
            false => (step.run, CrashPoint::Before, CrashPoint::After),
            true => (step.undo, CrashPoint::BeforeUndo, CrashPoint::AfterUndo),
        };
        let (ground, app, live) = (self.shared.ground.clone(), self.app.clone(), self.live.clone());
        let context = StepContext { ground, app, live, undoing, part: None };
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            // A defect in a step must undo the job, not end the thread and leave the object locked.
            let caught = || {
                catch_unwind(AssertUnwindSafe(|| work(&context)))
                    .unwrap_or_else(|panic| Err(Failure::internal(panic_text(&*panic))))
            };
            let result = self.pass(step.name, before).and_then(|()| caught());
            match result.and_then(|()| self.pass(step.name, after)) {
                Err(failure) if attempt < attempts => {
                    tracing::warn!(job = %self.live.id, %failure, attempt, "trying again");
                    self.shared.clock.sleep(pause);
                    pause *= 4;
                }
                result => return result,
            }
        }
        Ok(())
    }

    fn mark(&self, index: usize, state: StepState) -> Result<(), Failure> {
        let now = Some(self.shared.now());
        let mut job = self.live.job.lock();
        let step = &mut job.steps[index];
        step.state = state;
        match state {
            StepState::Running => (step.started_at, step.ended_at) = (now, None),
            _ => step.ended_at = now,
        }
        Ok(self.shared.catalog.save_job(&job)?)
    }

    fn pass(&self, step: &str, point: CrashPoint) -> Result<(), Failure> {
        self.shared.crash_points.reached(self.workflow.kind(), step, point)
    }

    fn ended(&self, state: JobState, settled: bool) -> Job {
        let mut job = self.live.job.lock().clone();
        (job.state, job.settled, job.ended_at) = (state, settled, Some(self.shared.now()));
        job
    }

    fn stuck(&self, why: &str, hint: &str) -> Job {
        let job = self.ended(JobState::Failed, false);
        let message = format!("{} ({}) on '{}': {why}", job.id, job.kind, job.object);
        let hint = if hint.is_empty() { "it is tried again at the next start" } else { hint };
        self.shared.raise(&job, message, hint);
        job
    }

    /// Withdraws the fault of an earlier try.
    fn forgive(&self, job: &Job) {
        let (shared, topic) = (&self.shared, job.id.to_string());
        if let Err(error) = shared.catalog.clear_fault(&job.object, &topic, shared.now()) {
            tracing::error!(job = %job.id, %error, "the fault could not be cleared");
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a step panicked: {}", text.unwrap_or_default())
}
