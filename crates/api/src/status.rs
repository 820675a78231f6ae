//! The engine at a glance.

use crate::{CacheStatus, PoolStatus};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something wrong that nobody asked about: it stays here until it is mended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// When it was first seen.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// The name of the object, or `pool`, or `engine`.
    pub object: String,
    /// What is wrong and why.
    pub message: String,
    /// What mends it.
    pub hint: String,
}

/// The engine at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The engine's version.
    pub engine_version: String,
    /// Its process id.
    pub pid: u32,
    /// The pool directory on the engine's host.
    pub pool: String,
    /// The address it answers on.
    #[schema(example = "127.0.0.1:7640")]
    pub listen: String,
    /// When it was started.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// How many dSources there are.
    pub dsources: u64,
    /// How many VDBs there are.
    pub vdbs: u64,
    /// How many of them are running.
    pub vdbs_running: u64,
    /// How many jobs are queued or at work.
    pub jobs_active: u64,
    /// What the pool holds.
    pub pool_status: PoolStatus,
    /// The shared block cache, the same as `pool_status.cache`.
    pub cache: CacheStatus,
    /// What is wrong at present.
    pub faults: Vec<Fault>,
}
