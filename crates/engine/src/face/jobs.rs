//! What can be asked of jobs.

use crate::jobs::snapshot::SNAPSHOT;
use crate::parts::Parts;
use offshoot_catalog::Job;
use offshoot_types::{Failure, JobId, SnapshotId};
use std::sync::Arc;

/// Jobs a list shows.
const JOBS_LISTED: u32 = 1000;

/// Jobs, as a user works with them.
pub struct Jobs<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Jobs<'_> {
    /// The last jobs, newest first.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<Job>, Failure> {
        self.parts.runner()?.jobs(JOBS_LISTED)
    }

    /// One job.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, id: JobId) -> Result<Job, Failure> {
        self.parts.runner()?.job(id)
    }

    /// Asks a job to stop.
    ///
    /// # Errors
    /// `NotFound`, `WrongState`.
    pub fn cancel(&self, id: JobId) -> Result<Job, Failure> {
        self.parts.runner()?.cancel(id)?;
        self.show(id)
    }
}

/// The snapshot that a job has taken; its result.
pub fn snapshot_taken(job: &Job) -> Option<SnapshotId> {
    SNAPSHOT.find(&job.bag)
}
