//! Reports of masking.

use crate::endpoints::Service;
use crate::extract::{Filter, Name};
use crate::reply::{Answer, answer};
use offshoot_api::{ErrorBody, MaskReportFormat, MaskReportKey, SignedMaskReport, routes};
use offshoot_types::SnapshotId;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which report, and how it is written.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReportQuery {
    /// How the document is written; JSON where absent.
    format: Option<MaskReportFormat>,
    /// An image of the masked dSource; the newest where absent.
    #[param(value_type = Option<String>, example = "snapshot-7")]
    snapshot: Option<SnapshotId>,
}

/// The signed report of a masked image: what was masked with what, in names and counts, never a value.
#[utoipa::path(
    get,
    path = routes::MASK_REPORT,
    tag = "masks",
    params(("name" = String, Path, description = "The masked dSource"), ReportQuery),
    responses((status = 200, body = SignedMaskReport, description = "The report"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn mask_report(
    Service(service): Service,
    Name(name): Name,
    Filter(query): Filter<ReportQuery>,
) -> Answer<SignedMaskReport> {
    let format = query.format.unwrap_or_default();
    answer(service, move |service| service.mask_report(&name, format, query.snapshot)).await
}

/// What the signatures of this engine's reports are checked with.
#[utoipa::path(
    get,
    path = routes::MASK_REPORT_KEY,
    tag = "masks",
    responses((status = 200, body = MaskReportKey, description = "The public key"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn mask_report_key(Service(service): Service) -> Answer<MaskReportKey> {
    answer(service, |service| service.mask_report_key()).await
}
