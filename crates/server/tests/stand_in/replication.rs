//! Archives of the stand-in: text. One peer, one profile.

use super::{StandIn, missing, time};
use offshoot_api::*;
use offshoot_server::{ArchiveReader, ArchiveWriter, Replicator};
use offshoot_types::{ErrorKind, Failure, JobId, PeerId, ProfileId};

/// How its archives begin.
const BEGIN: &str = "archive of ";

pub fn export(dsource: &Dsource) -> Result<ArchiveWriter, Failure> {
    let name = dsource.name.clone();
    Ok(Box::new(move |out| {
        write!(out, "{BEGIN}{name}").map_err(|error| Failure::internal(error.to_string()))
    }))
}

/// The name of what came.
pub fn import(mut archive: ArchiveReader, namespace: &str) -> Result<String, Failure> {
    let mut text = String::new();
    archive.read_to_string(&mut text).map_err(|error| Failure::internal(error.to_string()))?;
    let name = text.strip_prefix(BEGIN).ok_or_else(|| {
        Failure::new(ErrorKind::InvalidInput, "this is no archive of Offshoot", "name one")
    })?;
    Ok(format!("{namespace}/{name}"))
}

const PEER: &str = "east";
const PROFILE: &str = "prod";

fn peer() -> Peer {
    Peer {
        id: PeerId(1),
        name: PEER.to_owned(),
        engine: "0f".repeat(16),
        fingerprint: format!("sha256:{}", "1f".repeat(32)),
        address: Some("east.example:7640".to_owned()),
        may_send: false,
        created_at: time(),
        last_seen_at: None,
        taken_over_at: None,
        rotation_pending: true,
        profiles: vec![PROFILE.to_owned()],
    }
}

fn profile() -> Replication {
    Replication {
        id: ProfileId(1),
        name: PROFILE.to_owned(),
        peer: PEER.to_owned(),
        include: None,
        replicas: false,
        masked_only: false,
        with_secrets: false,
        connections: 2,
        every_ms: Some(300_000),
        crontab: None,
        continuous: false,
        rpo_ms: None,
        bytes_per_second_max: None,
        state: ReplicationState::Waiting,
        job: None,
        created_at: time(),
        next_run_at: Some(time()),
        last_success_at: None,
        lag_bytes: 0,
        lag_ms: None,
        sent_bytes: 0,
        changed_unique_bytes: 0,
        saved_bytes: 0,
        bytes_per_second: 0,
        resumed: false,
        error: None,
    }
}

fn known<T>(what: T, kind: &str, known: &str, name: &str) -> Result<T, Failure> {
    if name == known { Ok(what) } else { Err(missing(kind, name)) }
}

impl Replicator for StandIn {
    fn invite_peer(&self, request: InvitePeer) -> Result<PeerInvitation, Failure> {
        Ok(PeerInvitation {
            code: "peer1-0".to_owned(),
            name: request.name,
            fingerprint: peer().fingerprint,
            listen: "10.1.0.5:7640".to_owned(),
            expires_at: time(),
        })
    }

    fn add_peer(&self, _: AddPeer) -> Result<Peer, Failure> {
        Ok(peer())
    }

    fn list_peers(&self) -> Result<Vec<Peer>, Failure> {
        Ok(vec![peer()])
    }

    fn show_peer(&self, name: &str) -> Result<Peer, Failure> {
        known(peer(), "peer", PEER, name)
    }

    fn topology(&self) -> Result<Topology, Failure> {
        let (own, other) = ("0a".repeat(16), peer().engine);
        let engine = |engine: &str, name: Option<&str>| TopologyEngine {
            engine: engine.to_owned(),
            name: name.map(str::to_owned),
            as_of: Some(time()),
        };
        let engines = vec![engine(&own, None), engine(&other, Some(PEER))];
        Ok(Topology { engines, links: vec![TopologyLink { from: own, to: other }] })
    }

    fn rotate_peer_key(&self) -> Result<PeerKeyRotation, Failure> {
        Ok(PeerKeyRotation { fingerprint: peer().fingerprint, pending: vec![PEER.to_owned()] })
    }

    fn remove_peer(&self, name: &str) -> Result<Peer, Failure> {
        known(peer(), "peer", PEER, name)
    }

    fn create_replication(&self, _: CreateReplication) -> Result<Replication, Failure> {
        Ok(profile())
    }

    fn list_replications(&self) -> Result<Vec<Replication>, Failure> {
        Ok(vec![profile()])
    }

    fn show_replication(&self, name: &str) -> Result<Replication, Failure> {
        known(profile(), "profile", PROFILE, name)
    }

    fn replication_history(&self, name: &str) -> Result<Vec<ReplicationRun>, Failure> {
        let run = ReplicationRun {
            job: JobId(1),
            started_at: time(),
            ended_at: time(),
            objects: 1,
            sent_bytes: 10,
            changed_unique_bytes: 5,
            saved_bytes: 0,
            bytes_per_second: 10,
            resumed: false,
            error: Some(missing("peer", PEER).into()),
        };
        known(vec![run], "profile", PROFILE, name)
    }

    fn pause_replication(&self, name: &str, _: bool) -> Result<Replication, Failure> {
        known(profile(), "profile", PROFILE, name)
    }

    fn delete_replication(&self, name: &str) -> Result<Replication, Failure> {
        known(profile(), "profile", PROFILE, name)
    }
}
