//! Bookmarks.

use crate::endpoints::Service;
use crate::extract::{Body, Name};
use crate::reply::{Accepted, Answer, accept, answer};
use offshoot_api::{Bookmark, BookmarkList, CreateBookmark, ErrorBody, JobAccepted, routes};

/// Gives a name to a moment of a dSource or VDB, which opens from then on.
#[utoipa::path(
    post,
    path = routes::BOOKMARKS,
    tag = "bookmarks",
    request_body = CreateBookmark,
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn create_bookmark(
    Service(service): Service,
    Body(request): Body<CreateBookmark>,
) -> Accepted {
    accept(service, move |service| service.create_bookmark(request)).await
}

/// All bookmarks, by name.
#[utoipa::path(
    get,
    path = routes::BOOKMARKS,
    tag = "bookmarks",
    responses((status = 200, body = BookmarkList, description = "All bookmarks"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn list_bookmarks(Service(service): Service) -> Answer<BookmarkList> {
    answer(service, move |service| {
        service.list_bookmarks().map(|bookmarks| BookmarkList { bookmarks })
    })
    .await
}

/// One bookmark.
#[utoipa::path(
    get,
    path = routes::BOOKMARK,
    tag = "bookmarks",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Bookmark, description = "The bookmark"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn show_bookmark(Service(service): Service, Name(name): Name) -> Answer<Bookmark> {
    answer(service, move |service| service.show_bookmark(&name)).await
}

/// Deletes a bookmark; what was made from it stays.
#[utoipa::path(
    delete,
    path = routes::BOOKMARK,
    tag = "bookmarks",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn delete_bookmark(Service(service): Service, Name(name): Name) -> Accepted {
    accept(service, move |service| service.delete_bookmark(&name)).await
}
