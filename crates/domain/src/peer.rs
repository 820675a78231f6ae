//! Other engines: whom this one sends to, whom it takes from.

use crate::{ObjectName, Owner};
use jiff::Timestamp;
use offshoot_types::{DatasetId, DsourceId, JobId, PeerId};
use serde::{Deserialize, Serialize};

/// Another engine. It is known by its certificate; neither address nor name proves anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The id.
    pub id: PeerId,
    /// Unique among peers; what it sends is shown in the namespace of this name.
    pub name: ObjectName,
    /// The engine, by the id of its pool.
    pub engine: String,
    /// Of the certificate that it proves itself with.
    pub fingerprint: String,
    /// Of the certificate that it goes on with, as it has said; until it shows that, the one before holds as well.
    #[serde(default)]
    pub next_fingerprint: Option<String>,
    /// Whether it knows this engine only by the key before the last one: it was not told yet.
    #[serde(default)]
    pub knows_old_key: bool,
    /// Where it is called to be sent something; none: nothing is sent to it.
    pub address: Option<String>,
    /// Whether it may send into its namespace.
    pub may_send: bool,
    /// When it was added.
    pub created_at: Timestamp,
    /// When there was last a connection.
    pub seen_at: Option<Timestamp>,
    /// When what it had sent became this engine's own. From then on nothing of it is taken.
    #[serde(default)]
    pub taken_over_at: Option<Timestamp>,
    /// The failover that waits until it has stopped and sent the last of what it has.
    #[serde(default)]
    pub awaited: Option<Awaited>,
    /// What this engine has stopped so that it takes over.
    #[serde(default)]
    pub handed_over: Option<HandedOver>,
    /// When what this engine had sent to it was stopped here, as it has taken over.
    #[serde(default)]
    pub relieved_at: Option<Timestamp>,
}

impl Peer {
    /// Whether it is known by a certificate of this fingerprint.
    pub fn is_known_by(&self, fingerprint: &str) -> bool {
        self.fingerprint == fingerprint || self.next_fingerprint.as_deref() == Some(fingerprint)
    }

    /// Of all certificates that it is known by, the newest one first.
    pub fn fingerprints(&self) -> Vec<&str> {
        self.next_fingerprint.iter().chain([&self.fingerprint]).map(String::as_str).collect()
    }

    /// What both sides know each other by; another value as soon as either has learned of another key.
    pub fn keys(&self) -> (&str, Option<&str>, bool) {
        (&self.fingerprint, self.next_fingerprint.as_deref(), self.knows_old_key)
    }

    /// It has proved to have the key of a certificate. Those before that hold no more.
    pub fn has_shown(&mut self, fingerprint: &str) {
        if self.next_fingerprint.as_deref() == Some(fingerprint) {
            self.fingerprint = fingerprint.to_owned();
            self.next_fingerprint = None;
        }
    }

    /// It goes on with another certificate, as it says.
    pub fn goes_on_with(&mut self, fingerprint: &str) {
        if self.fingerprint != fingerprint {
            self.next_fingerprint = Some(fingerprint.to_owned());
        }
    }

    /// Whether what it sends is taken. One that was taken over is let in again by a new code.
    pub fn sends_here(&self) -> bool {
        self.may_send && self.taken_over_at.is_none()
    }

    /// Whether this engine sends to it. One that has taken over is sent to again by a new code.
    pub fn is_sent_to(&self) -> bool {
        self.address.is_some() && self.relieved_at.is_none()
    }
}

/// A planned failover that waits for the engine that sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// The failover.
    pub job: JobId,
    /// Whether the other engine has said that it has stopped and sent all of it.
    pub ready: bool,
}

/// What was stopped here for another engine to take over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The run that does it.
    pub by: JobId,
    /// VDBs that ran and dSources that followed their sources until then.
    pub stopped: Vec<Owner>,
    /// Whether the other engine was told that it may take over.
    pub told: bool,
}

/// A code that was given out and lets one engine in, once. The code itself is kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The id that the peer gets.
    pub id: PeerId,
    /// The name that the peer gets; none: one of its engine's id.
    pub name: Option<ObjectName>,
    /// The hash of the code's secret.
    pub hash: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl Invitation {
    /// Whether it has ended.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}

/// What comes from a peer and is not whole yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incoming {
    /// The replica that it becomes.
    pub id: DsourceId,
    /// Its name here.
    pub name: ObjectName,
    /// Who sends it.
    pub peer: PeerId,
    /// What has come of it.
    pub dataset: DatasetId,
}
