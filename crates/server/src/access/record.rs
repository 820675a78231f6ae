//! What the audit keeps of a request: taken before it is handled, completed when it is answered.

use super::accounts::{Accounts, Record};
use super::caller::Caller;
use crate::reply::Outcome;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::StatusCode;
use axum::response::Response;
use offshoot_types::JobId;
use serde_json::Value;
use std::sync::Arc;

/// Answers that name a job are short.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The most that is kept of an object's name, in characters.
const OBJECT_MAX: usize = 80;

/// A request that will be recorded.
pub(crate) struct Pending {
    record: Record,
}

impl Pending {
    /// Of this caller, for this action, of this object.
    pub(crate) fn new(caller: &Caller, action: &str, object: String) -> Pending {
        let record = Record {
            user: caller.name(),
            origin: caller.origin(),
            action: action.to_owned(),
            object,
            outcome: String::new(),
            job: None,
            refused: false,
        };
        Pending { record }
    }

    /// Whether an answer has to be recorded even if nothing was changed.
    pub(crate) fn is_refusal(response: &Response) -> bool {
        matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    /// Records how it was answered, before the answer is sent. What cannot be recorded is logged.
    pub(crate) async fn complete(
        mut self,
        accounts: Arc<dyn Accounts>,
        response: Response,
    ) -> Response {
        let (response, job) = job_of(response).await;
        self.record.job = job;
        self.record.refused = Pending::is_refusal(&response);
        let outcome = response.extensions().get::<Outcome>();
        self.record.outcome = outcome.map_or("done", |Outcome(kind)| kind.code()).to_owned();
        let record = self.record;
        let kept = record.clone();
        let recorded = tokio::task::spawn_blocking(move || accounts.record(kept)).await;
        if let Err(why) = recorded
            .map_err(|panic| panic.to_string())
            .and_then(|kept| kept.map_err(|failure| failure.to_string()))
        {
            tracing::error!(
                why,
                user = record.user,
                action = record.action,
                object = record.object,
                outcome = record.outcome,
                "the audit lacks this request"
            );
        }
        response
    }
}

/// The job that an answer names.
async fn job_of(response: Response) -> (Response, Option<JobId>) {
    if response.status() != StatusCode::ACCEPTED {
        return (response, None);
    }
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, ANSWER_BYTES_MAX).await.unwrap_or_default();
    let said: Option<Value> = serde_json::from_slice(&bytes).ok();
    let job = said.and_then(|said| said.get("job")?.as_str()?.parse().ok());
    (Response::from_parts(parts, Body::from(bytes)), job)
}

/// The object that a request is about: the last but one part of its path where the route has a parameter, else the name
/// in its body. Bounded, and without what a terminal would act on.
pub(crate) fn object_of(route: &str, path: &str, body: &Bytes) -> String {
    let named = route.split('/').zip(path.split('/')).find(|(part, _)| part.starts_with('{'));
    let text = match named {
        Some((_, value)) => value.to_owned(),
        None => named_in(body).unwrap_or_default(),
    };
    text.chars()
        .take(OBJECT_MAX)
        .map(|one| if one.is_control() { '\u{fffd}' } else { one })
        .collect()
}

fn named_in(body: &Bytes) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let name = ["name", "object", "user"].into_iter().find_map(|field| body.get(field)?.as_str());
    let both = || {
        let of = |side: &str| body.get(side)?.get("object")?.as_str();
        Some(format!("{}, {}", of("left")?, of("right")?))
    };
    name.map(str::to_owned).or_else(both)
}

#[cfg(test)]
mod tests;
