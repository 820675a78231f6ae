//! Virtual databases.

use crate::{
    Care, Exposure, Gateway, Hook, HookEvent, HookFailure, Kept, ObjectName, Parent, Policy,
};
use jiff::Timestamp;
use offshoot_types::{
    DatasetId, Failure, LogPosition, Remote, SnapshotId, TimeflowId, UserId, VdbId,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a VDB is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VdbState {
    /// A job is making, refreshing, rewinding or deleting it.
    Provisioning,
    /// Accepts connections.
    Running,
    /// The user stopped it.
    Stopped,
    /// It should run but does not; [`Vdb::problem`] says why.
    Failed,
}

impl VdbState {
    /// The state as users and scripts see it.
    pub fn as_str(self) -> &'static str {
        match self {
            VdbState::Provisioning => "provisioning",
            VdbState::Running => "running",
            VdbState::Stopped => "stopped",
            VdbState::Failed => "failed",
        }
    }
}

/// The moment a VDB was opened at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The snapshot it was made from.
    pub snapshot: SnapshotId,
    /// The position it was opened at.
    #[serde(alias = "lsn")]
    pub log: LogPosition,
    /// The database's time there.
    pub time: Timestamp,
}

/// How long the parts of a provision took, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timings {
    /// From the request to the first connection.
    pub total_ms: u64,
    /// The storage clone.
    pub clone_ms: u64,
    /// The mount.
    pub mount_ms: u64,
    /// Replay to the moment, and making the copy the VDB's own; 0 if a ready snapshot was opened.
    pub recover_ms: u64,
    /// Of that, the replay alone.
    pub replay_ms: u64,
    /// Bytes of log that were replayed.
    pub log_bytes: u64,
    /// Start of the server until it accepts connections.
    pub start_ms: u64,
}

/// What was done so that a copy cannot reach its source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TiesCut {
    /// What was cut, one line each, for people.
    pub cut: Vec<String>,
    /// What could not be looked at, and why.
    pub warnings: Vec<String>,
}

/// A writable virtual database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vdb {
    /// The id.
    pub id: VdbId,
    /// Unique among dSources and VDBs.
    pub name: ObjectName,
    /// What it is doing.
    pub state: VdbState,
    /// Why it is [`VdbState::Failed`].
    #[serde(default)]
    pub problem: Option<Failure>,
    /// The kind of database; empty in records of the first releases, which knew one.
    #[serde(default)]
    pub connector: String,
    /// Where it comes from.
    pub parent: Parent,
    /// The identity of the database that it was last opened from; empty where that is not known.
    #[serde(default)]
    pub source_identity: String,
    /// The moment it was opened at; none while it is first provisioned.
    #[serde(default)]
    pub moment: Option<Opened>,
    /// The TCP port on loopback; 0 until one was chosen.
    pub port: u16,
    /// What listens on that port in place of the server, and holds connections while it is away; none: nothing does.
    #[serde(default)]
    pub gateway: Option<Gateway>,
    /// It was stopped because nobody used it; see [`Vdb::is_asleep`].
    #[serde(default)]
    pub slept: bool,
    /// The role to connect as.
    pub user: String,
    /// The version of the database, e.g. `15.14`.
    pub server_version: String,
    /// What the user set, by the database's own names.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The memory it may use, in bytes; none: the engine's default.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Whether logins of the source's roles stay enabled.
    #[serde(default)]
    pub keep_source_logins: bool,
    /// Whether its user is a superuser of it; so are those of records of earlier releases.
    #[serde(default = "superuser_of_earlier_releases")]
    pub superuser: bool,
    /// Whether the source's foreign servers stay, with the passwords for them.
    #[serde(default)]
    pub keep_foreign_servers: bool,
    /// What of its source is not in it; nothing for those of earlier releases.
    #[serde(default)]
    pub ties: TiesCut,
    /// How other hosts reach it; none: not at all.
    #[serde(default)]
    pub exposure: Option<Exposure>,
    /// The ports of other hosts that it may connect to.
    #[serde(default)]
    pub reaches: Vec<Remote>,
    /// What other hosts know it by, in PEM; empty before it listened to them first.
    #[serde(default)]
    pub certificate: String,
    /// Whose it is; none: the administrators', as all of earlier releases and those of users that were removed.
    #[serde(default)]
    pub owner: Option<UserId>,
    /// Made before anybody asked for it, and not handed out yet.
    #[serde(default)]
    pub warm: bool,
    /// What its users say about it.
    #[serde(default)]
    pub care: Care,
    /// What runs in it when something has been done to it.
    #[serde(default)]
    pub hooks: BTreeMap<HookEvent, Hook>,
    /// The hook that last failed, until another state is opened or that hook is replaced.
    #[serde(default)]
    pub hook_failure: Option<HookFailure>,
    /// What a refresh keeps of it.
    #[serde(default)]
    pub refresh_keeps: BTreeSet<Kept>,
    /// How it is kept.
    #[serde(default = "Policy::of_vdb")]
    pub policy: Policy,
    /// The dataset of its data directory.
    #[serde(default)]
    pub dataset: Option<DatasetId>,
    /// The current timeflow.
    #[serde(default)]
    pub timeflow: Option<TimeflowId>,
    /// When it was provisioned.
    pub created_at: Timestamp,
    /// How long its last provision, refresh or rewind took.
    #[serde(default)]
    pub timings: Timings,
}

impl Vdb {
    /// The port that its server listens on.
    pub fn server_port(&self) -> u16 {
        self.gateway.as_ref().map_or(self.port, |gateway| gateway.server_port)
    }

    /// Whether it is started by whoever connects.
    pub fn is_asleep(&self) -> bool {
        self.state == VdbState::Stopped && self.slept && self.gateway.is_some()
    }
}

fn superuser_of_earlier_releases() -> bool {
    true
}
