//! What changed, as it changes: events of the stream at `/api/v1/events`.

use crate::{Job, Status};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An event of the stream. Its name there is the one of `kind`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StreamEvent {
    /// The engine at a glance: at the beginning, and when something of it changed.
    Status {
        /// The engine.
        status: Box<Status>,
    },
    /// A job began, came further or ended.
    Job {
        /// The job.
        job: Box<Job>,
    },
}
