//! What the HTTP layer asks about other engines.

use offshoot_api::{
    AddPeer, CreateReplication, InvitePeer, Peer, PeerInvitation, PeerKeyRotation, Replication,
    ReplicationRun, Topology,
};
use offshoot_types::Failure;

/// One method for each endpoint that is about other engines; methods may block.
pub trait Replicator: Send + Sync {
    /// Makes a code that lets one engine in.
    fn invite_peer(&self, request: InvitePeer) -> Result<PeerInvitation, Failure>;
    /// Adds an engine to send to.
    fn add_peer(&self, request: AddPeer) -> Result<Peer, Failure>;
    /// All peers, by name.
    fn list_peers(&self) -> Result<Vec<Peer>, Failure>;
    /// One peer.
    fn show_peer(&self, name: &str) -> Result<Peer, Failure>;
    /// Which engines are known, and which sends to which.
    fn topology(&self) -> Result<Topology, Failure>;
    /// Makes another key for peers.
    fn rotate_peer_key(&self) -> Result<PeerKeyRotation, Failure>;
    /// Forgets a peer; returns what it was.
    fn remove_peer(&self, name: &str) -> Result<Peer, Failure>;

    /// Makes a profile.
    fn create_replication(&self, request: CreateReplication) -> Result<Replication, Failure>;
    /// All profiles, by name.
    fn list_replications(&self) -> Result<Vec<Replication>, Failure>;
    /// One profile.
    fn show_replication(&self, name: &str) -> Result<Replication, Failure>;
    /// Its runs that have ended, newest first.
    fn replication_history(&self, name: &str) -> Result<Vec<ReplicationRun>, Failure>;
    /// Lets it run by itself, or not.
    fn pause_replication(&self, name: &str, paused: bool) -> Result<Replication, Failure>;
    /// Deletes it; returns what it was.
    fn delete_replication(&self, name: &str) -> Result<Replication, Failure>;
}
