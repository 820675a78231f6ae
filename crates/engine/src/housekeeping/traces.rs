//! Sends jobs that have ended to a collector of traces, where the engine was told of one.
//!
//! Traces are for whoever looks at how long things take: they begin with the engine, are sent a second or so after a job has
//! ended, and those that a collector does not take for some time are given up. Events tell which jobs have ended, so jobs
//! that the engine began on its own are none.

use crate::core::traces;
use crate::core::{peers, webhooks};
use crate::ground::poster::Posting;
use crate::ground::stopping::Stopping;
use crate::parts::Parts;
use offshoot_catalog::{Happening, Job};
use offshoot_types::{Failure, JobId};
use std::time::Duration;

/// Pause between two looks for jobs that have ended.
const ROUND: Duration = Duration::from_secs(1);
/// Pause after a collector did not take something.
const REFUSED: Duration = Duration::from_secs(10);
/// How often something is sent before it is given up.
const ATTEMPTS: u32 = 30;
/// Events that are looked at in one go.
const BATCH: u32 = 200;

/// Runs until told to stop.
pub fn run(parts: &Parts, collector: &str, stopping: &Stopping) {
    let mut course = Course { position: None, unsent: None, away: false };
    while !stopping.is_told() {
        let pause = match course.round(parts, collector) {
            Ok(true) => ROUND,
            Ok(false) => REFUSED,
            Err(failure) => {
                tracing::warn!(%failure, "sending traces");
                REFUSED
            }
        };
        stopping.rest(pause);
    }
}

struct Course {
    /// The last event that was looked at.
    position: Option<u64>,
    /// What waits to be taken, and how often it was sent.
    unsent: Option<(Vec<u8>, u32)>,
    /// Nothing was taken the last time: it is said once.
    away: bool,
}

impl Course {
    /// Whether all that there is was taken.
    fn round(&mut self, parts: &Parts, collector: &str) -> Result<bool, Failure> {
        let Some(position) = self.position else {
            self.position = Some(parts.catalog.transaction(|tx| tx.last_event())?);
            return Ok(true);
        };
        if self.unsent.is_none() {
            let (jobs, position) = ended_after(parts, position)?;
            self.position = Some(position);
            if jobs.is_empty() {
                return Ok(true);
            }
            self.unsent = Some((traces::encode(&peers::own_engine(parts), &jobs), 0));
        }
        Ok(self.send(parts, collector))
    }

    fn send(&mut self, parts: &Parts, collector: &str) -> bool {
        let Some((body, attempts)) = self.unsent.take() else { return true };
        let (url, headers) = (collector.to_owned(), Vec::new());
        let posting = Posting { url, headers, body };
        match webhooks::post(&*parts.poster, &posting) {
            Ok(_) => {
                self.away = false;
                true
            }
            Err((_, why)) => {
                if !std::mem::replace(&mut self.away, true) {
                    tracing::warn!(why, "the collector of traces takes none");
                }
                self.unsent = (attempts + 1 < ATTEMPTS).then_some((posting.body, attempts + 1));
                false
            }
        }
    }
}

/// The jobs that ended in the next events, and up to which event that is.
fn ended_after(parts: &Parts, position: u64) -> Result<(Vec<Job>, u64), Failure> {
    let events = parts.catalog.events_after(position, BATCH)?;
    let last = events.last().map_or(position, |event| event.id);
    let ended = events.iter().filter_map(|event| match &event.what {
        Happening::JobEnded { job, .. } => Some(*job),
        _ => None,
    });
    let jobs = ended.filter_map(|id: JobId| parts.catalog.job(id).ok());
    Ok((jobs.collect(), last))
}
