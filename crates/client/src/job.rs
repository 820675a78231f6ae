//! Seeing through what takes long: a job, a log that is written.

use crate::Client;
use offshoot_api::{Job, JobState};
use offshoot_types::{ErrorKind, Failure, JobId};
use std::time::Duration;

/// The first pause between two checks of a job: short, as provisioning takes a fraction of a
/// second.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The longest pause between two checks of a job.
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// The part of the time waited so far that the next pause takes: how late the end is seen at most.
const PAUSE_PART: u32 = 20;
/// The pause before asking again an engine that did not answer.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How often to ask an engine that does not answer before giving up.
const RETRIES_MAX: u32 = 60;

impl Client {
    /// Waits until a job has ended, however long it takes, and returns it when it is done.
    ///
    /// `on_progress` sees the job at each check. If the engine is away for up to half a minute (for
    /// example, restarted), this waits for it, on whichever port it comes back.
    ///
    /// # Errors
    /// The job's own failure; `cancelled`; `engine_unreachable` if the engine stays away; the job may
    /// well continue.
    pub fn wait_job(&self, id: JobId, mut on_progress: impl FnMut(&Job)) -> Result<Job, Failure> {
        let mut waited = Duration::ZERO;
        loop {
            let job = self.patiently(|| self.show_job(id))?;
            on_progress(&job);
            if job.state.is_final() {
                return outcome(job);
            }
            let pause = (waited / PAUSE_PART).clamp(PAUSE_MIN, PAUSE_MAX);
            std::thread::sleep(pause);
            waited += pause;
        }
    }

    /// Shows what is written into the log of a VDB's server from an end on, until the VDB is gone. Waits for an engine that is away as
    /// [`Client::wait_job`] does.
    ///
    /// # Errors
    /// Of the engine; it has no other end.
    pub fn follow_vdb_log(
        &self,
        name: &str,
        mut end: String,
        bytes: u64,
        mut on_text: impl FnMut(&str),
    ) -> Failure {
        loop {
            std::thread::sleep(PAUSE_MAX);
            match self.patiently(|| self.vdb_log(name, Some(&end), bytes)) {
                Ok(log) => {
                    if !log.text.is_empty() {
                        on_text(&log.text);
                    }
                    end = log.end;
                }
                Err(failure) => return failure,
            }
        }
    }

    /// Asks again while the engine is away, for half a minute.
    fn patiently<T>(&self, ask: impl Fn() -> Result<T, Failure>) -> Result<T, Failure> {
        let mut retries = 0;
        loop {
            match ask() {
                Err(failure)
                    if failure.code == ErrorKind::EngineUnreachable && retries < RETRIES_MAX =>
                {
                    retries += 1;
                    std::thread::sleep(RETRY_PAUSE);
                    self.find_again();
                }
                answered => return answered,
            }
        }
    }
}

fn outcome(job: Job) -> Result<Job, Failure> {
    if job.state == JobState::Done {
        return Ok(job);
    }
    let kind =
        if job.state == JobState::Cancelled { ErrorKind::Cancelled } else { ErrorKind::Internal };
    Err(job.error.map_or_else(
        || {
            Failure::new(
                kind,
                format!("{} ({} of {}) was {}", job.id, job.kind, job.object, job.state.word()),
                format!("see: offshoot job show {}", job.id),
            )
        },
        Failure::from,
    ))
}
