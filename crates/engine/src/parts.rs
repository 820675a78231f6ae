//! The engine's parts as jobs see them, and how jobs begin.

use crate::following::Following;
use crate::serving::arrivals::Arrivals;
use crate::serving::results::Results;
use crate::space::room;
use offshoot_catalog::JobState;
use offshoot_connector::{Differences, Preview};
use offshoot_domain::{Owner, Position};
use offshoot_replication::archive::Archive;
use offshoot_replication::talk::{Talk, TreeState};
use offshoot_types::{ErrorKind, Failure, JobId};
use offshoot_workflow::{Runner, StepContext, Submission};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::io::Read;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long a user's job waits for one that the engine began on its own.
const OWN_JOBS_WAIT: Duration = Duration::from_secs(30);
/// Between two looks at whether whoever waits for a job still wants that.
const JOB_LOOK: Duration = Duration::from_millis(500);

/// An archive on its way in.
pub type Arrival = Archive<Box<dyn Read + Send>>;

/// A connection of another engine, and the states that it offers.
pub struct Call {
    /// The connection. Its owner waits while a job has it.
    pub talk: Arc<Mutex<Talk>>,
    /// The states.
    pub states: Vec<TreeState>,
}

/// What a step of a job sees.
pub type Context = StepContext<Parts>;

/// Two states, and what differs between them.
#[derive(Debug)]
pub struct Comparison {
    /// The moments that were compared.
    pub of: [Position; 2],
    /// What differs.
    pub found: Differences,
    /// How long the comparison took once both were open, in milliseconds.
    pub took_ms: u64,
}

/// All parts, on top of those that follow sources.
pub struct Parts {
    following: Following,
    /// Objects whose retention should be checked soon, before the next regular check.
    pub retention_wanted: Mutex<HashSet<Owner>>,
    /// Masked rows that somebody asked to see.
    pub previews: Results<Preview>,
    /// Differences that somebody asked for.
    pub differences: Results<Arc<Comparison>>,
    /// Archives that jobs are about to read.
    pub arrivals: Arrivals<Arrival>,
    /// What other engines are about to send.
    pub calls: Arrivals<Call>,
    runner: OnceLock<Runner<Parts>>,
}

impl Parts {
    /// Parts that have no runner of jobs yet.
    pub fn new(following: Following) -> Parts {
        Parts {
            following,
            retention_wanted: Mutex::default(),
            previews: Results::default(),
            differences: Results::default(),
            arrivals: Arrivals::default(),
            calls: Arrivals::default(),
            runner: OnceLock::new(),
        }
    }

    /// Lets jobs begin.
    pub fn set_runner(&self, runner: Runner<Parts>) {
        let _ = self.runner.set(runner);
    }

    /// The runner of jobs.
    pub fn runner(&self) -> Result<&Runner<Parts>, Failure> {
        self.runner.get().ok_or_else(|| Failure::internal("jobs before the engine is open"))
    }

    /// Waits until a job has ended well, or until `alive` says no.
    ///
    /// # Errors
    /// What the job, or `alive`, says.
    pub fn see_through(
        &self,
        job: JobId,
        alive: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            alive()?;
            let job = self.runner()?.wait(job, JOB_LOOK)?;
            if job.state.is_final() {
                let failed = || Failure::internal(format!("{} ended without a reason", job.id));
                return match job.state {
                    JobState::Done => Ok(()),
                    _ => Err(job.error.clone().unwrap_or_else(failed)),
                };
            }
        }
    }

    /// Starts a job. It waits for the engine's own jobs on the object: users need not know of them.
    pub fn submit(self: &Arc<Self>, submission: Submission) -> Result<JobId, Failure> {
        let deadline = self.clock.elapsed() + OWN_JOBS_WAIT;
        room::make_way(&self.store);
        let runner = self.runner()?;
        let mut last = false;
        loop {
            let busy = match runner.submit(self, submission.clone()) {
                Err(busy) if busy.code == ErrorKind::Busy => busy,
                other => return other,
            };
            if self.clock.elapsed() >= deadline || last {
                return Err(busy);
            }
            // Where it is not the engine's own, that may have ended right now: the object is free, or a user's.
            last = runner.waits_for_engine(&submission) != Some(true);
            if !last {
                self.clock.sleep(Duration::from_millis(20));
            }
        }
    }
}

impl Deref for Parts {
    type Target = Following;

    fn deref(&self) -> &Following {
        &self.following
    }
}
