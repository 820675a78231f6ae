//! What every request passes before its handler: is it meant for this engine, who sends it, and is all of it there?

mod attempts;
mod host;

use crate::Token;
use crate::listen::Peer;
use crate::reply::Refusal;
use attempts::Attempts;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use offshoot_api::routes;
use offshoot_types::{ErrorKind, Failure};
use std::sync::Arc;
use std::time::Duration;

/// The largest request body, in bytes. Settings of a VDB are the largest thing anyone sends.
const BODY_BYTES_MAX: usize = 1 << 20;
/// How long a body may take, all of it.
const BODY_WITHIN: Duration = Duration::from_secs(20);

/// Decides who may ask.
pub(crate) struct Access {
    token: Token,
    /// Names that this host is called by, besides its addresses.
    names: Vec<String>,
    failed: Attempts,
}

impl Access {
    pub(crate) fn new(token: Token, names: Vec<String>) -> Arc<Access> {
        Arc::new(Access { token, names, failed: Attempts::default() })
    }

    /// Whether the request may be answered.
    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let peer = request.extensions().get::<Peer>().copied();
        let Some(peer) = peer else {
            return Err(Failure::internal("a request came from nowhere").into());
        };
        if matches!(peer, Peer::Remote(_)) {
            host::check(request, &self.names)?;
        }
        let shown = request.headers().get(header::AUTHORIZATION);
        let Some(shown) = shown else {
            return match peer.is_owner() || request.uri().path() == routes::OPENAPI {
                true => Ok(()),
                false => Err(self.unauthorized(&peer, "the request shows no token")),
            };
        };
        let token = shown.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
        match token.is_some_and(|token| self.token.matches(token)) {
            true => Ok(()),
            false => Err(self.unauthorized(&peer, "the token is not that of this engine's pool")),
        }
    }

    /// Refuses one without a token. Who fails often is told so in place of an answer; a right token is never refused
    /// for it, as others of the same host or network would be locked out with him.
    fn unauthorized(&self, peer: &Peer, message: &str) -> Refusal {
        if !self.failed.allow(peer.share()) {
            return Refusal::wrong(
                StatusCode::TOO_MANY_REQUESTS,
                "too many requests without a right token came from this address",
                "wait a second, and send the token of this engine",
            );
        }
        tracing::warn!(%peer, message, "a request was refused");
        let hint = "send `Authorization: Bearer TOKEN` with what the file `token` in the engine's pool \
                    directory holds; on the command line name that pool with --pool, or the file with \
                    --token-file";
        Failure::new(ErrorKind::Unauthorized, message, hint).into()
    }
}

/// Admits requests of those who may ask, with their whole body. Nothing of a body is read before.
pub(crate) async fn admit(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    if let Err(refusal) = access.check(&request) {
        return last_answer(refusal);
    }
    match with_body(request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => last_answer(refusal),
    }
}

/// The answer to a request of which something may not be read: the connection cannot be used again.
fn last_answer(refusal: Refusal) -> Response {
    let mut response = refusal.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Reads the body, so that it has one time and one size for everything.
async fn with_body(request: Request) -> Result<Request, Refusal> {
    let (parts, body) = request.into_parts();
    let whole = tokio::time::timeout(BODY_WITHIN, to_bytes(body, BODY_BYTES_MAX)).await;
    match whole {
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
        Ok(Err(error)) if is_too_large(&error) => Err(Refusal::wrong(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {BODY_BYTES_MAX} bytes"),
            "no request needs as many: see the OpenAPI document at /api/v1/openapi.json",
        )),
        Ok(Err(error)) => Err(Refusal::wrong(
            StatusCode::BAD_REQUEST,
            format!("the body did not arrive: {error}"),
            "send it again",
        )),
        Err(_) => Err(Refusal::wrong(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body was not there within {} s", BODY_WITHIN.as_secs()),
            "send it again, at once",
        )),
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = cause {
        if one.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        cause = one.source();
    }
    false
}
