//! The engine's synchronised copy of one source database.

use crate::{ConnectorState, ObjectName, Pace, Policy, Position};
use jiff::Timestamp;
use offshoot_types::{DatasetId, DsourceId, Failure, TimeflowId};
use serde::{Deserialize, Serialize};

/// What a dSource is doing.
///
/// ```text
/// linking ──link done──▶ active ◀──resume/pause──▶ paused
///                          │ gap, source refused        (any) ──unlink──▶ unlinking ──▶ gone
///                          └──▶ failed ──sync──▶ active
/// replica ──failover──▶ failed ──set──▶ active
/// masked, replica ──unlink──▶ unlinking
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DsourceState {
    /// A SnapSync runs: the first, or one that starts again after a gap.
    Linking,
    /// LogSync runs (or tries to: connection trouble is a fault, not a state).
    Active,
    /// The user stopped LogSync.
    Paused,
    /// LogSync cannot continue; [`Dsource::problem`] says why.
    Failed,
    /// Its images are made by masking those of another dSource: it follows nothing.
    Masked,
    /// A copy of another engine's dSource, as it was when it came: it follows nothing.
    Replica,
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
            DsourceState::Masked => "masked",
            DsourceState::Replica => "replica",
            DsourceState::Unlinking => "unlinking",
        }
    }
}

/// The engine's synchronised copy of one source database (cluster).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
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
    /// The kind of database.
    pub connector: String,
    /// The URI of the source, without a password (that is a secret of the catalog).
    pub source: String,
    /// The source's version, e.g. `15.14`.
    pub server_version: String,
    /// The source's identity, which reveals a different database at the same address; empty until it is
    /// known.
    #[serde(default)]
    pub identity: String,
    /// What the connector remembers about the source.
    #[serde(default)]
    pub connector_state: ConnectorState,
    /// The reservation of log on the source.
    #[serde(default, alias = "slot")]
    pub reservation: Option<String>,
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
    /// The position up to which everything the source had flushed was received, as last recorded.
    #[serde(default)]
    pub synced_to: Option<Position>,
    /// What the last copy showed that users should know, though it works.
    #[serde(default)]
    pub warnings: Vec<Failure>,
    /// How fast its moments open, as learned from those that were.
    #[serde(default)]
    pub pace: Pace,
}

impl Dsource {
    /// How much log may lie between two images so that every moment opens in the promised time.
    pub fn spacing(&self) -> u64 {
        self.pace.spacing(self.policy.open_within_ms)
    }
}

impl Dsource {
    /// Whether it was taken over from another engine and was not told yet how its source is reached: it lacks all that
    /// following takes.
    pub fn awaits_way(&self) -> bool {
        self.state == DsourceState::Failed && self.staging_dataset.is_none()
    }

    /// Whether any commit can be opened, not only its images.
    pub fn keeps_log(&self) -> bool {
        match self.state {
            DsourceState::Masked => false,
            DsourceState::Replica => self.log_dataset.is_some(),
            _ => true,
        }
    }
}

impl Serialize for Dsource {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Dsource::serialize(self, serializer)
    }
}

/// Also reads records of the first releases, which had the facts of the only connector as separate fields.
impl<'de> Deserialize<'de> for Dsource {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut record = serde_json::Map::deserialize(deserializer)?;
        if !record.contains_key("connector_state")
            && let Some(identity) = record.get("system_identifier").cloned()
        {
            let facts = ["system_identifier", "timeline", "wal_segment_bytes"];
            let data: serde_json::Map<String, serde_json::Value> =
                facts.into_iter().filter_map(|fact| record.remove_entry(fact)).collect();
            let known = identity.as_u64() != Some(0);
            record.insert("identity".to_owned(), identity.to_string().into());
            let state = ConnectorState { version: u32::from(known), data: data.into() };
            let state = serde_json::to_value(state).map_err(serde::de::Error::custom)?;
            record.insert("connector_state".to_owned(), state);
        }
        Dsource::deserialize(serde_json::Value::Object(record)).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
