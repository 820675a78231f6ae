//! What every request passes before its handler: is it meant for this engine, who sends it, may he, and is all of it
//! there? And what the audit keeps of it.
//!
//! 1. [`host`]: the name by which the engine was reached.
//! 2. [`Caller`]: who asks. The kernel says so for the Unix socket; others show a token.
//! 3. [`table`]: whether such a caller may ask for this at all.
//! 4. The body, all of it. It may take a while, so the caller is looked at once more. An archive is read as it comes, and
//!    by nobody who may not send it.
//! 5. [`Guard`](guard::Guard): what of the engine this caller reaches.
//! 6. [`record`]: what was changed or refused, before the answer is sent.

pub(crate) mod accounts;
mod attempts;
mod caller;
pub(crate) mod guard;
mod host;
mod record;
mod sessions;
mod settings;
mod table;

pub(crate) use caller::Caller;
use caller::Proof;

use crate::listen::Peer;
use crate::reply::Refusal;
use crate::{Accounts, Token};
use attempts::Attempts;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use offshoot_api::digest::sha256_hex;
use offshoot_api::routes;
use offshoot_types::{ErrorKind, Failure};
use record::Pending;
use sessions::{Bearer, Made, Sessions};
use std::sync::Arc;
use std::time::Duration;
use table::Right;

/// The largest request body, in bytes. Settings of a VDB are the largest thing anyone sends.
const BODY_BYTES_MAX: usize = 1 << 20;
/// The same where rules of masking are sent, which may contain lists.
const RULES_BYTES_MAX: usize = 32 << 20;
/// How long a body may take, all of it.
const BODY_WITHIN: Duration = Duration::from_secs(20);
/// What is taken off the connection of one who is refused, and for how long.
const DISCARD_BYTES_MAX: usize = 64 << 10;
const DISCARD_WITHIN: Duration = Duration::from_millis(300);

/// Decides who may ask.
pub(crate) struct Access {
    token: Token,
    /// Names that this host is called by, besides its addresses.
    names: Vec<String>,
    accounts: Arc<dyn Accounts>,
    failed: Attempts,
    sessions: Sessions,
}

impl Access {
    pub(crate) fn new(token: Token, names: Vec<String>, accounts: Arc<dyn Accounts>) -> Arc<Self> {
        let (failed, sessions) = (Attempts::default(), Sessions::default());
        Arc::new(Access { token, names, accounts, failed, sessions })
    }

    /// Who asks. A token that is shown counts, also where none is needed.
    pub(crate) async fn identify(
        &self,
        peer: Peer,
        headers: &HeaderMap,
    ) -> Result<Caller, Refusal> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(first), None) = (shown.next(), shown.next()) else {
            let known = peer.is_owner() && !headers.contains_key(header::AUTHORIZATION);
            return Ok(if known {
                Caller::owner(peer, Proof::Socket)
            } else {
                Caller::unknown(peer)
            });
        };
        let Some(token) = bearer_token(first) else { return Ok(Caller::unknown(peer)) };
        if self.token.matches(token) {
            return Ok(Caller::owner(peer, Proof::PoolToken));
        }
        let hash = match self.sessions.find(token) {
            Some((Bearer::Owner, _)) => return Ok(Caller::owner(peer, Proof::Session)),
            Some((Bearer::User { token_hash }, _)) => token_hash,
            None => sha256_hex(token.as_bytes()),
        };
        let accounts = self.accounts.clone();
        let found = tokio::task::spawn_blocking(move || accounts.account_of_token(&hash)).await;
        let found = found.map_err(|panic| Failure::internal(panic.to_string()))??;
        Ok(match found {
            Some(account) => Caller::user(peer, account),
            None => Caller::unknown(peer),
        })
    }

    /// A code by which somebody who is known signs in to the console. A session gives none.
    pub(crate) fn new_code(&self, headers: &HeaderMap) -> Result<Made, Failure> {
        let bearer = match shown_token(headers) {
            Some(token) if self.sessions.find(token).is_some() => {
                return Err(Failure::new(
                    ErrorKind::Forbidden,
                    "a session of the console opens no other one",
                    "ask with your own token, or on the engine's host: offshoot console",
                ));
            }
            Some(token) if !self.token.matches(token) => {
                Bearer::User { token_hash: sha256_hex(token.as_bytes()) }
            }
            _ => Bearer::Owner,
        };
        self.sessions.code(bearer)
    }

    /// A session for a code. Who brings wrong ones often is told so in place of an answer.
    pub(crate) fn open_session(&self, caller: &Caller, code: &str) -> Result<Made, Refusal> {
        match self.sessions.open(code)? {
            Some(session) => Ok(session),
            None if !self.failed.allow(caller.peer().share()) => Err(too_many()),
            None => Err(Failure::new(
                ErrorKind::Unauthorized,
                "this link was used, or is older than ten minutes",
                "ask for another one: offshoot console",
            )
            .into()),
        }
    }

    /// When the session ends whose token is shown; none where it is no session's.
    pub(crate) fn session_end(&self, headers: &HeaderMap) -> Option<jiff::Timestamp> {
        Some(self.sessions.find(shown_token(headers)?)?.1)
    }

    /// Ends the session whose token is shown.
    pub(crate) fn end_session(&self, headers: &HeaderMap) {
        if let Some(token) = shown_token(headers) {
            self.sessions.end(token);
        }
    }

    /// Refuses one without a token. Who fails often is told so in place of an answer, and is not recorded each time; a
    /// right token is never refused for it, as others of the same host or network would be locked out with him.
    fn unauthorized(&self, caller: &Caller, headers: &HeaderMap) -> Refusal {
        if !self.failed.allow(caller.peer().share()) {
            return too_many();
        }
        let message = match headers.contains_key(header::AUTHORIZATION) {
            true => "the token is not one of this engine's, or has expired",
            false => "the request shows no token",
        };
        tracing::warn!(peer = caller.origin(), message, "a request was refused");
        let hint = "send `Authorization: Bearer TOKEN`; on the command line name a file with your token by \
                    --token-file. An administrator makes one: offshoot token create --user NAME";
        Failure::new(ErrorKind::Unauthorized, message, hint).into()
    }

    /// Whether this caller may ask for this endpoint.
    fn check(
        &self,
        caller: &Caller,
        method: &Method,
        route: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        let row = route.map(|route| table::row(method, route));
        if matches!(row, Some(Some((Right::Anybody, _))))
            && !headers.contains_key(header::AUTHORIZATION)
        {
            return Ok(());
        }
        if !caller.is_known() {
            return Err(self.unauthorized(caller, headers));
        }
        match row {
            // There is nothing there, or not by this method: the router says so.
            None | Some(None) => Ok(()),
            Some(Some((right, _))) if right.is_of(caller.role()) => Ok(()),
            Some(Some((_, action))) => Err(Failure::new(
                ErrorKind::Forbidden,
                format!("'{action}' is not for users of the role {}", caller.role()),
                "ask an administrator",
            )
            .into()),
        }
    }

    /// Steps 2 to 4: who asks, and the request with its whole body.
    async fn admit(
        &self,
        peer: Peer,
        request: Request,
        route: Option<&str>,
    ) -> (Caller, Bytes, Result<Request, Refusal>) {
        let (method, headers) = (request.method().clone(), request.headers().clone());
        let refused = |caller, refusal| (caller, Bytes::new(), Err(refusal));
        let caller = match self.identify(peer, &headers).await {
            Ok(caller) => caller,
            Err(refusal) => return refused(Caller::unknown(peer), refusal),
        };
        if let Err(refusal) = self.check(&caller, &method, route, &headers) {
            discard(request.into_body()).await;
            return refused(caller, refusal);
        }
        if route.is_some_and(is_stream) {
            return (caller, Bytes::new(), Ok(request));
        }
        let (parts, body) = request.into_parts();
        let bytes = match read(body, body_bytes_max(route)).await {
            Ok(bytes) => bytes,
            Err(refusal) => return refused(caller, refusal),
        };
        // A token may have been revoked while its bearer sent the body.
        let caller = match self.identify(peer, &headers).await {
            Ok(caller) => caller,
            Err(refusal) => return refused(caller, refusal),
        };
        if let Err(refusal) = self.check(&caller, &method, route, &headers) {
            return refused(caller, refusal);
        }
        (caller, bytes.clone(), Ok(Request::from_parts(parts, Body::from(bytes))))
    }
}

