//! Submission, waiting, cancelling, resuming.

use crate::crash_point::{CrashPoints, Never};
use crate::execution::Execution;
use crate::jobs::Shared;
use crate::live::{Begun, Live};
use crate::lock::Lock;
use crate::table::Ground;
use crate::workflow::Workflow;
use offshoot_catalog::{Catalog, Job, JobState, Progress, StepState, Subject};
use offshoot_os::Clock;
use offshoot_types::{ErrorKind, Failure, JobId};
use parking_lot::{Condvar, Mutex};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What to start.
#[derive(Debug, Clone)]
pub struct Submission {
    kind: &'static str,
    object: Subject,
    locks: Vec<Lock>,
    input: Result<serde_json::Value, String>,
    of_engine: bool,
}

impl Submission {
    /// A job of workflow `kind` on `object`. The input is stored: no passwords.
    pub fn new(
        kind: impl Into<&'static str>,
        object: impl Into<Subject>,
        input: &impl Serialize,
    ) -> Self {
        let (kind, object) = (kind.into(), object.into());
        let input = serde_json::to_value(input).map_err(|error| error.to_string());
        Submission { kind, object, locks: Vec::new(), input, of_engine: false }
    }

    /// The job changes this object (or takes this name).
    pub fn exclusive(mut self, key: impl fmt::Display) -> Self {
        self.locks.push(Lock::exclusive(key));
        self
    }

    /// The engine begins it by itself, and it ends soon: users' jobs on the same object wait for it instead of
    /// being refused.
    pub fn of_engine(mut self) -> Self {
        self.of_engine = true;
        self
    }

    /// The job needs this object to stay.
    pub fn shared(mut self, key: impl fmt::Display) -> Self {
        self.locks.push(Lock::shared(key));
        self
    }
}

/// Runs jobs, each on its own thread. `C` is the application that steps work on; it may own its
/// runner, as it is passed to each call.
pub struct Runner<C> {
    shared: Arc<Shared<C>>,
}

