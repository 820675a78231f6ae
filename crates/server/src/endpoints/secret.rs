//! How passwords are sealed.

use crate::endpoints::Service;
use crate::extract::Body;
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{ErrorBody, JobAccepted, RotateSecrets, Secrets, routes};

/// How the passwords that the pool keeps are sealed.
#[utoipa::path(
    get,
    path = routes::SECRETS,
    tag = "secrets",
    responses((status = 200, body = Secrets, description = "How they are sealed"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn secrets(Service(service): Service) -> Answer<Secrets> {
    answer(service, move |service| service.secrets()).await
}

/// Makes a new key and seals all passwords with it.
#[utoipa::path(
    post,
    path = routes::SECRETS_ROTATE,
    tag = "secrets",
    request_body = RotateSecrets,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn rotate_secrets(
    Service(service): Service,
    Body(request): Body<RotateSecrets>,
) -> Accepted {
    accept(service, move |service| service.rotate_secrets(request)).await
}
