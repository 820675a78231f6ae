//! Answers and refusals: every refusal, ours or the engine's, has the same body.

use crate::EngineService;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use offshoot_api::{ErrorBody, JobAccepted};
use offshoot_types::{ErrorKind, Failure, JobId};
use std::sync::Arc;

/// Why a request was not done, beside its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome(pub(crate) ErrorKind);

/// A request that was not done.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) failure: Failure,
}

/// An answer with a document.
pub(crate) type Answer<T> = Result<Json<T>, Refusal>;
/// An answer with the id of the job that does the work.
pub(crate) type Accepted = Result<(StatusCode, Json<JobAccepted>), Refusal>;

/// Asks the service, which may block, without holding up other requests.
pub(crate) async fn ask<T: Send + 'static>(
    service: Arc<dyn EngineService>,
    call: impl FnOnce(&dyn EngineService) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Refusal> {
    ask_of(move || call(service.as_ref())).await
}

/// Does what may block without holding up other requests.
async fn ask_of<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(failure)) => {
            if failure.code == ErrorKind::Internal {
                tracing::error!(message = %failure.message, "a request failed by a defect");
            }
            Err(Refusal::from(failure))
        }
        Err(panic) => {
            tracing::error!(%panic, "a request panicked");
            Err(Failure::internal("the engine failed while it worked on the request").into())
        }
    }
}

/// [`ask`] for a document.
pub(crate) async fn answer<T: Send + 'static>(
    service: Arc<dyn EngineService>,
    call: impl FnOnce(&dyn EngineService) -> Result<T, Failure> + Send + 'static,
) -> Answer<T> {
    ask(service, call).await.map(Json)
}

/// [`ask_of`] for a document.
pub(crate) async fn answer_of<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Answer<T> {
    ask_of(call).await.map(Json)
}

/// [`ask`] for a job.
pub(crate) async fn accept(
    service: Arc<dyn EngineService>,
    call: impl FnOnce(&dyn EngineService) -> Result<JobId, Failure> + Send + 'static,
) -> Accepted {
    let job = ask(service, call).await?;
    Ok((StatusCode::ACCEPTED, Json(JobAccepted { job })))
}

impl Refusal {
    /// A malformed request.
    pub(crate) fn wrong(status: StatusCode, message: impl Into<String>, hint: &str) -> Self {
        Refusal { status, failure: Failure::new(ErrorKind::InvalidInput, message, hint) }
    }
}

/// The status that a kind of failure is answered with.
pub(crate) fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidInput => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::AlreadyExists
        | ErrorKind::Busy
        | ErrorKind::WrongState
        | ErrorKind::Cancelled => StatusCode::CONFLICT,
        ErrorKind::MomentUnavailable | ErrorKind::SourceRefused => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::SourceUnreachable => StatusCode::BAD_GATEWAY,
        ErrorKind::HostUnprepared | ErrorKind::EngineUnreachable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::PoolFull => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::DataDamaged | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal { status: status_of(failure.code), failure }
    }
}

const FORMAT_HINT: &str = "the OpenAPI document at /api/v1/openapi.json says what is expected";

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        Refusal::wrong(rejection.status(), rejection.body_text(), FORMAT_HINT)
    }
}

impl From<QueryRejection> for Refusal {
    fn from(rejection: QueryRejection) -> Self {
        Refusal::wrong(rejection.status(), rejection.body_text(), FORMAT_HINT)
    }
}

impl From<PathRejection> for Refusal {
    fn from(rejection: PathRejection) -> Self {
        Refusal::wrong(rejection.status(), rejection.body_text(), FORMAT_HINT)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let unauthorized = self.status == StatusCode::UNAUTHORIZED;
        let outcome = Outcome(self.failure.code);
        let mut response = (self.status, Json(ErrorBody::from(self.failure))).into_response();
        response.extensions_mut().insert(outcome);
        if unauthorized {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}
