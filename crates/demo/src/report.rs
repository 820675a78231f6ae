//! What a demonstration found, as `--json` prints it.

use serde::Serialize;

/// One step and how long it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepTime {
    /// What was done.
    pub name: String,
    /// The time on the clock, in milliseconds.
    pub ms: u64,
}

/// One fact that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What must hold.
    pub name: String,
    /// Whether it does.
    pub ok: bool,
    /// What was seen.
    pub seen: String,
}

/// A VDB that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MadeVdb {
    /// Its name.
    pub name: String,
    /// Opens it with psql, password included.
    pub uri: String,
    /// From the request to the first answered query, in milliseconds.
    pub provision_ms: u64,
}

/// What the pool and the cache hold at the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Space {
    /// What the pool's files take.
    pub pool_bytes: u64,
    /// What four physical copies of the source would take.
    pub four_copies_bytes: u64,
    /// Reads answered by the shared cache.
    pub cache_hits: u64,
    /// Reads it could not answer.
    pub cache_misses: u64,
}

/// How a second engine took over when the host of the first one was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Takeover {
    /// From a commit of production until it opened on the second engine, in milliseconds.
    pub lag_ms: u64,
    /// Commits that production had acknowledged when the host was lost, and that had not been sent.
    pub lacking: i64,
    /// From the loss until the VDB answered, in milliseconds.
    pub vdb_answers_ms: u64,
    /// From the loss until a commit that production made after it opened, in milliseconds.
    pub follows_ms: u64,
}

/// A whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// Whether every check held and nothing failed.
    pub ok: bool,
    /// What stopped it, where something did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Signs in to the console, once.
    pub console: String,
    /// The steps.
    pub steps: Vec<StepTime>,
    /// The checks.
    pub checks: Vec<Check>,
    /// The VDBs.
    pub vdbs: Vec<MadeVdb>,
    /// Space and cache.
    pub space: Space,
    /// How a second engine took over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takeover: Option<Takeover>,
}

impl Report {
    /// Whether every check held; a run without checks proves nothing.
    pub fn all_held(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.ok)
    }
}
