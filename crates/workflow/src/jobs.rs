//! What a runner and the courses of its jobs share.

use crate::crash_point::CrashPoints;
use crate::live::{Live, first_open};
use crate::table::Ground;
use crate::workflow::Workflow;
use jiff::Timestamp;
use offshoot_catalog::{Fault, Job, JobState};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

pub(crate) struct Shared<C> {
    pub ground: Arc<Ground>,
    pub crash_points: Arc<dyn CrashPoints>,
    pub workflows: HashMap<&'static str, Workflow<C>>,
}

impl<C> Deref for Shared<C> {
    type Target = Ground;

    fn deref(&self) -> &Ground {
        &self.ground
    }
}

impl<C> Shared<C> {
    pub fn now(&self) -> Timestamp {
        Timestamp::try_from(self.clock.now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Saves when an error no longer changes anything; the next start finds the older state.
    pub fn save(&self, job: &Job) {
        if let Err(error) = self.catalog.save_job(job) {
            tracing::error!(job = %job.id, %error, "the job's state could not be saved");
        }
    }

    pub fn raise(&self, job: &Job, message: String, hint: &str) {
        tracing::error!(job = %job.id, kind = %job.kind, message);
        let fault = Fault {
            subject: job.object.clone(),
            topic: job.id.to_string(),
            time: self.now(),
            message,
            hint: hint.to_owned(),
        };
        if let Err(error) = self.catalog.raise_fault(&fault) {
            tracing::error!(job = %job.id, %error, "the fault could not be saved");
        }
    }

    /// Whether the job is past its point of no return.
    pub fn only_forward(&self, job: &Job) -> bool {
        let workflow = self.workflows.get(job.kind.as_str());
        workflow.is_some_and(|workflow| workflow.only_forward(first_open(job)))
    }

    /// Whether the job is at an ending, which may still be cancelled.
    pub fn is_ending(&self, job: &Job) -> bool {
        let workflow = self.workflows.get(job.kind.as_str());
        workflow.is_some_and(|workflow| workflow.is_ending(first_open(job)))
    }

    /// Whether the job continues in the next engine, and nobody asked to cancel it.
    pub fn goes_on(&self, job: &Job) -> bool {
        let workflow = self.workflows.get(job.kind.as_str());
        let running = job.state == JobState::Running && !job.cancel_requested;
        running && (workflow.is_some_and(Workflow::is_going_on) || self.is_ending(job))
    }

    /// Gives up a job's locks, then shows its end to those who wait for it: in this order, so that
    /// they find the object free.
    pub fn leave(&self, live: &Live, job: Job) {
        {
            let mut table = self.table.lock();
            table.locks.release(live.id);
            table.live.remove(&live.id);
        }
        *live.job.lock() = job;
        live.ended.notify_all();
        self.left.notify_all();
    }

    /// Whether this version knows the job's steps; if not, that is a fault. Steps that are new in this version are added:
    /// those that the job is past already count as done.
    pub fn adopt(&self, job: &mut Job) -> bool {
        let workflow = self.workflows.get(job.kind.as_str());
        if let Some(steps) = workflow.and_then(|workflow| workflow.extended(&job.steps)) {
            job.steps = steps;
            return true;
        }
        let message = format!("{} ({}) was begun by another version of Offshoot", job.id, job.kind);
        self.raise(job, message, "start that version once, so that it can finish or undo it");
        false
    }
}
