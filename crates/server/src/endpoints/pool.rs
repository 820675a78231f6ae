//! The engine and its pool.

use crate::endpoints::Service;
use crate::reply::{Accepted, Answer, accept, answer};
use axum::extract::State;
use offshoot_api::{ErrorBody, JobAccepted, PoolStatus, Status, routes};

/// The engine at a glance.
#[utoipa::path(
    get,
    path = routes::STATUS,
    tag = "engine",
    responses((status = 200, body = Status, description = "The engine"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn status(State(service): Service) -> Answer<Status> {
    answer(service, move |service| service.status()).await
}

/// What the pool holds.
#[utoipa::path(
    get,
    path = routes::POOL,
    tag = "pool",
    responses((status = 200, body = PoolStatus, description = "The pool"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn pool_status(State(service): Service) -> Answer<PoolStatus> {
    answer(service, move |service| service.pool_status()).await
}

/// Gives space that nothing needs back to the filesystem.
#[utoipa::path(
    post,
    path = routes::POOL_RECLAIM,
    tag = "pool",
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn reclaim_pool(State(service): Service) -> Accepted {
    accept(service, move |service| service.reclaim_pool()).await
}
