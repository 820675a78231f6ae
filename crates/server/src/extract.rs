//! What handlers take from a request, refused in our own error format.

use crate::reply::Refusal;
use axum::extract::{FromRequest, FromRequestParts, Json, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::str::FromStr;

/// A JSON body.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let Json(body) = Json::<T>::from_request(request, state).await?;
        Ok(Body(body))
    }
}

/// The name in a path.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await?;
        Ok(Name(name))
    }
}

/// The typed id in a path.
pub(crate) struct Id<T>(pub(crate) T);

impl<S: Send + Sync, T: FromStr<Err: Display>> FromRequestParts<S> for Id<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Path(text) = Path::<String>::from_request_parts(parts, state).await?;
        text.parse().map(Id).map_err(|error: T::Err| {
            Refusal::wrong(StatusCode::BAD_REQUEST, error.to_string(), "the lists show the ids")
        })
    }
}

/// The query of an address.
pub(crate) struct Filter<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Filter<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Query(filter) = Query::<T>::from_request_parts(parts, state).await?;
        Ok(Filter(filter))
    }
}
