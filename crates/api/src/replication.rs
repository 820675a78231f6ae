//! Profiles: what is sent to other engines, and when.

use crate::ErrorDetail;
use jiff::Timestamp;
use offshoot_types::{JobId, ProfileId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How a profile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplicationState {
    /// It runs now.
    Running,
    /// It does not run by itself.
    Paused,
    /// The last run failed.
    Failed,
    /// It waits for its time, or for somebody to run it.
    Waiting,
}

/// A profile. What a run did is of the last one that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Replication {
    /// Its id.
    #[schema(value_type = String, example = "profile-1")]
    pub id: ProfileId,
    /// Its name.
    pub name: String,
    /// The peer that it sends to.
    pub peer: String,
    /// The dSources and VDBs that are sent; null: all of this engine's own.
    #[schema(required)]
    pub include: Option<Vec<String>>,
    /// Whether copies of other engines' are sent on besides, but to none that they have passed.
    pub replicas: bool,
    /// Whether only what is masked may be sent.
    pub masked_only: bool,
    /// Whether the passwords of what is sent go with it.
    pub with_secrets: bool,
    /// How many objects are sent at the same time, each by a connection of its own.
    pub connections: u8,
    /// How often it runs by itself; null: it does not.
    #[schema(required)]
    pub every_ms: Option<u64>,
    /// At which times it runs by itself, as crontab(5) writes them; null: at none.
    #[schema(required)]
    pub crontab: Option<String>,
    /// Whether it always runs, and sends what is new as it comes.
    pub continuous: bool,
    /// How far behind the peer may be before that is a fault; null: it never is.
    #[schema(required)]
    pub rpo_ms: Option<u64>,
    /// Bytes a second that it may take; null: as many as it can.
    #[schema(required)]
    pub bytes_per_second_max: Option<u64>,
    /// How it is.
    pub state: ReplicationState,
    /// The job that runs it now.
    #[schema(required, value_type = Option<String>, example = "job-12")]
    pub job: Option<JobId>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it runs next by itself.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub next_run_at: Option<Timestamp>,
    /// When a run last ended that did all of it.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub last_success_at: Option<Timestamp>,
    /// Bytes of the sources' log that the peer lacks.
    pub lag_bytes: u64,
    /// How long ago the state is that the peer has all of; null: it never had.
    #[schema(required)]
    pub lag_ms: Option<u64>,
    /// Bytes that went to the peer.
    pub sent_bytes: u64,
    /// Bytes of blocks that the peer lacked, as they are stored.
    pub changed_unique_bytes: u64,
    /// Bytes of content that were offered and that the peer had, each state counted for itself.
    pub saved_bytes: u64,
    /// Bytes that went to the peer, a second.
    pub bytes_per_second: u64,
    /// Whether it went on with one that was cut.
    pub resumed: bool,
    /// Why the last run failed.
    #[schema(required)]
    pub error: Option<ErrorDetail>,
}

/// All profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReplicationList {
    /// By name.
    pub replications: Vec<Replication>,
}

/// Makes a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateReplication {
    /// The name to give it: 1–63 of `a-z 0-9 _ -`, starting with a letter.
    pub name: String,
    /// The name of the peer.
    pub to: String,
    /// The dSources and VDBs that are sent: `NAME`, `dsource:NAME`, `vdb:NAME`; all of this engine's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<String>>,
    /// Whether copies of other engines' are sent on besides, but to none that they have passed.
    #[serde(default)]
    pub replicas: bool,
    /// Whether only what is masked may be sent.
    #[serde(default)]
    pub masked_only: bool,
    /// Whether the passwords go with it: of a dSource the one for its source, of a VDB its own. A failover uses them.
    #[serde(default)]
    pub with_secrets: bool,
    /// How many objects are sent at the same time, 1 to 8, each by a connection of its own; 2 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 8)]
    pub connections: Option<u8>,
    /// How often it runs by itself; when it is told to where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// At which times it runs by itself, as crontab(5) writes them: minute, hour, day of the month, month, day of the week, and a time zone
    /// if it is not UTC. Not with `every_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "30 2 * * *")]
    pub crontab: Option<String>,
    /// Whether it always runs, and sends what is new as it comes. Not with `every_ms` or `crontab`.
    #[serde(default)]
    pub continuous: bool,
    /// How far behind the peer may be before that is a fault, at least 10,000; it never is where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpo_ms: Option<u64>,
    /// Bytes a second that it may take; as many as it can where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second_max: Option<u64>,
}

/// Makes the copies of another engine's dSources this engine's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailOver {
    /// The namespace that they are in: the name of the peer, or what archives were imported as.
    #[schema(example = "west")]
    pub name: String,
    /// Whether the other engine is to stop first, and to send the last of what it has. It is asked when it calls next.
    #[serde(default)]
    pub planned: bool,
    /// Whether to do it although the other engine seems to live.
    #[serde(default)]
    pub force: bool,
    /// Names that dSources and VDBs get instead of those that they have there: the name there, and the name here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReplicationRun {
    /// The job.
    #[schema(value_type = String, example = "job-12")]
    pub job: JobId,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it ended.
    #[schema(value_type = String, format = DateTime)]
    pub ended_at: Timestamp,
    /// Objects that were sent, or were there already.
    pub objects: u64,
    /// Bytes that went to the peer.
    pub sent_bytes: u64,
    /// Bytes of blocks that the peer lacked, as they are stored.
    pub changed_unique_bytes: u64,
    /// Bytes of content that were offered and that the peer had, each state counted for itself.
    pub saved_bytes: u64,
    /// Bytes that went to the peer, a second.
    pub bytes_per_second: u64,
    /// Whether it went on with one that was cut.
    pub resumed: bool,
    /// Why it failed.
    #[schema(required)]
    pub error: Option<ErrorDetail>,
}

/// The runs of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReplicationHistory {
    /// Newest first; the last fifty.
    pub runs: Vec<ReplicationRun>,
}
