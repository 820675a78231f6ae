//! Jobs.

use crate::endpoints::Service;
use crate::extract::Id;
use crate::reply::{Answer, answer};
use offshoot_api::{ErrorBody, Job, JobList, routes};
use offshoot_types::JobId;

/// Jobs, newest first.
#[utoipa::path(
    get,
    path = routes::JOBS,
    tag = "jobs",
    responses((status = 200, body = JobList, description = "Jobs"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_jobs(Service(service): Service) -> Answer<JobList> {
    answer(service, move |service| service.list_jobs().map(|jobs| JobList { jobs })).await
}

/// One job.
#[utoipa::path(
    get,
    path = routes::JOB,
    tag = "jobs",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Job, description = "Job"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_job(Service(service): Service, Id(id): Id<JobId>) -> Answer<Job> {
    answer(service, move |service| service.show_job(id)).await
}

/// Asks a job to stop and undo what it did.
#[utoipa::path(
    post,
    path = routes::JOB_CANCEL,
    tag = "jobs",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Job, description = "Job"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn cancel_job(Service(service): Service, Id(id): Id<JobId>) -> Answer<Job> {
    answer(service, move |service| service.cancel_job(id)).await
}
