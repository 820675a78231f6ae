//! Peers and profiles, as the API shows them.

use super::LocalEngine;
use crate::service::replicator::Replicator;
use offshoot_api as api;
use offshoot_domain::{KnownEngine, ProfileRun, Topology};
use offshoot_engine::{
    AddPeerRequest, InviteRequest, PeerView, ProfileRequest, ProfileState, ProfileView,
};
use offshoot_types::{ErrorKind, Failure};
use std::time::Duration;

impl Replicator for LocalEngine {
    fn invite_peer(&self, request: api::InvitePeer) -> Result<api::PeerInvitation, Failure> {
        let listen = self.listen.get().filter(|at| at.fingerprint.is_some()).ok_or_else(|| {
            Failure::new(
                ErrorKind::WrongState,
                "this engine does not listen by TLS, so no other engine reaches it",
                "restart it with --listen ADDRESS:PORT, an address of this host that is not loopback (offshoot serve --help)",
            )
        })?;
        let good_for = request.expires_in_ms.map(Duration::from_millis);
        let request = InviteRequest { name: request.name, good_for };
        let (invitation, code) = self.engine().peers().invite(&request)?;
        Ok(api::PeerInvitation {
            code,
            name: invitation.name.map(|name| name.to_string()),
            fingerprint: self.engine().peers().own_fingerprint()?,
            listen: listen.tcp.to_string(),
            expires_at: invitation.expires_at,
        })
    }

    fn add_peer(&self, request: api::AddPeer) -> Result<api::Peer, Failure> {
        let api::AddPeer { name, address, code } = request;
        self.engine().peers().add(&AddPeerRequest { name, address, code }).map(peer)
    }

    fn list_peers(&self) -> Result<Vec<api::Peer>, Failure> {
        Ok(self.engine().peers().list()?.into_iter().map(peer).collect())
    }

    fn show_peer(&self, name: &str) -> Result<api::Peer, Failure> {
        self.engine().peers().show(name).map(peer)
    }

    fn topology(&self) -> Result<api::Topology, Failure> {
        let Topology { engines, links } = self.engine().peers().topology()?;
        let engine =
            |KnownEngine { id, name, as_of }| api::TopologyEngine { engine: id, name, as_of };
        Ok(api::Topology {
            engines: engines.into_iter().map(engine).collect(),
            links: links.into_iter().map(|(from, to)| api::TopologyLink { from, to }).collect(),
        })
    }

    fn rotate_peer_key(&self) -> Result<api::PeerKeyRotation, Failure> {
        let peers = self.engine().peers();
        peers.rotate_key()?;
        let fingerprint = peers.own_fingerprint()?;
        tracing::info!(fingerprint, "another key for peers");
        let pending = peers.list()?.into_iter().filter(|view| view.peer.knows_old_key);
        let pending = pending.map(|view| view.peer.name.to_string()).collect();
        Ok(api::PeerKeyRotation { fingerprint, pending })
    }

    fn remove_peer(&self, name: &str) -> Result<api::Peer, Failure> {
        self.engine().peers().remove(name).map(peer)
    }

    fn create_replication(
        &self,
        request: api::CreateReplication,
    ) -> Result<api::Replication, Failure> {
        let request = ProfileRequest {
            name: request.name,
            to: request.to,
            include: request.include,
            replicas: request.replicas,
            masked_only: request.masked_only,
            with_secrets: request.with_secrets,
            connections: request.connections,
            every_ms: request.every_ms,
            crontab: request.crontab,
            continuous: request.continuous,
            rpo_ms: request.rpo_ms,
            bytes_per_second_max: request.bytes_per_second_max,
        };
        self.engine().profiles().create(&request).map(profile)
    }

    fn list_replications(&self) -> Result<Vec<api::Replication>, Failure> {
        Ok(self.engine().profiles().list()?.into_iter().map(profile).collect())
    }

    fn show_replication(&self, name: &str) -> Result<api::Replication, Failure> {
        self.engine().profiles().show(name).map(profile)
    }

    fn replication_history(&self, name: &str) -> Result<Vec<api::ReplicationRun>, Failure> {
        Ok(self.engine().profiles().history(name)?.iter().map(run).collect())
    }

    fn pause_replication(&self, name: &str, paused: bool) -> Result<api::Replication, Failure> {
        self.engine().profiles().set_paused(name, paused).map(profile)
    }

    fn delete_replication(&self, name: &str) -> Result<api::Replication, Failure> {
        self.engine().profiles().delete(name).map(profile)
    }
}

fn peer(view: PeerView) -> api::Peer {
    let PeerView { peer, profiles } = view;
    api::Peer {
        id: peer.id,
        name: peer.name.to_string(),
        engine: peer.engine,
        fingerprint: peer.fingerprint,
        address: peer.address,
        may_send: peer.may_send,
        created_at: peer.created_at,
        last_seen_at: peer.seen_at,
        taken_over_at: peer.taken_over_at,
        rotation_pending: peer.knows_old_key,
        profiles,
    }
}

fn run(run: &ProfileRun) -> api::ReplicationRun {
    api::ReplicationRun {
        job: run.job,
        started_at: run.started_at,
        ended_at: run.ended_at,
        objects: run.objects,
        sent_bytes: run.sent_bytes,
        changed_unique_bytes: run.unique_bytes,
        saved_bytes: run.saved_bytes,
        bytes_per_second: rate(run),
        resumed: run.resumed,
        error: run.error.clone().map(Into::into),
    }
}

fn rate(run: &ProfileRun) -> u64 {
    let ms = run.ended_at.as_millisecond().abs_diff(run.started_at.as_millisecond()).max(1);
    let rate = u128::from(run.sent_bytes) * 1000 / u128::from(ms);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

fn profile(view: ProfileView) -> api::Replication {
    let ProfileView { profile, peer, include, state, running, next_run_at, lag_ms, lag_bytes } =
        view;
    let last = profile.runs.last();
    let of_last = |value: fn(&ProfileRun) -> u64| last.map(value).unwrap_or_default();
    api::Replication {
        id: profile.id,
        name: profile.name.to_string(),
        peer,
        include,
        replicas: profile.replicas,
        masked_only: profile.masked_only,
        with_secrets: profile.with_secrets,
        connections: profile.connections,
        every_ms: profile.every_ms,
        crontab: profile.crontab.as_ref().map(|crontab| crontab.as_str().to_owned()),
        continuous: profile.continuous,
        rpo_ms: profile.rpo_ms,
        bytes_per_second_max: profile.bytes_per_second_max,
        state: match state {
            ProfileState::Running => api::ReplicationState::Running,
            ProfileState::Paused => api::ReplicationState::Paused,
            ProfileState::Failed => api::ReplicationState::Failed,
            ProfileState::Waiting => api::ReplicationState::Waiting,
        },
        job: running,
        created_at: profile.created_at,
        next_run_at,
        last_success_at: profile.last_success().map(|run| run.ended_at),
        lag_bytes,
        lag_ms,
        sent_bytes: of_last(|run| run.sent_bytes),
        changed_unique_bytes: of_last(|run| run.unique_bytes),
        saved_bytes: of_last(|run| run.saved_bytes),
        bytes_per_second: of_last(rate),
        resumed: last.is_some_and(|run| run.resumed),
        error: last.and_then(|run| run.error.clone()).map(Into::into),
    }
}
