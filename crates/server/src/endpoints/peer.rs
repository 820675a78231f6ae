//! Other engines.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Answer, answer};
use offshoot_api::{AddPeer, ErrorBody, InvitePeer, Peer, PeerInvitation, PeerList, routes};

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
