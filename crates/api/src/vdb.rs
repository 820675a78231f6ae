//! VDBs: virtual databases.

use crate::policy::given;
use crate::{ErrorDetail, HookEvent, Moment, NewHook, ObjectKind, Position, VdbHook, Warning};
use ipnet::IpNet;
use jiff::Timestamp;
use offshoot_types::{Remote, SnapshotId, VdbId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use utoipa::ToSchema;

/// What a VDB is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VdbState {
    /// Being made, refreshed or rewound.
    Provisioning,
    /// Accepting connections.
    Running,
    /// Shut down; its data is kept.
    Stopped,
    /// It could not be made or started; `error` says why.
    Failed,
}

/// How long the parts of the last provision, refresh or rewind took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ProvisionTimings {
    /// From the request to the first answered query.
    pub total_ms: u64,
    /// The clone in the pool.
    pub clone_ms: u64,
    /// Making the files visible to the database.
    pub mount_ms: u64,
    /// Replaying log up to the moment and making the copy the VDB's own; 0 where a ready snapshot was opened.
    pub recover_ms: u64,
    /// Of `recover_ms`, the replay alone: from the start of the server that replays until it has replayed everything.
    #[serde(default)]
    #[schema(required)]
    pub replay_ms: u64,
    /// Bytes of log that were replayed.
    #[serde(default)]
    #[schema(required)]
    pub log_bytes: u64,
    /// Starting the database.
    pub start_ms: u64,
}

/// A VDB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Vdb {
    /// Its id.
    #[schema(value_type = String, example = "vdb-1")]
    pub id: VdbId,
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: VdbState,
    /// The name of the dSource or VDB it was provisioned from, also after that was deleted.
    pub parent: String,
    /// What the parent is.
    pub parent_kind: ObjectKind,
    /// The moment of the parent it was opened at.
    pub moment: Position,
    /// The host it listens on.
    pub host: String,
    /// The port it listens on.
    pub port: u16,
    /// The role to connect as.
    pub user: String,
    /// Opens it with psql as it stands. Has the password only where one VDB is shown to its owner or an administrator.
    pub uri: String,
    /// The user it belongs to; null: the administrators.
    #[serde(default)]
    #[schema(required)]
    pub owner: Option<String>,
    /// The server's version.
    pub server_version: String,
    /// What its files would take outside the pool.
    pub logical_bytes: u64,
    /// What the pool would not hold without it.
    pub unique_bytes: u64,
    /// Settings of the database given at provision.
    pub settings: BTreeMap<String, String>,
    /// What a refresh keeps of it beside its name, port and password.
    #[serde(default)]
    pub refresh_keeps: BTreeSet<Kept>,
    /// Whether its user is a superuser.
    pub superuser: bool,
    /// Whether the source's logins work on it, with their passwords.
    pub keep_source_logins: bool,
    /// Whether foreign servers of the source have their addresses and passwords on it.
    pub keep_foreign_servers: bool,
    /// What of its source is not in it, so that nothing leads back there; one line each.
    #[serde(default)]
    #[schema(example = json!(["logins of roles: app, report", "subscriptions: shop.feed"]))]
    pub removed: Vec<String>,
    /// The ports of other hosts that it may connect to.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["db.example.com:5432"]))]
    pub allow_network: Vec<Remote>,
    /// How other hosts reach it; null: not at all.
    #[serde(default)]
    #[schema(required)]
    pub network: Option<VdbNetwork>,
    /// The limit of its memory, where one was given.
    #[schema(required)]
    pub memory_bytes: Option<u64>,
    /// When it was first provisioned.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// How long its last provision, refresh or rewind took.
    pub timings: ProvisionTimings,
    /// Why it failed, where it did; of one that is stopped, who has taken it over.
    #[schema(required)]
    pub error: Option<ErrorDetail>,
    /// What is not wrong, but should be known.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What it is found by.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Whether it is neither deleted nor replaced by a refresh or rewind.
    #[serde(default)]
    pub protected: bool,
    /// When it is deleted; null: never.
    #[serde(default)]
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// What runs in it when something has been done to it.
    #[serde(default)]
    pub hooks: Vec<VdbHook>,
    /// What listens on its port in place of its server; null: nothing.
    #[serde(default)]
    #[schema(required)]
    pub gateway: Option<VdbGateway>,
}

/// Holds a VDB's connections while its server is restarted, replaced or asleep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VdbGateway {
    /// After how many milliseconds without use the server is stopped; null: never.
    #[schema(required)]
    pub stop_when_idle_ms: Option<u64>,
    /// Whether it was stopped so. The VDB is `stopped` then, and whoever connects starts it.
    pub asleep: bool,
}

/// How other hosts reach a VDB: by TLS, with a SCRAM password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VdbNetwork {
    /// The addresses that it listens on beside loopback.
    #[schema(value_type = Vec<String>)]
    pub listen: Vec<IpAddr>,
    /// The networks that may connect.
    #[schema(value_type = Vec<String>)]
    pub allow: Vec<IpNet>,
    /// What it is known by, in PEM: `sslrootcert` of its clients.
    pub certificate: String,
}

