//! What jobs are doing.

use serde::{Deserialize, Serialize};

/// What a job is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Its steps run one after the other.
    Running,
    /// A step failed or the job was cancelled: what was done is being undone.
    Undoing,
    /// Everything is done.
    Done,
    /// It failed, see its error.
    Failed,
    /// It was cancelled and undone.
    Cancelled,
}

impl JobState {
    /// The state as users and scripts see it.
    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Running => "running",
            JobState::Undoing => "undoing",
            JobState::Done => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }

    /// Whether the job has come to an end.
    pub fn is_final(self) -> bool {
        !matches!(self, JobState::Running | JobState::Undoing)
    }
}