fn too_many() -> Refusal {
    Refusal::wrong(
        StatusCode::TOO_MANY_REQUESTS,
        "too many requests without a right token came from this address",
        "wait a second, and send the token of this engine",
    )
}

/// The one token that is shown.
fn shown_token(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION).and_then(bearer_token)
}

fn bearer_token(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()?.strip_prefix("Bearer ")
}

/// Admits requests of those who may ask, and records what they changed. Nothing of a body is kept before it is known
/// that its sender may ask.
pub(crate) async fn admit(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(peer) = request.extensions().get::<Peer>().copied() else {
        return last_answer(Failure::internal("a request came from nowhere").into());
    };
    if let Peer::Remote(_) = peer
        && let Err(refusal) = host::check(&request, &access.names)
    {
        return last_answer(refusal);
    }
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let (caller, body, admitted) = access.admit(peer, request, route.as_deref()).await;
    let response = match admitted {
        Ok(mut request) => {
            request.extensions_mut().insert(caller.clone());
            next.run(request).await
        }
        Err(refusal) => last_answer(refusal),
    };
    // What takes a whole database out of the engine is kept, too.
    let changes = ![Method::GET, Method::HEAD].contains(&method)
        || route.as_deref() == Some(routes::REPLICATION_ARCHIVE);
    let Some(route) = route.filter(|_| changes || Pending::is_refusal(&response)) else {
        return response;
    };
    let Some((_, action)) = table::row(&method, &route) else { return response };
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        return response;
    }
    let object = record::object_of(&route, &path, &body);
    Pending::new(&caller, action, object).complete(access.accounts.clone(), response).await
}

/// The answer to a request of which something may not be read: the connection cannot be used again.
fn last_answer(refusal: Refusal) -> Response {
    let mut response = refusal.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Whether the body is as long as a database, and is read as it comes.
fn is_stream(route: &str) -> bool {
    route == routes::REPLICATION_ARCHIVES
}

fn body_bytes_max(route: Option<&str>) -> usize {
    match route {
        Some(routes::MASKS | routes::MASKS_CHECK | routes::MASK_PREVIEWS) => RULES_BYTES_MAX,
        _ => BODY_BYTES_MAX,
    }
}

/// Takes a short body off the connection of one who is refused, and keeps nothing of it: if the connection were closed before, he
/// would fail to send it, and never read why he is refused.
async fn discard(body: Body) {
    let _ = tokio::time::timeout(DISCARD_WITHIN, to_bytes(body, DISCARD_BYTES_MAX)).await;
}

/// Reads a body, so that it has one time and one size for everything.
async fn read(body: Body, bytes_max: usize) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(BODY_WITHIN, to_bytes(body, bytes_max)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_large(&error) => Err(Refusal::wrong(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {bytes_max} bytes"),
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
