//! Users.

use crate::endpoints::App;
use crate::extract::{Body, Name};
use crate::reply::{Answer, answer_of};
use axum::extract::State;
use offshoot_api::{AddUser, ErrorBody, SetUser, User, UserList, routes};

/// Adds a user.
#[utoipa::path(
    post,
    path = routes::USERS,
    tag = "users",
    request_body = AddUser,
    responses((status = 200, body = User, description = "The user"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn add_user(State(app): State<App>, Body(request): Body<AddUser>) -> Answer<User> {
    answer_of(move || app.accounts.add_user(request)).await
}

/// All users, by name.
#[utoipa::path(
    get,
    path = routes::USERS,
    tag = "users",
    responses((status = 200, body = UserList, description = "All users"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_users(State(app): State<App>) -> Answer<UserList> {
    answer_of(move || app.accounts.list_users().map(|users| UserList { users })).await
}

/// Changes what a user may do. What it has already stays, even if that is more.
#[utoipa::path(
    post,
    path = routes::USER,
    tag = "users",
    params(("name" = String, Path, description = "Its name")),
    request_body = SetUser,
    responses((status = 200, body = User, description = "The user"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn set_user(
    State(app): State<App>,
    Name(name): Name,
    Body(request): Body<SetUser>,
) -> Answer<User> {
    answer_of(move || app.accounts.set_user(&name, request)).await
}

/// Removes a user and its tokens; its VDBs are the administrators' then.
#[utoipa::path(
    delete,
    path = routes::USER,
    tag = "users",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = User, description = "What it was"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn remove_user(State(app): State<App>, Name(name): Name) -> Answer<User> {
    answer_of(move || app.accounts.remove_user(&name)).await
}
