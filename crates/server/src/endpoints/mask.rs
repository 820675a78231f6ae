//! Masking.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{ApplyMask, ErrorBody, JobAccepted, Mask, MaskList, routes};

/// Makes or renews a masked dSource.
#[utoipa::path(
    post,
    path = routes::MASKS,
    tag = "masks",
    request_body = ApplyMask,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn apply_mask(
    Service(service): Service,
    Body(request): Body<ApplyMask>,
) -> Accepted {
    accept(service, move |service| service.apply_mask(request)).await
}

/// Holds rules against a dSource. The job's notes say what was found; it fails if the rules cannot be applied.
#[utoipa::path(
    post,
    path = routes::MASKS_CHECK,
    tag = "masks",
    request_body = ApplyMask,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn check_mask(
    Service(service): Service,
    Body(request): Body<ApplyMask>,
) -> Accepted {
    accept(service, move |service| service.check_mask(request)).await
}

/// All masked dSources, and those that are being made, by name.
#[utoipa::path(
    get,
    path = routes::MASKS,
    tag = "masks",
    responses((status = 200, body = MaskList, description = "All masked dSources"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_masks(Service(service): Service) -> Answer<MaskList> {
    answer(service, move |service| service.list_masks().map(|masks| MaskList { masks })).await
}

/// One masked dSource.
#[utoipa::path(
    get,
    path = routes::MASK,
    tag = "masks",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Mask, description = "The masked dSource"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_mask(Service(service): Service, Name(name): Name) -> Answer<Mask> {
    answer(service, move |service| service.show_mask(&name)).await
}
