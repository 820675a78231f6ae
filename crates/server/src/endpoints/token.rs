//! Tokens of users.

use crate::Token as Secret;
use crate::endpoints::App;
use crate::extract::{Body, Id};
use crate::reply::{Answer, answer_of};
use axum::extract::State;
use offshoot_api::digest::sha256_hex;
use offshoot_api::{CreateToken, CreatedToken, ErrorBody, Token, TokenList, routes};
use offshoot_types::TokenId;
use std::time::Duration;

/// Makes a token for a user. It is shown this once; the engine keeps only its hash.
#[utoipa::path(
    post,
    path = routes::TOKENS,
    tag = "users",
    request_body = CreateToken,
    responses((status = 200, body = CreatedToken, description = "The token"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn create_token(
    State(app): State<App>,
    Body(request): Body<CreateToken>,
) -> Answer<CreatedToken> {
    answer_of(move || {
        let secret = Secret::random();
        let expires_in = request.expires_in_ms.map(Duration::from_millis);
        let hash = sha256_hex(secret.reveal().as_bytes());
        let Token { id, user, expires_at, .. } =
            app.accounts.add_token(&request.user, hash, expires_in)?;
        Ok(CreatedToken { id, user, expires_at, token: secret.reveal().to_owned() })
    })
    .await
}

/// All tokens, oldest first.
#[utoipa::path(
    get,
    path = routes::TOKENS,
    tag = "users",
    responses((status = 200, body = TokenList, description = "All tokens"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_tokens(State(app): State<App>) -> Answer<TokenList> {
    answer_of(move || app.accounts.list_tokens().map(|tokens| TokenList { tokens })).await
}

/// Takes a token back.
#[utoipa::path(
    delete,
    path = routes::TOKEN,
    tag = "users",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Token, description = "What it was"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn revoke_token(State(app): State<App>, Id(id): Id<TokenId>) -> Answer<Token> {
    answer_of(move || app.accounts.revoke_token(id)).await
}
