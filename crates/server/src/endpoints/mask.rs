//! Masking.

pub(crate) mod keys;
pub(crate) mod report;

use crate::endpoints::Service;
use crate::extract::{Body, Id, Name};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{
    ApplyMask, DiscoverMask, Discovery, ErrorBody, JobAccepted, Mask, MaskList, MaskPreview,
    PreviewMask, routes,
};
use offshoot_types::JobId;

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
    // Who it is the guard knows.
    accept(service, move |service| service.apply_mask(request, "")).await
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

/// Looks for what should be masked, by a job whose id says what it found.
#[utoipa::path(
    post,
    path = routes::MASK_DISCOVERIES,
    tag = "masks",
    request_body = DiscoverMask,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn discover_mask(
    Service(service): Service,
    Body(request): Body<DiscoverMask>,
) -> Accepted {
    accept(service, move |service| service.discover_mask(request)).await
}

/// What a job found that should be masked. It tells no value.
#[utoipa::path(
    get,
    path = routes::MASK_DISCOVERY,
    tag = "masks",
    params(("id" = String, Path, description = "The job", example = "job-12")),
    responses((status = 200, body = Discovery, description = "What was found"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_discovery(
    Service(service): Service,
    Id(id): Id<JobId>,
) -> Answer<Discovery> {
    answer(service, move |service| service.show_discovery(id)).await
}

/// Masks some rows of a table, to be looked at. Nothing of it is kept.
#[utoipa::path(
    post,
    path = routes::MASK_PREVIEWS,
    tag = "masks",
    request_body = PreviewMask,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn preview_mask(
    Service(service): Service,
    Body(request): Body<PreviewMask>,
) -> Accepted {
    accept(service, move |service| service.preview_mask(request)).await
}

/// The rows that a job has masked, once.
#[utoipa::path(
    get,
    path = routes::MASK_PREVIEW,
    tag = "masks",
    params(("id" = String, Path, description = "The job", example = "job-12")),
    responses((status = 200, body = MaskPreview, description = "The rows"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_preview(
    Service(service): Service,
    Id(id): Id<JobId>,
) -> Answer<MaskPreview> {
    answer(service, move |service| service.show_preview(id)).await
}
