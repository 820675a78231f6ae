//! Timeflows.

use crate::endpoints::Service;
use crate::extract::{Filter, Name};
use crate::reply::{Answer, Refusal, answer};
use axum::http::StatusCode;
use jiff::Timestamp;
use offshoot_api::{CommitCounts, ErrorBody, TimeflowList, routes};
use serde::Deserialize;
use utoipa::IntoParams;

/// The most parts of a time that commits are counted in.
const PARTS_MAX: usize = 1000;

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

/// Which commits to count, and how finely.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CommitsQuery {
    /// From this time on, by the source's clock.
    #[param(value_type = String, format = DateTime)]
    from: Timestamp,
    /// Up to this time; what was committed at it is not counted.
    #[param(value_type = String, format = DateTime)]
    to: Timestamp,
    /// Into how many equal parts to divide it, at most 1000.
    #[param(minimum = 1, maximum = 1000)]
    parts: usize,
}

/// How many commits the source of a dSource made, by time: those whose log is kept.
#[utoipa::path(
    get,
    path = routes::TIMEFLOW_COMMITS,
    tag = "timeflows",
    params(("name" = String, Path, description = "The name of a dSource"), CommitsQuery),
    responses((status = 200, body = CommitCounts, description = "The counts"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn count_commits(
    Service(service): Service,
    Name(name): Name,
    Filter(query): Filter<CommitsQuery>,
) -> Answer<CommitCounts> {
    let CommitsQuery { from, to, parts } = query;
    if from >= to || !(1..=PARTS_MAX).contains(&parts) {
        return Err(Refusal::wrong(
            StatusCode::BAD_REQUEST,
            "commits are counted from a time to a later one, in 1 to 1000 parts",
            "give from, to and parts accordingly",
        ));
    }
    let part_ms = to.duration_since(from).as_secs_f64() * 1000.0 / parts as f64;
    answer(service, move |service| {
        let counts = service.count_commits(&name, from, to, parts)?;
        Ok(CommitCounts { from, part_ms, counts })
    })
    .await
}
