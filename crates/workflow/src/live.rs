//! A job in memory.

use offshoot_catalog::{Job, StepState};
use offshoot_types::{ErrorKind, Failure, JobId};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::AtomicBool;

/// Who began a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// This process.
    Here,
    /// An earlier process, or an earlier try. It goes on beside others.
    Before,
    /// The same; of these, one runs after the other.
    BeforeInTurn,
}

/// A job that this process works on.
pub(crate) struct Live {
    pub id: JobId,
    pub job: Mutex<Job>,
    pub cancel: AtomicBool,
    pub begun: Begun,
    /// Signalled when `job` has ended.
    pub ended: Condvar,
}

/// Why a job that was asked to stop is undone.
pub(crate) fn cancelled(id: JobId) -> Failure {
    Failure::new(ErrorKind::Cancelled, format!("{id} was cancelled"), "")
}

/// The first step that is not done.
pub(crate) fn first_open(job: &Job) -> usize {
    let open = job.steps.iter().position(|step| step.state != StepState::Done);
    open.unwrap_or(job.steps.len())
}
