//! Profiles: what is sent to other engines, and when.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{
    CreateReplication, ErrorBody, FailOver, JobAccepted, Replication, ReplicationHistory,
    ReplicationList, routes,
};

/// Makes a profile.
#[utoipa::path(
    post,
    path = routes::REPLICATIONS,
    tag = "replication",
    request_body = CreateReplication,
    responses((status = 200, body = Replication, description = "The profile"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn create_replication(
    Service(service): Service,
    Body(request): Body<CreateReplication>,
) -> Answer<Replication> {
    answer(service, move |service| service.replicator().create_replication(request)).await
}

/// All profiles, by name.
#[utoipa::path(
    get,
    path = routes::REPLICATIONS,
    tag = "replication",
    responses((status = 200, body = ReplicationList, description = "All profiles"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_replications(Service(service): Service) -> Answer<ReplicationList> {
    answer(service, |service| {
        let replications = service.replicator().list_replications()?;
        Ok(ReplicationList { replications })
    })
    .await
}

/// One profile: how far behind the peer is, and what the last run did.
#[utoipa::path(
    get,
    path = routes::REPLICATION,
    tag = "replication",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Replication, description = "The profile"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_replication(
    Service(service): Service,
    Name(name): Name,
) -> Answer<Replication> {
    answer(service, move |service| service.replicator().show_replication(&name)).await
}

/// Its runs that have ended, newest first.
#[utoipa::path(
    get,
    path = routes::REPLICATION_HISTORY,
    tag = "replication",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = ReplicationHistory, description = "The runs"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn replication_history(
    Service(service): Service,
    Name(name): Name,
) -> Answer<ReplicationHistory> {
    answer(service, move |service| {
        let runs = service.replicator().replication_history(&name)?;
        Ok(ReplicationHistory { runs })
    })
    .await
}

/// Runs it now: the peer takes what it lacks.
#[utoipa::path(
    post,
    path = routes::REPLICATION_RUN,
    tag = "replication",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn run_replication(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.run_replication(&name)).await
}

/// Makes the copies of another engine's dSources this engine's own: they lose the namespace, and nothing that the other engine
/// sends is taken any more. Refused while that engine seems to live, unless forced.
#[utoipa::path(
    post,
    path = routes::FAILOVERS,
    tag = "replication",
    request_body = FailOver,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn fail_over(
    Service(service): Service,
    Body(request): Body<FailOver>,
) -> Accepted {
    accept(service, move |service| service.fail_over(request)).await
}

/// Lets it not run by itself any more.
#[utoipa::path(
    post,
    path = routes::REPLICATION_PAUSE,
    tag = "replication",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Replication, description = "The profile"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn pause_replication(
    Service(service): Service,
    Name(name): Name,
) -> Answer<Replication> {
    answer(service, move |service| service.replicator().pause_replication(&name, true)).await
}

/// Lets it run by itself again.
#[utoipa::path(
    post,
    path = routes::REPLICATION_RESUME,
    tag = "replication",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Replication, description = "The profile"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn resume_replication(
    Service(service): Service,
    Name(name): Name,
) -> Answer<Replication> {
    answer(service, move |service| service.replicator().pause_replication(&name, false)).await
}

/// Deletes it. What it has sent stays with the peer.
#[utoipa::path(
    delete,
    path = routes::REPLICATION,
    tag = "replication",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Replication, description = "What it was"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn delete_replication(
    Service(service): Service,
    Name(name): Name,
) -> Answer<Replication> {
    answer(service, move |service| service.replicator().delete_replication(&name)).await
}
