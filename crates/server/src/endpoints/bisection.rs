//! Searches for the commit at which an answer changed.

use crate::endpoints::Service;
use crate::extract::{Body, Id};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{Bisection, ErrorBody, JobAccepted, StartBisection, routes};
use offshoot_types::JobId;

/// Looks for the commit at which the answer to a query changed, by a job whose id says what it found.
#[utoipa::path(
    post,
    path = routes::BISECTIONS,
    tag = "bisections",
    request_body = StartBisection,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn start_bisection(
    Service(service): Service,
    Body(request): Body<StartBisection>,
) -> Accepted {
    accept(service, move |service| service.start_bisection(request)).await
}

/// What such a job found. It shows answers: to a developer those of its own jobs.
#[utoipa::path(
    get,
    path = routes::BISECTION,
    tag = "bisections",
    params(("id" = String, Path, description = "The job", example = "job-12")),
    responses((status = 200, body = Bisection, description = "What was found"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_bisection(
    Service(service): Service,
    Id(id): Id<JobId>,
) -> Answer<Bisection> {
    answer(service, move |service| service.show_bisection(id)).await
}
