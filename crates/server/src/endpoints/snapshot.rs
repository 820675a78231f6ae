//! Snapshots.

use crate::endpoints::Service;
use crate::extract::{Body, Filter, Id};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{ErrorBody, JobAccepted, Snapshot, SnapshotList, TakeSnapshot, routes};
use offshoot_types::SnapshotId;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which snapshots to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SnapshotFilter {
    /// The name of a dSource or VDB; all snapshots where absent.
    object: Option<String>,
}

/// Takes a snapshot of a dSource or VDB.
#[utoipa::path(
    post,
    path = routes::SNAPSHOTS,
    tag = "snapshots",
    request_body = TakeSnapshot,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn take_snapshot(
    Service(service): Service,
    Body(request): Body<TakeSnapshot>,
) -> Accepted {
    accept(service, move |service| service.take_snapshot(request)).await
}

/// Snapshots of one dSource or VDB, or of all; oldest first.
#[utoipa::path(
    get,
    path = routes::SNAPSHOTS,
    tag = "snapshots",
    params(SnapshotFilter),
    responses((status = 200, body = SnapshotList, description = "Snapshots"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_snapshots(
    Service(service): Service,
    Filter(filter): Filter<SnapshotFilter>,
) -> Answer<SnapshotList> {
    answer(service, move |service| {
        service.list_snapshots(filter.object.as_deref()).map(|snapshots| SnapshotList { snapshots })
    })
    .await
}

/// One snapshot.
#[utoipa::path(
    get,
    path = routes::SNAPSHOT,
    tag = "snapshots",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Snapshot, description = "Snapshot"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_snapshot(
    Service(service): Service,
    Id(id): Id<SnapshotId>,
) -> Answer<Snapshot> {
    answer(service, move |service| service.show_snapshot(id)).await
}

/// Deletes a snapshot; what was made from it stays.
#[utoipa::path(
    delete,
    path = routes::SNAPSHOT,
    tag = "snapshots",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn delete_snapshot(Service(service): Service, Id(id): Id<SnapshotId>) -> Accepted {
    accept(service, move |service| service.delete_snapshot(id)).await
}
