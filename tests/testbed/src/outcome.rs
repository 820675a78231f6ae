//! Jobs as the command line shows them.

use crate::testbed::wait_until;
use anyhow::{Context, Result};
use offshoot_api::{Job, JobList, JobState};
use offshoot_rig::Engine;
use std::time::Duration;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was asked.
    Done,
    /// It failed or was cancelled, and everything was undone.
    Undone,
}

/// One step of a kind of job, as `OFFSHOOT_CRASH_AT` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The kind of job.
    pub kind: String,
    /// The step's name.
    pub name: String,
}

impl Step {
    /// The value of `OFFSHOOT_CRASH_AT`.
    pub fn crash_point(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// The newest job of a kind on an object, once it has ended.
///
/// # Errors
/// When there is none or it does not end in time.
pub fn final_job(
    engine: &Engine,
    kind: &str,
    object: &str,
    limit: Duration,
) -> Result<(Job, Outcome)> {
    let mut found = None;
    wait_until("the job ends", limit, || {
        let newest = newest(engine, |job| job.kind == kind && job.object == object)?;
        let ended = newest.state.is_final();
        found = Some(newest);
        Ok(ended)
    })?;
    let job = found.context("there is no job")?;
    let outcome = if job.state == JobState::Done { Outcome::Done } else { Outcome::Undone };
    Ok((job, outcome))
}

fn newest(engine: &Engine, wanted: impl Fn(&Job) -> bool) -> Result<Job> {
    let list: JobList = engine.ask(["job", "list"])?;
    list.jobs.into_iter().find(wanted).context("there is no such job")
}

/// The steps of the newest job on an object, named as crash points.
///
/// # Errors
/// When there is no such job.
pub fn steps_of(engine: &Engine, object: &str) -> Result<Vec<Step>> {
    let job = newest(engine, |job| job.object == object)?;
    let steps = job.steps.iter();
    Ok(steps.map(|step| Step { kind: job.kind.clone(), name: step.name.clone() }).collect())
}
