//! Jobs: long work that continues without the client that asked for it.

use crate::ErrorDetail;
use jiff::Timestamp;
use offshoot_types::JobId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Not begun.
    Queued,
    /// At work.
    Running,
    /// It failed or was cancelled and undoes what it did.
    Undoing,
    /// Done as asked.
    Done,
    /// Failed and undone; `error` says why.
    Failed,
    /// Cancelled and undone.
    Cancelled,
}

impl JobState {
    /// Whether nothing more will happen.
    pub fn is_final(self) -> bool {
        matches!(self, JobState::Done | JobState::Failed | JobState::Cancelled)
    }

    /// The word the API uses.
    pub fn word(self) -> &'static str {
        match self {
            JobState::Queued => "queued",
            JobState::Running => "running",
            JobState::Undoing => "undoing",
            JobState::Done => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }
}

/// The state of a step of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not begun.
    Pending,
    /// At work.
    Running,
    /// Done.
    Done,
    /// Failed.
    Failed,
    /// Taken back.
    Undone,
}

/// One step of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobStep {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub state: StepState,
    /// When it was begun.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
}

/// How much of a job is done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct JobProgress {
    /// So much is done.
    pub done: u64,
    /// The total; null while unknown.
    #[schema(required)]
    pub total: Option<u64>,
    /// What is counted: `bytes`, `steps`, ….
    #[schema(example = "bytes")]
    pub unit: String,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its id.
    #[schema(value_type = String, example = "job-12")]
    pub id: JobId,
    /// What it does.
    #[schema(example = "vdb_provision")]
    pub kind: String,
    /// The name of the object it works on.
    pub object: String,
    /// Where it stands.
    pub state: JobState,
    /// How much is done.
    pub progress: JobProgress,
    /// When it was begun.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
    /// Its steps in order.
    pub steps: Vec<JobStep>,
    /// Why it failed.
    #[schema(required)]
    pub error: Option<ErrorDetail>,
    /// What who asked for it should know although nothing failed.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The id of what it made, if that has no name: a snapshot's.
    #[schema(required)]
    pub result: Option<String>,
}

/// Jobs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// Newest first.
    pub jobs: Vec<Job>,
}

/// The answer to a request for long work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobAccepted {
    /// The job that does it.
    #[schema(value_type = String, example = "job-12")]
    pub job: JobId,
}
