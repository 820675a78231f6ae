//! Signing in to the console.

use crate::access::Caller;
use crate::endpoints::App;
use crate::extract::Body;
use crate::reply::Answer;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use offshoot_api::{
    ConsoleCode, ConsoleSession, ErrorBody, OpenConsoleSession, OpenedConsoleSession, Role, routes,
};

/// Makes a code that opens one session of the console for whoever asks.
#[utoipa::path(
    post,
    path = routes::CONSOLE_CODES,
    tag = "console",
    responses((status = 200, body = ConsoleCode, description = "The code"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn create_code(State(app): State<App>, headers: HeaderMap) -> Answer<ConsoleCode> {
    let made = app.access.new_code(&headers)?;
    let code = made.secret.reveal().to_owned();
    let path = format!("/#code={code}");
    Ok(Json(ConsoleCode { code, path, expires_at: made.expires_at }))
}

/// Opens a session for a code, without a token. A code opens one session.
#[utoipa::path(
    post,
    path = routes::CONSOLE_SESSION,
    tag = "console",
    request_body = OpenConsoleSession,
    security(()),
    responses((status = 200, body = OpenedConsoleSession, description = "The session"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn open_session(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<OpenConsoleSession>,
) -> Answer<OpenedConsoleSession> {
    let made = app.access.open_session(&caller, &request.code)?;
    let token = made.secret.reveal().to_owned();
    Ok(Json(OpenedConsoleSession { token, expires_at: made.expires_at }))
}

/// Says who asks, as the engine knows it.
#[utoipa::path(
    get,
    path = routes::CONSOLE_SESSION,
    tag = "console",
    responses((status = 200, body = ConsoleSession, description = "Who asks"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_session(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Json<ConsoleSession> {
    Json(session(&app, &caller, &headers))
}

/// Ends the session whose token is shown; another token stays what it is.
#[utoipa::path(
    delete,
    path = routes::CONSOLE_SESSION,
    tag = "console",
    responses((status = 200, body = ConsoleSession, description = "What it was"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn end_session(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Json<ConsoleSession> {
    let ended = session(&app, &caller, &headers);
    app.access.end_session(&headers);
    Json(ended)
}

fn session(app: &App, caller: &Caller, headers: &HeaderMap) -> ConsoleSession {
    let role = match caller.role() {
        offshoot_domain::Role::Admin => Role::Admin,
        offshoot_domain::Role::Operator => Role::Operator,
        offshoot_domain::Role::Developer => Role::Developer,
        offshoot_domain::Role::Auditor => Role::Auditor,
    };
    let user = caller.account().map(|account| account.name.clone());
    ConsoleSession { user, role, expires_at: app.access.session_end(headers) }
}
