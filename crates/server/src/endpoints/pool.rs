//! The engine and its pool.

use crate::endpoints::Service;
use crate::extract::{Body, Filter};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{
    ErrorBody, JobAccepted, Ledger, PoolStatus, ScrubPool, ScrubReport, Status, routes,
};
use offshoot_types::{ErrorKind, Failure};
use serde::Deserialize;
use utoipa::IntoParams;

/// Which entries of the ledger.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LedgerFilter {
    /// The name of a dSource or VDB, whose snapshots are shown, too, or a snapshot's id; everything where absent.
    object: Option<String>,
    /// Names and ids with commas between: the entries of these, and what deleting all of them together
    /// would give back. Not with `object`.
    delete: Option<String>,
}

/// The engine at a glance.
#[utoipa::path(
    get,
    path = routes::STATUS,
    tag = "engine",
    responses((status = 200, body = Status, description = "The engine"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn status(Service(service): Service) -> Answer<Status> {
    answer(service, move |service| service.status()).await
}

/// What the pool holds.
#[utoipa::path(
    get,
    path = routes::POOL,
    tag = "pool",
    responses((status = 200, body = PoolStatus, description = "The pool"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn pool_status(Service(service): Service) -> Answer<PoolStatus> {
    answer(service, move |service| service.pool_status()).await
}

/// What dSources, VDBs and snapshots hold of the pool.
#[utoipa::path(
    get,
    path = routes::POOL_LEDGER,
    tag = "pool",
    params(LedgerFilter),
    responses((status = 200, body = Ledger, description = "The ledger"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn ledger(
    Service(service): Service,
    Filter(filter): Filter<LedgerFilter>,
) -> Answer<Ledger> {
    answer(service, move |service| match (filter.object, filter.delete) {
        (Some(_), Some(_)) => Err(Failure::new(
            ErrorKind::InvalidInput,
            "`object` and `delete` ask for different things",
            "give one of them",
        )),
        (object, None) => service.ledger(object.as_deref()),
        (None, Some(delete)) => {
            let objects: Vec<String> = delete.split(',').map(str::to_owned).collect();
            service.ledger_deletion(&objects)
        }
    })
    .await
}

/// Gives space that nothing needs back to the filesystem.
#[utoipa::path(
    post,
    path = routes::POOL_RECLAIM,
    tag = "pool",
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn reclaim_pool(Service(service): Service) -> Accepted {
    accept(service, move |service| service.reclaim_pool()).await
}

/// The last scrub, and the known damage.
#[utoipa::path(
    get,
    path = routes::POOL_SCRUB,
    tag = "pool",
    responses((status = 200, body = ScrubReport, description = "The scrub"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn last_scrub(Service(service): Service) -> Answer<ScrubReport> {
    answer(service, move |service| service.last_scrub()).await
}

/// Reads and verifies everything in the pool.
#[utoipa::path(
    post,
    path = routes::POOL_SCRUB,
    tag = "pool",
    request_body = ScrubPool,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn scrub_pool(
    Service(service): Service,
    Body(request): Body<ScrubPool>,
) -> Accepted {
    accept(service, move |service| service.scrub_pool(request)).await
}
