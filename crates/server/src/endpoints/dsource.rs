//! dSources.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{Dsource, DsourceList, ErrorBody, JobAccepted, LinkDsource, SetDsource, routes};

/// Links a source.
#[utoipa::path(
    post,
    path = routes::DSOURCES,
    tag = "dsources",
    request_body = LinkDsource,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn link_dsource(
    Service(service): Service,
    Body(request): Body<LinkDsource>,
) -> Accepted {
    accept(service, move |service| service.link_dsource(request)).await
}

/// All dSources, by name.
#[utoipa::path(
    get,
    path = routes::DSOURCES,
    tag = "dsources",
    responses((status = 200, body = DsourceList, description = "All dSources"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_dsources(Service(service): Service) -> Answer<DsourceList> {
    answer(service, move |service| service.list_dsources().map(|dsources| DsourceList { dsources }))
        .await
}

/// One dSource.
#[utoipa::path(
    get,
    path = routes::DSOURCE,
    tag = "dsources",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Dsource, description = "Dsource"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_dsource(Service(service): Service, Name(name): Name) -> Answer<Dsource> {
    answer(service, move |service| service.show_dsource(&name)).await
}

/// Changes how the source is reached: another address, role, password or TLS of the same database.
#[utoipa::path(
    post,
    path = routes::DSOURCE,
    tag = "dsources",
    params(("name" = String, Path, description = "Its name")),
    request_body = SetDsource,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn set_dsource(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<SetDsource>,
) -> Accepted {
    accept(service, move |service| service.set_dsource(&name, request)).await
}

/// Receives what the source has flushed by now and takes a snapshot.
#[utoipa::path(
    post,
    path = routes::DSOURCE_SYNC,
    tag = "dsources",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn sync_dsource(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.sync_dsource(&name)).await
}

/// Stops following the source.
#[utoipa::path(
    post,
    path = routes::DSOURCE_PAUSE,
    tag = "dsources",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn pause_dsource(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.pause_dsource(&name)).await
}

/// Follows the source again.
#[utoipa::path(
    post,
    path = routes::DSOURCE_RESUME,
    tag = "dsources",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn resume_dsource(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.resume_dsource(&name)).await
}

/// Removes a dSource; VDBs made from it stay.
#[utoipa::path(
    delete,
    path = routes::DSOURCE,
    tag = "dsources",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn unlink_dsource(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.unlink_dsource(&name)).await
}
