//! Comparisons.

use crate::endpoints::Service;
use crate::extract::{Body, Id};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{CreateDiff, Diff, ErrorBody, JobAccepted, routes};
use offshoot_types::JobId;

/// Compares two states, by a job whose id says what differs.
#[utoipa::path(
    post,
    path = routes::DIFFS,
    tag = "diffs",
    request_body = CreateDiff,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn create_diff(
    Service(service): Service,
    Body(request): Body<CreateDiff>,
) -> Accepted {
    accept(service, move |service| service.create_diff(request)).await
}

/// What a job found that differs. It is kept until eight later ones are there.
#[utoipa::path(
    get,
    path = routes::DIFF,
    tag = "diffs",
    params(("id" = String, Path, description = "The job", example = "job-12")),
    responses((status = 200, body = Diff, description = "What differs"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_diff(Service(service): Service, Id(id): Id<JobId>) -> Answer<Diff> {
    answer(service, move |service| service.show_diff(id)).await
}
