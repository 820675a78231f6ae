//! Groups, and the VDBs made of them.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{
    BookmarkVdbGroup, CreateGroup, ErrorBody, Group, GroupList, JobAccepted, ProvisionVdbGroup,
    RefreshVdbGroup, RewindVdbGroup, VdbGroup, VdbGroupList, routes,
};

/// Makes a group of dSources.
#[utoipa::path(
    post,
    path = routes::GROUPS,
    tag = "groups",
    request_body = CreateGroup,
    responses((status = 200, body = Group, description = "The group"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn create_group(
    Service(service): Service,
    Body(request): Body<CreateGroup>,
) -> Answer<Group> {
    answer(service, move |service| service.create_group(request)).await
}

/// All groups, by name.
#[utoipa::path(
    get,
    path = routes::GROUPS,
    tag = "groups",
    responses((status = 200, body = GroupList, description = "All groups"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_groups(Service(service): Service) -> Answer<GroupList> {
    answer(service, move |service| service.list_groups().map(|groups| GroupList { groups })).await
}

/// One group.
#[utoipa::path(
    get,
    path = routes::GROUP,
    tag = "groups",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Group, description = "The group"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_group(Service(service): Service, Name(name): Name) -> Answer<Group> {
    answer(service, move |service| service.show_group(&name)).await
}

/// Deletes a group; its dSources and the VDBs made of it stay.
#[utoipa::path(
    delete,
    path = routes::GROUP,
    tag = "groups",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Group, description = "What it was"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn delete_group(Service(service): Service, Name(name): Name) -> Answer<Group> {
    answer(service, move |service| service.delete_group(&name)).await
}

/// Makes a VDB of each member of a group, all of one moment, or none.
#[utoipa::path(
    post,
    path = routes::VDB_GROUPS,
    tag = "vdb-groups",
    request_body = ProvisionVdbGroup,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn provision_vdb_group(
    Service(service): Service,
    Body(request): Body<ProvisionVdbGroup>,
) -> Accepted {
    accept(service, move |service| service.provision_vdb_group(request, None)).await
}

/// All VDB groups, by name.
#[utoipa::path(
    get,
    path = routes::VDB_GROUPS,
    tag = "vdb-groups",
    responses((status = 200, body = VdbGroupList, description = "All VDB groups"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_vdb_groups(Service(service): Service) -> Answer<VdbGroupList> {
    answer(service, move |service| {
        service.list_vdb_groups().map(|vdb_groups| VdbGroupList { vdb_groups })
    })
    .await
}

/// One VDB group.
#[utoipa::path(
    get,
    path = routes::VDB_GROUP,
    tag = "vdb-groups",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = VdbGroup, description = "The VDB group"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_vdb_group(
    Service(service): Service,
    Name(name): Name,
) -> Answer<VdbGroup> {
    answer(service, move |service| service.show_vdb_group(&name)).await
}

/// Deletes a VDB group with its VDBs.
#[utoipa::path(
    delete,
    path = routes::VDB_GROUP,
    tag = "vdb-groups",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn delete_vdb_group(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.delete_vdb_group(&name)).await
}

/// Starts all VDBs of it.
#[utoipa::path(
    post,
    path = routes::VDB_GROUP_START,
    tag = "vdb-groups",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn start_vdb_group(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.start_vdb_group(&name)).await
}

/// Stops all VDBs of it.
#[utoipa::path(
    post,
    path = routes::VDB_GROUP_STOP,
    tag = "vdb-groups",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn stop_vdb_group(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.stop_vdb_group(&name)).await
}

/// Opens another moment in all VDBs of it, or in none.
#[utoipa::path(
    post,
    path = routes::VDB_GROUP_REFRESH,
    tag = "vdb-groups",
    params(("name" = String, Path, description = "Its name")),
    request_body = RefreshVdbGroup,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn refresh_vdb_group(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<RefreshVdbGroup>,
) -> Accepted {
    accept(service, move |service| service.refresh_vdb_group(&name, request)).await
}

/// Goes back to bookmarks that were set together, in all VDBs of it or in none.
#[utoipa::path(
    post,
    path = routes::VDB_GROUP_REWIND,
    tag = "vdb-groups",
    params(("name" = String, Path, description = "Its name")),
    request_body = RewindVdbGroup,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn rewind_vdb_group(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<RewindVdbGroup>,
) -> Accepted {
    accept(service, move |service| service.rewind_vdb_group(&name, request)).await
}

/// Sets a bookmark on each VDB of it, or on none.
#[utoipa::path(
    post,
    path = routes::VDB_GROUP_BOOKMARK,
    tag = "vdb-groups",
    params(("name" = String, Path, description = "Its name")),
    request_body = BookmarkVdbGroup,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn bookmark_vdb_group(
    Service(service): Service,
    Name(name): Name,
    Body(request): Body<BookmarkVdbGroup>,
) -> Accepted {
    accept(service, move |service| service.bookmark_vdb_group(&name, request)).await
}
