//! The scrub: a job that reads and verifies everything in the pool, and outlives the engine.
//!
//! Its progress is stored every few seconds; the next engine repeats what was read since. Only the last
//! scrub is kept.

use crate::core::job_kind::JobKind;
use crate::parts::{Context, Parts};
use crate::space::damage::{self, DamagedBlock};
use jiff::Timestamp;
use offshoot_catalog::{Job, JobState, Subject};
use offshoot_dataset::ScrubState;
use offshoot_types::{ErrorKind, Failure, JobId};
use offshoot_workflow::{Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// The setting with the last scrub.
const SETTING: &str = "pool.scrub";
/// Bytes a second where nobody says.
const BYTES_PER_S: u64 = 64 << 20;
/// How often a scrub's progress is stored.
const SAVE_EVERY: Duration = Duration::from_secs(1);

#[derive(Serialize, Deserialize)]
struct Input {
    bytes_per_s: u64,
}

/// A scrub as it is stored.
#[derive(Serialize, Deserialize)]
struct Record {
    job: JobId,
    bytes_per_s: u64,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    /// Segment and byte it is at, and the last segment.
    place: (u32, u32, u32),
    blocks: u64,
    bytes: u64,
    total: u64,
    damaged: u64,
    healed: u64,
    finished: bool,
}

impl Record {
    fn new(job: &Job) -> Result<Record, Failure> {
        let input = serde_json::from_value(job.input.clone());
        let Input { bytes_per_s } =
            input.map_err(|error| Failure::internal(format!("{}: {error}", job.id)))?;
        Ok(Record {
            job: job.id,
            bytes_per_s,
            started_at: job.started_at,
            ended_at: None,
            place: (0, 0, 0),
            blocks: 0,
            bytes: 0,
            total: 0,
            damaged: 0,
            healed: 0,
            finished: false,
        })
    }

    fn state(&self) -> ScrubState {
        ScrubState {
            segment: self.place.0,
            offset: self.place.1,
            until: self.place.2,
            blocks: self.blocks,
            bytes: self.bytes,
            total: self.total,
            damaged: self.damaged,
            healed: self.healed,
            finished: self.finished,
        }
    }

    fn take(&mut self, state: &ScrubState) {
        self.place = (state.segment, state.offset, state.until);
        (self.blocks, self.bytes, self.total) = (state.blocks, state.bytes, state.total);
        (self.damaged, self.healed) = (state.damaged, state.healed);
        self.finished = state.finished;
    }
}

/// A scrub as it stands.
#[derive(Debug, Clone)]
pub struct ScrubView {
    /// The job that does it.
    pub job: JobId,
    /// Where that stands.
    pub state: JobState,
    /// The rate it keeps to.
    pub bytes_per_s: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What was read, roughly as of now.
    pub progress: ScrubState,
}

/// The last scrub, and the known damage.
#[derive(Debug, Clone)]
pub struct ScrubReport {
    /// None if there was none.
    pub scrub: Option<ScrubView>,
    /// Damaged blocks.
    pub damage: Vec<DamagedBlock>,
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::PoolScrub).step("verify", verify, end).goes_on()
}

/// Starts the job.
///
/// # Errors
/// `InvalidInput` for the rate; `Busy` if one is running.
pub fn submit(parts: &Arc<Parts>, bytes_per_s: Option<u64>) -> Result<JobId, Failure> {
    let bytes_per_s = bytes_per_s.unwrap_or(BYTES_PER_S);
    if bytes_per_s == 0 {
        let message = "a scrub of 0 bytes a second does not end";
        return Err(Failure::new(ErrorKind::InvalidInput, message, "give a rate, as in 64MiB"));
    }
    parts.submit(
        Submission::new(JobKind::PoolScrub, Subject::Pool, &Input { bytes_per_s })
            .exclusive(JobKind::PoolScrub.as_str()),
    )
}

/// The last scrub.
///
/// # Errors
/// The catalog's.
pub fn last(parts: &Parts) -> Result<Option<ScrubView>, Failure> {
    let written: Option<Record> = parts.catalog.setting(SETTING)?;
    // A newly submitted scrub stores nothing before it begins.
    let submitted = parts.catalog.unsettled_jobs()?.into_iter().rfind(|job| {
        let newer = written.as_ref().is_none_or(|record| record.job < job.id);
        JobKind::PoolScrub.is_of(job) && !job.state.is_final() && newer
    });
    let submitted = submitted.as_ref().map(Record::new).transpose()?;
    let Some(record) = submitted.or(written) else { return Ok(None) };
    let mut progress = record.state();
    let state = match parts.runner()?.job(record.job) {
        Ok(job) => {
            if !job.state.is_final() && job.progress.total > 0 {
                (progress.bytes, progress.total) = (job.progress.done, job.progress.total);
            }
            job.state
        }
        Err(_) if record.finished => JobState::Done,
        Err(_) => JobState::Cancelled,
    };
    Ok(Some(ScrubView {
        job: record.job,
        state,
        bytes_per_s: record.bytes_per_s,
        started_at: record.started_at,
        ended_at: record.ended_at,
        progress,
    }))
}

/// The last scrub, and the known damage.
///
/// # Errors
/// The catalog's.
pub fn report(parts: &Parts) -> Result<ScrubReport, Failure> {
    damage::report(parts);
    Ok(ScrubReport { scrub: last(parts)?, damage: parts.damage.blocks() })
}

/// The record of a job, if it is the last scrub.
fn record_of(context: &Context) -> Result<Option<Record>, Failure> {
    let last: Option<Record> = context.app().catalog.setting(SETTING)?;
    Ok(last.filter(|record| record.job == context.job_id()))
}

fn save(parts: &Parts, record: &Record) -> Result<(), Failure> {
    Ok(parts.catalog.set_setting(SETTING, record)?)
}

fn verify(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let mut record = match record_of(context)? {
        Some(record) => record,
        None => Record::new(&parts.runner()?.job(context.job_id())?)?,
    };
    let bytes_per_s = record.bytes_per_s;
    save(parts, &record)?;
    // The thread is the job's own and ends with it.
    offshoot_os::lower_thread_priority();
    let from = record.state();
    if from.bytes > 0 {
        tracing::info!(job = %record.job, bytes = from.bytes, "the scrub goes on");
    }
    let mut saved_at = parts.clock.elapsed();
    let mut tell = |state: &ScrubState| {
        context.progress(state.bytes, state.total, "bytes");
        let now = parts.clock.elapsed();
        if now >= saved_at + SAVE_EVERY {
            saved_at = now;
            record.take(state);
            if let Err(failure) = save(parts, &record) {
                tracing::warn!(%failure, "how far the scrub is could not be written down");
            }
        }
        if context.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let state = parts.store.pool().scrub(from, bytes_per_s, &mut tell).map_err(|error| {
        let message = format!("scrubbing: {error}");
        Failure::new(ErrorKind::DataDamaged, message, "see: offshoot status")
    })?;
    record.take(&state);
    save(parts, &record)?;
    context.check_cancelled()?;
    context.progress(state.bytes, state.total, "bytes");
    damage::look_up_holders(parts)?;
    record.ended_at = Some(parts.now());
    save(parts, &record)
}

/// Undo: a cancelled scrub has also ended.
fn end(context: &Context) -> Result<(), Failure> {
    let Some(mut record) = record_of(context)? else { return Ok(()) };
    record.ended_at = Some(context.app().now());
    save(context.app(), &record)
}
