//! Other engines.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Answer, answer};
use offshoot_api::{
    AddPeer, ErrorBody, InvitePeer, Peer, PeerInvitation, PeerKeyRotation, PeerList, Topology,
    routes,
};

/// Makes a code that lets one engine in, once: it may then send into its namespace here, and nothing else. The code is shown this
/// once; the engine keeps only its hash.
#[utoipa::path(
    post,
    path = routes::PEER_INVITATIONS,
    tag = "peers",
    request_body = InvitePeer,
    responses((status = 200, body = PeerInvitation, description = "The code"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn invite_peer(
    Service(service): Service,
    Body(request): Body<InvitePeer>,
) -> Answer<PeerInvitation> {
    answer(service, move |service| service.replicator().invite_peer(request)).await
}

/// Adds an engine to send to, by a code that it has made. Both remember each other's certificates.
#[utoipa::path(
    post,
    path = routes::PEERS,
    tag = "peers",
    request_body = AddPeer,
    responses((status = 200, body = Peer, description = "The peer"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn add_peer(
    Service(service): Service,
    Body(request): Body<AddPeer>,
) -> Answer<Peer> {
    answer(service, move |service| service.replicator().add_peer(request)).await
}

/// All peers, by name.
#[utoipa::path(
    get,
    path = routes::PEERS,
    tag = "peers",
    responses((status = 200, body = PeerList, description = "All peers"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_peers(Service(service): Service) -> Answer<PeerList> {
    answer(service, |service| service.replicator().list_peers().map(|peers| PeerList { peers }))
        .await
}

/// One peer.
#[utoipa::path(
    get,
    path = routes::PEER,
    tag = "peers",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Peer, description = "The peer"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_peer(Service(service): Service, Name(name): Name) -> Answer<Peer> {
    answer(service, move |service| service.replicator().show_peer(&name)).await
}

/// Which engines are known, and which sends to which: what this engine knows itself, and what its peers have said when they spoke
/// last, also of others.
#[utoipa::path(
    get,
    path = routes::TOPOLOGY,
    tag = "peers",
    responses((status = 200, body = Topology, description = "The engines, and the links between them"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn topology(Service(service): Service) -> Answer<Topology> {
    answer(service, |service| service.replicator().topology()).await
}

/// Makes another key and certificate that this engine proves itself with to peers. Each peer is told of it by the next connection,
/// and is shown the one before until then. Codes that were given out before are no good any more. Refused while a peer was not told
/// of the last one.
#[utoipa::path(
    post,
    path = routes::PEER_KEY_ROTATE,
    tag = "peers",
    responses((status = 200, body = PeerKeyRotation, description = "The new certificate, and who is still to be told"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn rotate_peer_key(Service(service): Service) -> Answer<PeerKeyRotation> {
    answer(service, |service| service.replicator().rotate_peer_key()).await
}

/// Forgets a peer. What it has sent stays.
#[utoipa::path(
    delete,
    path = routes::PEER,
    tag = "peers",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Peer, description = "What it was"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn remove_peer(Service(service): Service, Name(name): Name) -> Answer<Peer> {
    answer(service, move |service| service.replicator().remove_peer(&name)).await
}
