//! What its users chose for a VDB that is sent.

use crate::{Care, Gateway, GatewayChange, Kept, Owner, Policy, Vdb};
use offshoot_types::Failure;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What its users chose for a VDB: the one that is made of its copy at a failover is given as much of it as the other
/// host can give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentVdb {
    /// The port that it listened on.
    pub port: u16,
    /// What was set, by the database's own names.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The memory it might use, in bytes; none: the engine's default.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Whether logins of the source's roles stayed enabled.
    #[serde(default)]
    pub keep_source_logins: bool,
    /// Whether its user was a superuser of it.
    #[serde(default)]
    pub superuser: bool,
    /// Whether the source's foreign servers stayed.
    #[serde(default)]
    pub keep_foreign_servers: bool,
    /// What held its connections; another port is chosen for its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Gateway>,
    /// Whether its user had stopped it.
    #[serde(default)]
    pub stopped: bool,
    /// The name of the user whose it was; none: the administrators'.
    #[serde(default)]
    pub owner: Option<String>,
    /// What a refresh kept of it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub refresh_keeps: BTreeSet<Kept>,
    /// What its users said about it.
    #[serde(default)]
    pub care: Care,
    /// How it was kept.
    #[serde(default = "Policy::of_vdb")]
    pub policy: Policy,
    /// What it had and is not sent.
    #[serde(default)]
    pub left: BTreeSet<LeftThere>,
}

/// What of a VDB stays with its engine: an administrator of the other one decides about it anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftThere {
    /// That other hosts may connect to it: by addresses of its host.
    Listening,
    /// That it may connect to other hosts.
    Reaching,
    /// Hooks: they may have passwords in them.
    Hooks,
}

impl LeftThere {
    /// What the VDB did, and how another one is told to.
    pub fn as_text(self) -> &'static str {
        match self {
            LeftThere::Listening => "listened for other hosts (--listen, --allow)",
            LeftThere::Reaching => "reached other hosts (--allow-network)",
            LeftThere::Hooks => "had hooks (--hook)",
        }
    }
}

impl SentVdb {
    /// What is told of a VDB; `stopped`: whether its user had stopped it, `owner`: the name of that user.
    pub fn of(vdb: &Vdb, stopped: bool, owner: Option<String>) -> SentVdb {
        let left = [
            (LeftThere::Listening, vdb.exposure.is_some()),
            (LeftThere::Reaching, !vdb.reaches.is_empty()),
            (LeftThere::Hooks, !vdb.hooks.is_empty()),
        ];
        SentVdb {
            port: vdb.port,
            settings: vdb.settings.clone(),
            memory_bytes: vdb.memory_bytes,
            keep_source_logins: vdb.keep_source_logins,
            superuser: vdb.superuser,
            keep_foreign_servers: vdb.keep_foreign_servers,
            gateway: vdb.gateway.clone(),
            stopped,
            owner,
            refresh_keeps: vdb.refresh_keeps.clone(),
            care: vdb.care.clone(),
            policy: vdb.policy,
            left: left.into_iter().filter(|(_, has)| *has).map(|(what, _)| what).collect(),
        }
    }

    /// Refuses what no engine lets its users choose.
    ///
    /// # Errors
    /// `InvalidInput`.
    pub fn check(&self, of: Owner) -> Result<(), Failure> {
        self.care.check()?;
        GatewayChange::default().of(self.gateway.as_ref())?;
        self.policy.check(of)
    }
}
