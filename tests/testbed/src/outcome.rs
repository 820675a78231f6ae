//! Jobs as the command line shows them.

use crate::wait_until;
use anyhow::{Context, Result};
use offshoot_api::{Job, JobState};
use offshoot_demo::Engine;
use std::time::Duration;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was asked.
    Done,
    /// It failed or was cancelled, and took everything back.
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

/// The newest job, once it has ended.
///
/// # Errors
/// When there is none or it does not end in time.
pub fn final_job(engine: &Engine, limit: Duration) -> Result<(Job, Outcome)> {
    let mut found = None;
    wait_until("the newest job ends", limit, || {
        let list: offshoot_api::JobList = engine.ask(["job", "list"])?;
        let newest = list.jobs.into_iter().next().context("there is no job")?;
        let ended = newest.state.is_final();
        found = Some(newest);
        Ok(ended)
    })?;
    let job = found.context("there is no job")?;
    let outcome = if job.state == JobState::Done { Outcome::Done } else { Outcome::Undone };
    Ok((job, outcome))
}

/// The steps of the newest job of the given kind of command, named as crash points.
///
/// # Errors
/// When there is no such job.
pub fn steps_of(engine: &Engine, object: &str) -> Result<Vec<Step>> {
    let list: offshoot_api::JobList = engine.ask(["job", "list"])?;
    let job = list.jobs.into_iter().find(|job| job.object == object);
    let job = job.with_context(|| format!("there is no job on {object}"))?;
    Ok(job
        .steps
        .iter()
        .map(|step| Step { kind: job.kind.clone(), name: step.name.clone() })
        .collect())
}
