//! The engine's synchronised copy of one source database.

use crate::{ObjectName, Policy, Position};
use jiff::Timestamp;
use offshoot_types::{DatasetId, DsourceId, Failure, TimeflowId};
use serde::{Deserialize, Serialize};

/// What a dSource is doing.
///
/// ```text
/// linking ──link done──▶ active ◀──resume/pause──▶ paused
///                          │ gap, source refused        (any) ──unlink──▶ unlinking ──▶ gone
///                          └──▶ failed ──sync──▶ active
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DsourceState {
    /// A SnapSync runs: the first, or one that begins anew after a gap.
    Linking,
    /// LogSync runs (or tries to: connection trouble is a fault, not a state).
    Active,
    /// LogSync is stopped because the user asked for it.
    Paused,
    /// LogSync cannot go on by itself; [`Dsource::problem`] says why.
    Failed,
    /// Being removed.
    Unlinking,
}

impl DsourceState {
    /// The state as users and scripts see it.
    pub fn as_str(self) -> &'static str {
        match self {
            DsourceState::Linking => "linking",
            DsourceState::Active => "active",
            DsourceState::Paused => "paused",
            DsourceState::Failed => "failed",
            DsourceState::Unlinking => "unlinking",
        }
    }
}

/// The engine's synchronised copy of one source database (cluster).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dsource {
    /// The id.
    pub id: DsourceId,
    /// Unique among dSources and VDBs.
    pub name: ObjectName,
    /// What it is doing.
    pub state: DsourceState,
    /// Why it is [`DsourceState::Failed`].
    #[serde(default)]
    pub problem: Option<Failure>,
    /// The kind of database, e.g. `postgres`.
    pub connector: String,
    /// The URI of the source, without a password (that is a secret of the catalog).
    pub source: String,
    /// The source's version, e.g. `15.14`.
    pub server_version: String,
    /// The source's identity, so that another database under the same address is noticed. 0 until
    /// it is known.
    #[serde(default)]
    pub system_identifier: u64,
    /// The source's PostgreSQL timeline that is followed.
    #[serde(default)]
    pub timeline: u32,
    /// The size of the source's WAL files, in bytes; 0 until it was read.
    #[serde(default)]
    pub wal_segment_bytes: u64,
    /// The replication slot on the source.
    #[serde(default)]
    pub slot: Option<String>,
    /// When it was linked.
    pub created_at: Timestamp,
    /// How it is kept.
    #[serde(default, alias = "settings")]
    pub policy: Policy,
    /// The dataset of the received log.
    #[serde(default)]
    pub log_dataset: Option<DatasetId>,
    /// The dataset of the staging standby.
    #[serde(default)]
    pub staging_dataset: Option<DatasetId>,
    /// The current timeflow.
    #[serde(default)]
    pub timeflow: Option<TimeflowId>,
    /// Up to where everything the source had flushed was received, as last recorded.
    #[serde(default)]
    pub synced_to: Option<Position>,
}

impl Dsource {
    /// The major version of the source, e.g. 15; none where the version text is not understood.
    pub fn major_version(&self) -> Option<u32> {
        self.server_version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }
}
