//! The console's files: made by `scripts/console.sh` from the sources in `console/`, embedded in the binary. A debug build
//! reads them from there at each request instead, so that a change to the console needs no build of the engine.
//!
//! The page has no right of its own: it holds a token as other clients do and asks the same API. So its files are
//! everybody's. What a browser may do with them is said with each answer ([`secure`]).

use crate::reply::Refusal;
use axum::extract::{Path, Request};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use offshoot_types::{ErrorKind, Failure};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../console/dist"]
struct Files;

/// Scripts, styles and connections of this engine alone, nothing within the page itself, and nobody may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Shown where the console was not built.
const ABSENT: &str = include_str!("console/absent.html");

/// The page.
pub(crate) async fn page() -> Response {
    match Files::get("index.html") {
        Some(file) => answer("index.html", "no-cache", file.data.into_owned()),
        None => answer("index.html", "no-store", ABSENT.into()),
    }
}

/// One of its files. Their names change with their contents.
pub(crate) async fn file(Path(name): Path<String>) -> Result<Response, Refusal> {
    match Files::get(&name).filter(|_| !name.starts_with('.')) {
        Some(file) => Ok(answer(&name, "max-age=31536000, immutable", file.data.into_owned())),
        None => Err(Failure::new(
            ErrorKind::NotFound,
            "the console has no such file",
            "reload the page: the engine may have been upgraded",
        )
        .into()),
    }
}

fn answer(name: &str, cache: &'static str, data: Vec<u8>) -> Response {
    let kind = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, cache)], data).into_response()
}

/// Tells browsers with each answer what they may do with it. What has no other word is not to be kept: it may tell
/// passwords.
pub(crate) async fn secure(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert_with(|| HeaderValue::from_static("no-store"));
    response
}