/// All VDBs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VdbList {
    /// By name.
    pub vdbs: Vec<Vdb>,
}

/// Provisions a VDB.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProvisionVdb {
    /// The name to give it: 1–63 of `a-z 0-9 _ -`, starting with a letter.
    pub name: String,
    /// The dSource or VDB to make it from; that of the template where absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// A template, which says what is not said here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The moment to open; the latest where absent.
    #[serde(default)]
    pub moment: Moment,
    /// The port to listen on; a free one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Whether connections to it outlive refresh, rewind and restart, by way of a gateway.
    #[serde(default)]
    pub gateway: bool,
    /// After how many milliseconds without use its server is stopped, until somebody connects; never where absent. It has a
    /// gateway then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_when_idle_ms: Option<u64>,
    /// Settings of the database, over the engine's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// A limit of its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Whether the source's logins stay usable; by default they cannot log in.
    #[serde(default)]
    pub keep_source_logins: bool,
    /// Whether its user is a superuser, who may also run programs in the server's cell; by default the user
    /// owns the databases.
    #[serde(default)]
    pub superuser: bool,
    /// Whether the source's foreign servers keep their addresses, and the passwords for them.
    #[serde(default)]
    pub keep_foreign_servers: bool,
    /// Ports of other hosts that it may connect to, as `HOST:PORT`; none where absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, example = json!(["db.example.com:5432"]))]
    pub allow_network: Vec<Remote>,
    /// Addresses of the engine's host to listen on beside loopback, by TLS alone; needs `allow`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, example = json!(["10.1.0.5"]))]
    pub listen: Vec<IpAddr>,
    /// Networks that may connect to those addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, example = json!(["10.1.0.0/16"]))]
    pub allow: Vec<IpNet>,
    /// Whether a warm copy will do, if the policy of the dSource keeps some and one is left: it is handed out at once, and shows a
    /// moment that may be a minute old. Of the rest only what is said about it may be asked for then, and when it is deleted.
    #[serde(default)]
    pub warm: bool,
    /// What it is for: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is to be found by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether it is neither deleted nor replaced by a refresh or rewind.
    #[serde(default)]
    pub protected: bool,
    /// In how many milliseconds it is deleted; never where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// What is to run in it when something has been done to it: one hook for an event at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<NewHook>,
    /// What a refresh keeps of it beside its name, port and password; nothing where absent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub refresh_keeps: BTreeSet<Kept>,
}

/// What users made in a VDB beside its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Roles, with their passwords and memberships.
    Roles,
    /// Settings of databases and roles, and those of `ALTER SYSTEM`.
    Settings,
}

/// Changes a VDB; absent fields stay as they are. Other settings, another limit of its memory or port, and a gateway given or
/// taken away restart its server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetVdb {
    /// Another name: 1–63 of `a-z 0-9 _ -`, starting with a letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Another port to listen on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What it is for: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Labels to set; null removes one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Option<String>>,
    /// Whether it is neither deleted nor replaced by a refresh or rewind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<bool>,
    /// In how many milliseconds it is deleted; null: never.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub expires_in_ms: Option<Option<u64>>,
    /// Settings of the database to set; null removes one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Option<String>>,
    /// A limit of its memory; null: the engine's default.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub memory_bytes: Option<Option<u64>>,
    /// Hooks to set, each in place of that of the same event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<NewHook>,
    /// Events whose hook is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_hooks: Vec<HookEvent>,
    /// Whether connections to it outlive refresh, rewind and restart, by way of a gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<bool>,
    /// After how many milliseconds without use its server is stopped, until somebody connects; null: never.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub stop_when_idle_ms: Option<Option<u64>>,
    /// What a refresh keeps of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_keeps: Option<BTreeSet<Kept>>,
}

/// The end of the log of a VDB's server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VdbLog {
    /// The VDB.
    pub name: String,
    /// Its last lines, oldest first. The users of the VDB decide what is in them.
    pub text: String,
    /// Where what follows will begin, for the next call's `since`.
    #[serde(default)]
    pub end: String,
}

/// Opens a newer (or any) moment of the parent under the same name, port, credentials and settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RefreshVdb {
    /// The moment of the parent; the latest where absent.
    #[serde(default)]
    pub moment: Moment,
}

/// Gives a VDB another parent; what it holds stays until it is refreshed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReparentVdb {
    /// The dSource to refresh from: of the same kind and major version.
    pub to: String,
}

/// Goes back to an earlier state of the VDB itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RewindVdb {
    /// Where to.
    pub to: RewindTo,
}

/// Where to rewind to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RewindTo {
    /// One of the VDB's own snapshots.
    Snapshot {
        /// The snapshot.
        #[schema(value_type = String, example = "snapshot-7")]
        id: SnapshotId,
    },
    /// A bookmark on the VDB.
    Bookmark {
        /// The bookmark.
        name: String,
    },
    /// The state before the last rewind or refresh.
    Undo,
}
