//! The engine at a glance.

use crate::{CacheStatus, PoolStatus, Scrub};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A problem; it stays here until it is fixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// When it was first seen.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// The name of the object, or `pool`, or `engine`.
    pub object: String,
    /// What is wrong and why.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

/// Something that is not wrong, but should be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Warning {
    /// The name of the object, or `engine`.
    pub object: String,
    /// What it is.
    pub message: String,
    /// What can be done about it.
    pub hint: String,
}

/// Whether running VDBs outlive the engine's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Survival {
    /// They continue when it is killed or upgraded; their clients wait until then.
    Ready,
    /// The process that holds their mounts is not there: they end with the engine.
    NoKeeper,
    /// The kernel is older than 6.9: they end with the engine.
    OldKernel,
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
    /// The Unix socket it answers on, for clients of its host; empty if it has none.
    #[serde(default)]
    #[schema(example = "/data/pool/engine.socket", required)]
    pub socket: String,
    /// What clients pin of its certificate, where it answers by TLS.
    #[serde(default)]
    #[schema(required, example = "sha256:…")]
    pub tls_fingerprint: Option<String>,
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
    /// Whether running VDBs outlive the engine's process.
    pub survival: Survival,
    /// What the pool holds.
    pub pool_status: PoolStatus,
    /// The shared block cache, the same as `pool_status.cache`.
    pub cache: CacheStatus,
    /// The last or the running scrub; null if there was none.
    #[schema(required)]
    pub last_scrub: Option<Scrub>,
    /// What is wrong at present.
    pub faults: Vec<Fault>,
    /// What is not wrong, but should be known: of the engine, dSources and VDBs.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}
