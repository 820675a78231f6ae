//! Other engines.

use jiff::Timestamp;
use offshoot_types::PeerId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Another engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Peer {
    /// Its id.
    #[schema(value_type = String, example = "peer-1")]
    pub id: PeerId,
    /// Its name here; what it sends is in the namespace of this name.
    pub name: String,
    /// Its engine, by the id of its pool.
    pub engine: String,
    /// Of the certificate that it proves itself with.
    #[schema(example = "sha256:1f0c…")]
    pub fingerprint: String,
    /// Where it is sent to; null: it is sent nothing.
    #[schema(required)]
    pub address: Option<String>,
    /// Whether it may send into its namespace.
    pub may_send: bool,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When there was last a connection.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub last_seen_at: Option<Timestamp>,
    /// When what it had sent became this engine's own; nothing of it is taken any more. Null: it did not.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub taken_over_at: Option<Timestamp>,
    /// Whether it knows this engine only by the key before the last rotation; it is told by the next connection.
    pub rotation_pending: bool,
    /// The profiles that send to it.
    pub profiles: Vec<String>,
}

/// All peers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerList {
    /// By name.
    pub peers: Vec<Peer>,
}

/// Makes a code that lets one engine in, once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InvitePeer {
    /// The name that it gets here; one of its engine's id where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For how long the code is good; 15 minutes where absent, a day at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// A new code. This is the only time that it is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerInvitation {
    /// The code itself.
    pub code: String,
    /// The name that the engine gets here; null: one of its engine's id.
    #[schema(required)]
    pub name: Option<String>,
    /// Of the certificate that this engine shows; it is in the code.
    pub fingerprint: String,
    /// Where this engine listens.
    pub listen: String,
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
}

/// Leaves out the code.
impl std::fmt::Debug for PeerInvitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerInvitation").field("name", &self.name).finish_non_exhaustive()
    }
}

/// This engine's new key for peers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerKeyRotation {
    /// Of the certificate that this engine goes on with.
    #[schema(example = "sha256:1f0c…")]
    pub fingerprint: String,
    /// The names of peers that are still to be told.
    pub pending: Vec<String>,
}

/// Which engines there are, and which sends to which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Topology {
    /// This one first, then by distance and name.
    pub engines: Vec<TopologyEngine>,
    /// Which sends to which.
    pub links: Vec<TopologyLink>,
}

/// An engine that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopologyEngine {
    /// The id of its pool.
    pub engine: String,
    /// What it is called on the shortest way to it, by each engine the next one; null: this engine.
    #[schema(required, example = "middle/far")]
    pub name: Option<String>,
    /// When it has said itself whom it speaks with, by its clock; null: only others have.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub as_of: Option<Timestamp>,
}

/// An engine that sends to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopologyLink {
    /// The one that sends, by the id of its pool.
    pub from: String,
    /// The one that is sent to.
    pub to: String,
}

/// Adds an engine to send to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddPeer {
    /// The name to give it here: 1–63 of `a-z 0-9 _ -`, starting with a letter.
    pub name: String,
    /// Where it listens by TLS.
    #[schema(example = "east.example:7640")]
    pub address: String,
    /// The code that it has made.
    pub code: String,
}

/// Leaves out the code.
impl std::fmt::Debug for AddPeer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddPeer").field("name", &self.name).finish_non_exhaustive()
    }
}
