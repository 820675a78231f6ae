//! VDBs.

use crate::endpoints::Service;
use crate::extract::{Body, Filter, Name};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{
    ErrorBody, JobAccepted, ProvisionVdb, RefreshVdb, ReparentVdb, RewindVdb, SetVdb, Vdb,
    VdbHooks, VdbList, VdbLog, routes,
};
use serde::Deserialize;
use utoipa::IntoParams;

/// How much of a log is shown where nobody says, and at most.
const LOG_BYTES: u64 = 64 << 10;
const LOG_BYTES_MAX: u64 = 1 << 20;

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

/// Changes a VDB: what is said about it, its server's settings, its memory.
#[utoipa::path(
    post,
    path = routes::VDB,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name")),
    request_body = SetVdb,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn set_vdb(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<SetVdb>,
) -> Accepted {
    accept(service, move |service| service.set_vdb(&name, request)).await
}

/// How much of a log to show.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogPart {
    /// At most so many bytes of its end: 65,536 where absent, 1,048,576 at most.
    bytes: Option<u64>,
    /// Only what was written since: the `end` of an earlier answer.
    since: Option<String>,
}

/// The end of the log of a VDB's server, or what was written since it was last read.
#[utoipa::path(
    get,
    path = routes::VDB_LOG,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name"), LogPart),
    responses((status = 200, body = VdbLog, description = "Its last lines"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn vdb_log(
    Service(service): Service,
    Name(name): Name,
    Filter(part): Filter<LogPart>,
) -> Answer<VdbLog> {
    let bytes = part.bytes.unwrap_or(LOG_BYTES).min(LOG_BYTES_MAX);
    answer(service, move |service| service.vdb_log(&name, part.since.as_deref(), bytes)).await
}

/// The hooks of a VDB, with what they run: for its owner alone, and for administrators where nobody else owns it.
#[utoipa::path(
    get,
    path = routes::VDB_HOOKS,
    tag = "vdbs",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = VdbHooks, description = "Its hooks"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn vdb_hooks(Service(service): Service, Name(name): Name) -> Answer<VdbHooks> {
    answer(service, move |service| service.vdb_hooks(&name)).await
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
