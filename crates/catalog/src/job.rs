//! Jobs: the durable progress of workflows.

use crate::job_state::JobState;
use crate::{Catalog, Error, Happening, Subject, Transaction};
use jiff::Timestamp;
use offshoot_types::{Failure, JobId};
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many settled jobs are kept.
const JOBS_KEPT: i64 = 1000;
/// How many of them may be the engine's own: a start with many VDBs must not push out what users did.
const ENGINE_JOBS_KEPT: i64 = 200;

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not begun, or undone.
    Pending,
    /// Begun; any part of its work may be done.
    Running,
    /// Done.
    Done,
    /// It failed; what it did is not yet undone.
    Failed,
    /// Undone.
    Undone,
}

/// One step of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub state: StepState,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it was done, or undone.
    pub ended_at: Option<Timestamp>,
}

/// How far a job is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Done so far, in `unit`.
    pub done: u64,
    /// To do in all; 0 if unknown.
    pub total: u64,
    /// What is counted, e.g. `bytes`.
    pub unit: String,
}

/// One run of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The id.
    pub id: JobId,
    /// The workflow, e.g. `vdb.provision`.
    pub kind: String,
    /// What it works on.
    pub object: Subject,
    /// The engine began it on its own, and users need not know of it.
    #[serde(default)]
    pub of_engine: bool,
    /// What it is doing.
    pub state: JobState,
    /// Nothing is left to do or undo. A failed job whose undo failed too is not settled; the next
    /// start tries again.
    pub settled: bool,
    /// Whether it was asked to stop.
    pub cancel_requested: bool,
    /// How far it is.
    pub progress: Progress,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its steps, in order.
    pub steps: Vec<StepRecord>,
    /// What it was asked to do. Never holds a password.
    pub input: Value,
    /// What its steps store for each other and for their undo. Never holds a password.
    pub bag: Map<String, Value>,
    /// The keys it locks, in the workflow crate's format.
    pub locks: Vec<String>,
    /// Why it failed or is being undone.
    pub error: Option<Failure>,
    /// What who asked for it should know although nothing failed, in the order it was found.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Catalog {
    /// Keeps a new job; `build` gets its id.
    pub fn add_job(&self, build: impl FnOnce(JobId) -> Job) -> Result<Job, Error> {
        self.transaction(|tx| {
            let job = build(JobId(tx.next_number("job")?));
            tx.sql().execute(
                "INSERT INTO job VALUES (?1, ?2, seal('job', ?3))",
                params![job.id.0, job.settled, encode(&job)?],
            )?;
            Ok(job)
        })
    }

    /// Keeps the new state of a job. Its end is an event, unless the engine began it on its own. When it is settled, the
    /// oldest settled jobs beyond 1,000 are removed.
    ///
    /// If this is not saved, a job that has ended would seem to run for ever.
    pub fn save_job(&self, job: &Job) -> Result<(), Error> {
        self.insistent_transaction(|tx| {
            if job.state.is_final() && !job.of_engine {
                tx.add_end_of(job)?;
            }
            let sql = "UPDATE job SET settled = ?2, body = seal('job', ?3) WHERE id = ?1";
            if tx.sql().execute(sql, params![job.id.0, job.settled, encode(job)?])? == 0 {
                return Err(Error::NotFound(job.id.to_string()));
            }
            if job.settled {
                let sql = "DELETE FROM job WHERE settled AND id <= \
                    (SELECT id FROM job WHERE settled ORDER BY id DESC LIMIT 1 OFFSET ?1)";
                tx.sql().execute(sql, [JOBS_KEPT])?;
            }
            if job.settled && job.of_engine {
                let sql = "DELETE FROM job WHERE settled AND unseal('job', body) ->> 'of_engine' AND id <= \
                    (SELECT id FROM job WHERE settled AND unseal('job', body) ->> 'of_engine' \
                    ORDER BY id DESC LIMIT 1 OFFSET ?1)";
                tx.sql().execute(sql, [ENGINE_JOBS_KEPT])?;
            }
            Ok(())
        })
    }

    /// A job.
    pub fn job(&self, id: JobId) -> Result<Job, Error> {
        let found = self.transaction(|tx| {
            let sql = "SELECT unseal('job', body) FROM job WHERE id = ?1";
            Ok(tx.sql().query_row(sql, [id.0], |row| row.get::<_, String>(0)).optional()?)
        })?;
        decode(&found.ok_or_else(|| Error::NotFound(id.to_string()))?)
    }

    /// The last `limit` jobs, newest first.
    pub fn jobs(&self, limit: u32) -> Result<Vec<Job>, Error> {
        self.select_jobs("SELECT unseal('job', body) FROM job ORDER BY id DESC LIMIT ?1", limit)
    }

    /// Jobs with something left to do or undo, oldest first.
    pub fn unsettled_jobs(&self) -> Result<Vec<Job>, Error> {
        self.select_jobs(
            "SELECT unseal('job', body) FROM job WHERE NOT settled ORDER BY id LIMIT ?1",
            u32::MAX,
        )
    }

    fn select_jobs(&self, sql: &str, limit: u32) -> Result<Vec<Job>, Error> {
        self.transaction(|tx| {
            let mut query = tx.sql().prepare(sql)?;
            let mut rows = query.query([limit])?;
            let mut jobs = Vec::new();
            while let Some(row) = rows.next()? {
                jobs.push(decode(&row.get::<_, String>(0)?)?);
            }
            Ok(jobs)
        })
    }
}

impl Transaction<'_> {
    /// Records that a job has come to an end, once.
    fn add_end_of(&self, job: &Job) -> Result<(), Error> {
        let sql = "SELECT unseal('job', body) ->> 'state' FROM job WHERE id = ?1";
        let before: Option<String> =
            self.sql().query_row(sql, [job.id.0], |row| row.get(0)).optional()?;
        if before.as_deref() == Some(job.state.as_str()) {
            return Ok(());
        }
        let became = match job.state {
            JobState::Cancelled => "was cancelled",
            JobState::Failed => "failed",
            _ => "is done",
        };
        let object = job.object.to_string();
        let what = Happening::JobEnded {
            job: job.id,
            kind: job.kind.clone(),
            state: job.state,
            started_at: job.started_at,
            code: job.error.as_ref().map(|error| error.code),
        };
        let time = job.ended_at.unwrap_or(job.started_at);
        self.add_event(time, &object, &format!("{} of '{object}' {became}", job.kind), &what)
    }
}

fn encode(job: &Job) -> Result<String, Error> {
    serde_json::to_string(job).map_err(|error| Error::Unusable(format!("{}: {error}", job.id)))
}

fn decode(body: &str) -> Result<Job, Error> {
    serde_json::from_str(body).map_err(|error| Error::Damaged(format!("a job: {error}")))
}

#[cfg(test)]
mod tests;
