//! Timeflows.

use crate::endpoints::Service;
use crate::extract::Name;
use crate::reply::{Answer, answer};
use offshoot_api::{ErrorBody, TimeflowList, routes};

/// What can be opened of a dSource or VDB: its timeflows with their ranges, gaps and snapshots.
#[utoipa::path(
    get,
    path = routes::TIMEFLOWS,
    tag = "timeflows",
    params(("name" = String, Path, description = "The name of a dSource or VDB")),
    responses((status = 200, body = TimeflowList, description = "The history"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_timeflows(
    Service(service): Service,
    Name(name): Name,
) -> Answer<TimeflowList> {
    answer(service, move |service| service.show_timeflows(&name)).await
}