impl<C: Send + Sync + 'static> Runner<C> {
    /// A runner of these workflows.
    ///
    /// # Panics
    /// Panics where two workflows have one name.
    pub fn new(catalog: Arc<Catalog>, clock: Arc<dyn Clock>, workflows: Vec<Workflow<C>>) -> Self {
        Runner::with_crash_points(catalog, clock, workflows, Arc::new(Never))
    }

    /// As [`Runner::new`], with places to die or fail at.
    pub fn with_crash_points(
        catalog: Arc<Catalog>,
        clock: Arc<dyn Clock>,
        workflows: Vec<Workflow<C>>,
        crash_points: Arc<dyn CrashPoints>,
    ) -> Self {
        let count = workflows.len();
        let workflows: HashMap<_, _> = workflows.into_iter().map(|w| (w.kind(), w)).collect();
        assert_eq!(workflows.len(), count, "two workflows have one name");
        let (table, left) = (Mutex::default(), Condvar::new());
        let ground = Arc::new(Ground { catalog, clock, table, left });
        let shared = Shared { ground, crash_points, workflows };
        Runner { shared: Arc::new(shared) }
    }

    /// Starts a job and returns at once; the job is durable by then.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] naming the job that holds one of the objects; the catalog's errors.
    pub fn submit(&self, app: &Arc<C>, submission: Submission) -> Result<JobId, Failure> {
        let Submission { kind, object, locks, input, of_engine } = submission;
        let workflow = self.shared.workflows.get(kind);
        let workflow =
            workflow.ok_or_else(|| Failure::internal(format!("no workflow is named '{kind}'")))?;
        let input =
            input.map_err(|error| Failure::internal(format!("input of {kind}: {error}")))?;
        let mut table = self.shared.table.lock();
        if table.stopping {
            let hint = "start it again: offshoot serve";
            return Err(Failure::new(ErrorKind::Busy, "the engine is stopping", hint));
        }
        if let Some(holder) = table.locks.conflict(&locks, |_| false) {
            let doing = table.live.get(&holder).map(|live| live.job.lock().kind.clone());
            let doing = doing.unwrap_or_default();
            return Err(Failure::new(
                ErrorKind::Busy,
                format!("'{object}' is busy: {holder} ({doing}) works on it or on what it needs"),
                format!("wait for it: offshoot job watch {holder}"),
            ));
        }
        let started_at = self.shared.now();
        let job = self.shared.catalog.add_job(|id| Job {
            id,
            kind: kind.to_owned(),
            object,
            of_engine,
            state: JobState::Running,
            settled: false,
            cancel_requested: false,
            progress: Progress::default(),
            started_at,
            ended_at: None,
            steps: workflow.steps().iter().map(|step| step.record(StepState::Pending)).collect(),
            input,
            bag: serde_json::Map::new(),
            locks: locks.iter().map(Lock::to_string).collect(),
            error: None,
            notes: Vec::new(),
        })?;
        let id = job.id;
        let live = table.enter(job, &locks, Begun::Here);
        drop(table);
        self.spawn(app, vec![live]);
        Ok(id)
    }

    /// Takes up every job with something left to do or undo: at the start of the engine before any
    /// submission, and later to try again what could not be undone. Jobs past their point of no
    /// return are finished, others undone, one after the other in the background; these are returned.
    /// Those that [go on](Workflow::goes_on) do so beside them.
    ///
    /// # Errors
    /// The catalog's.
    pub fn resume(&self, app: &Arc<C>) -> Result<Vec<JobId>, Failure> {
        let mut table = self.shared.table.lock();
        let mut jobs = self.shared.catalog.unsettled_jobs()?;
        jobs.retain_mut(|job| !table.live.contains_key(&job.id) && self.shared.adopt(job));
        let resumed: HashSet<JobId> = jobs.iter().map(|job| job.id).collect();
        let (mut queue, mut going_on) = (Vec::new(), Vec::new());
        for mut job in jobs {
            // It has not ended after all; who waits for it waits for the end of this try.
            let goes_on = self.shared.goes_on(&job);
            let forward = goes_on || self.shared.only_forward(&job);
            job.state = if forward { JobState::Running } else { JobState::Undoing };
            job.ended_at = None;
            let locks: Vec<Lock> = job.locks.iter().map(|text| Lock::from_text(text)).collect();
            // They run one after the other, so they are not in each other's way.
            if table.locks.conflict(&locks, |holder| resumed.contains(&holder)).is_none() {
                let (to, begun) = match goes_on {
                    true => (&mut going_on, Begun::Before),
                    false => (&mut queue, Begun::BeforeInTurn),
                };
                to.push(table.enter(job, &locks, begun));
            }
        }
        drop(table);
        let ids = queue.iter().map(|live| live.id).collect();
        self.spawn(app, queue);
        going_on.into_iter().for_each(|live| self.spawn(app, vec![live]));
        Ok(ids)
    }

    /// Waits until a job has ended and returns it; after `timeout` as it is then (its
    /// [state](JobState::is_final) tells).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an unknown job; the catalog's errors.
    pub fn wait(&self, id: JobId, timeout: Duration) -> Result<Job, Failure> {
        let live = self.shared.table.lock().live.get(&id).cloned();
        let Some(live) = live else { return Ok(self.shared.catalog.job(id)?) };
        let deadline = self.shared.clock.elapsed() + timeout;
        let mut job = live.job.lock();
        while job.ended_at.is_none() {
            let left = deadline.saturating_sub(self.shared.clock.elapsed());
            if left.is_zero() {
                break;
            }
            live.ended.wait_for(&mut job, left);
        }
        Ok(job.clone())
    }

    /// A job as it is now.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an unknown job; the catalog's errors.
    pub fn job(&self, id: JobId) -> Result<Job, Failure> {
        self.wait(id, Duration::ZERO)
    }

    /// The last `limit` jobs as they are now, newest first.
    ///
    /// # Errors
    /// The catalog's.
    pub fn jobs(&self, limit: u32) -> Result<Vec<Job>, Failure> {
        let mut jobs = self.shared.catalog.jobs(limit)?;
        for job in jobs.iter_mut().filter(|job| !job.settled) {
            let live = self.shared.table.lock().live.get(&job.id).cloned();
            if let Some(live) = live {
                *job = live.job.lock().clone();
            }
        }
        Ok(jobs)
    }

    /// Whether a job has something left to do or undo, those that go on beside everything else not
    /// counted.
    ///
    /// # Errors
    /// The catalog's.
    pub fn has_unsettled(&self) -> Result<bool, Failure> {
        let jobs = self.shared.catalog.unsettled_jobs()?;
        Ok(!jobs.iter().all(|job| self.shared.goes_on(job)))
    }

    /// Whether a job of this process works on an object (holds a lock on `key`, shared or not).
    pub fn is_busy(&self, key: impl fmt::Display) -> bool {
        self.shared.table.lock().locks.conflict(&[Lock::exclusive(key)], |_| false).is_some()
    }

    /// Whether a job of this process has an object to itself: none that shares it could begin.
    pub fn is_taken(&self, key: impl fmt::Display) -> bool {
        self.shared.table.lock().locks.conflict(&[Lock::shared(key)], |_| false).is_some()
    }

    /// Whether the job in the way of a submission is one that the engine began on its own; none: no job is. One that has
    /// ended counts until its objects are free.
    pub fn waits_for_engine(&self, submission: &Submission) -> Option<bool> {
        let table = self.shared.table.lock();
        let holder = table.locks.conflict(&submission.locks, |_| false)?;
        table.live.get(&holder).map(|live| live.job.lock().of_engine)
    }

    /// Asks a job to stop and be undone; it does at its next opportunity.
    ///
    /// # Errors
    /// [`ErrorKind::WrongState`] where the job has ended, is being undone already, or is past its
    /// point of no return; [`ErrorKind::NotFound`] for an unknown job.
    pub fn cancel(&self, id: JobId) -> Result<(), Failure> {
        let live = self.shared.table.lock().live.get(&id).cloned();
        let refuse = |why: &str| {
            let hint = format!("see what it does: offshoot job show {id}");
            Err(Failure::new(ErrorKind::WrongState, format!("{id} {why}"), hint))
        };
        let Some(live) = live else {
            return refuse(&format!("has ended ({})", self.shared.catalog.job(id)?.state.as_str()));
        };
        let mut job = live.job.lock();
        if job.state != JobState::Running || job.ended_at.is_some() {
            return refuse("is being undone or has ended");
        }
        if self.shared.only_forward(&job) && !self.shared.is_ending(&job) {
            return refuse("can no longer be cancelled");
        }
        job.cancel_requested = true;
        live.cancel.store(true, Ordering::Relaxed);
        Ok(self.shared.catalog.save_job(&job)?)
    }

    /// Refuses new jobs, cancels those that can be, leaves those that go on, and waits for all to end. Returns those that
    /// have not by the deadline; the next start takes them up.
    pub fn stop(&self, timeout: Duration) -> Vec<JobId> {
        let running: Vec<JobId> = {
            let mut table = self.shared.table.lock();
            table.stopping = true;
            table.live.keys().copied().collect()
        };
        for id in running {
            let live = self.shared.table.lock().live.get(&id).cloned();
            let Some(live) = live else { continue };
            if self.shared.goes_on(&live.job.lock()) {
                live.cancel.store(true, Ordering::Relaxed);
                continue;
            }
            // One that cannot be cancelled is waited for.
            let _ = self.cancel(id);
        }
        let deadline = self.shared.clock.elapsed() + timeout;
        let mut table = self.shared.table.lock();
        while !table.live.is_empty() {
            let left = deadline.saturating_sub(self.shared.clock.elapsed());
            if left.is_zero() {
                break;
            }
            self.shared.left.wait_for(&mut table, left);
        }
        table.live.keys().copied().collect()
    }

    fn spawn(&self, app: &Arc<C>, queue: Vec<Arc<Live>>) {
        let Some(first) = queue.first() else { return };
        let (name, ids) = (first.id.to_string(), queue.clone());
        let (shared, app) = (self.shared.clone(), app.clone());
        let work = move || {
            let mut last: Option<(Arc<Live>, Job)> = None;
            for live in queue {
                if let Some((live, job)) = last.take() {
                    shared.leave(&live, job);
                }
                let job = Execution::new(&shared, &app, &live).drive();
                last = Some((live, job));
            }
            // Who waits for the last job may tear the application down next.
            drop(app);
            if let Some((live, job)) = last {
                shared.leave(&live, job);
            }
        };
        if let Err(error) = std::thread::Builder::new().name(name).spawn(work) {
            for live in ids {
                let mut job = live.job.lock().clone();
                (job.state, job.ended_at) = (JobState::Failed, Some(self.shared.now()));
                job.settled = job.steps.iter().all(|step| step.state == StepState::Pending);
                let hint = "stop other programs, then try again";
                let why = format!("no thread for {}: {error}", live.id);
                job.error = Some(Failure::new(ErrorKind::HostUnprepared, why, hint));
                self.shared.save(&job);
                self.shared.leave(&live, job);
            }
        }
    }
}
