//! Who did what.

use crate::endpoints::App;
use crate::extract::Filter;
use crate::reply::{Answer, answer_of};
use axum::extract::State;
use jiff::Timestamp;
use offshoot_api::{Audit, ErrorBody, routes};
use offshoot_catalog::AuditFilter;
use serde::Deserialize;
use utoipa::IntoParams;

/// Entries that are shown unless told otherwise, and at most.
const ENTRIES: u32 = 1000;
const ENTRIES_MAX: u32 = 20_000;

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Not older than this.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Of this user.
    user: Option<String>,
    /// The newest so many, at most 20,000; 1,000 where absent.
    limit: Option<u32>,
}

/// Who asked for what, from where, and what became of it; newest first.
#[utoipa::path(
    get,
    path = routes::AUDIT,
    tag = "users",
    params(AuditQuery),
    responses((status = 200, body = Audit, description = "The audit"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn audit(
    State(app): State<App>,
    Filter(query): Filter<AuditQuery>,
) -> Answer<Audit> {
    let AuditQuery { since, user, limit } = query;
    let filter = AuditFilter { since, user, limit: limit.unwrap_or(ENTRIES).min(ENTRIES_MAX) };
    answer_of(move || app.accounts.audit(&filter).map(|entries| Audit { entries })).await
}
