//! VDBs.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{
    ErrorBody, JobAccepted, ProvisionVdb, RefreshVdb, ReparentVdb, RewindVdb, Vdb, VdbList, routes,
};

/// Provisions a VDB.
#[utoipa::path(
    post,
    path = routes::VDBS,
    tag = "vdbs",
    request_body = ProvisionVdb,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn provision_vdb(
    Service(service): Service,
    Body(request): Body<ProvisionVdb>,
) -> Accepted {
    accept(service, move |service| service.provision_vdb(request, None)).await
}

/// All VDBs, by name.
#[utoipa::path(
    get,
    path = routes::VDBS,
    tag = "vdbs",
    responses((status = 200, body = VdbList, description = "All VDBs"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_vdbs(Service(service): Service) -> Answer<VdbList> {
    answer(service, move |service| service.list_vdbs().map(|vdbs| VdbList { vdbs })).await
}

/// One VDB.
#[utoipa::path(
    get,
    path = routes::VDB,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Vdb, description = "The VDB"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_vdb(Service(service): Service, Name(name): Name) -> Answer<Vdb> {
    answer(service, move |service| service.show_vdb(&name)).await
}

/// Starts a stopped VDB.
#[utoipa::path(
    post,
    path = routes::VDB_START,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn start_vdb(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.start_vdb(&name)).await
}

/// Stops a running VDB; its data is kept.
#[utoipa::path(
    post,
    path = routes::VDB_STOP,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn stop_vdb(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.stop_vdb(&name)).await
}

/// Gives a running VDB another password; sessions that are open stay.
#[utoipa::path(
    post,
    path = routes::VDB_RESET_PASSWORD,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn reset_password_of_vdb(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.reset_password_of_vdb(&name)).await
}

/// Deletes a VDB; what was made from it stays.
#[utoipa::path(
    delete,
    path = routes::VDB,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn delete_vdb(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.delete_vdb(&name)).await
}

/// Gives a VDB another parent, which the next refresh opens a moment of.
#[utoipa::path(
    post,
    path = routes::VDB_PARENT,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name")),
    request_body = ReparentVdb,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn reparent_vdb(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<ReparentVdb>,
) -> Accepted {
    accept(service, move |service| service.reparent_vdb(&name, request)).await
}

/// Opens another moment of the parent under the same name.
#[utoipa::path(
    post,
    path = routes::VDB_REFRESH,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name")),
    request_body = RefreshVdb,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn refresh_vdb(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<RefreshVdb>,
) -> Accepted {
    accept(service, move |service| service.refresh_vdb(&name, request)).await
}

/// Goes back to an earlier state of the VDB itself.
#[utoipa::path(
    post,
    path = routes::VDB_REWIND,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name")),
    request_body = RewindVdb,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn rewind_vdb(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<RewindVdb>,
) -> Accepted {
    accept(service, move |service| service.rewind_vdb(&name, request)).await
}
