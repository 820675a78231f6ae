//! The `Host` of a request. A web page whose name its owner lets resolve to this host makes a browser send its
//! requests here (DNS rebinding); they still carry the page's name. Addresses cannot be bent so.

use crate::reply::Refusal;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{StatusCode, header};
use std::net::IpAddr;

/// Whether the request names this host: by an address, as `localhost`, or by one of its names.
pub(crate) fn check(request: &Request, names: &[String]) -> Result<(), Refusal> {
    let mut named = request.headers().get_all(header::HOST).iter();
    let (first, more) = (named.next(), named.next());
    let text = first.and_then(|value| value.to_str().ok()).filter(|_| more.is_none());
    let authority = text.and_then(|text| text.parse::<Authority>().ok());
    let absolute = request.uri().authority();
    let known = authority.as_ref().is_some_and(|one| is_known(one, names))
        && absolute.is_none_or(|one| is_known(one, names));
    if known {
        return Ok(());
    }
    Err(Refusal::wrong(
        StatusCode::MISDIRECTED_REQUEST,
        "the request's Host is no name of this engine's host",
        "name the engine by its address, or start it with --host-name NAME for each name it is called by",
    ))
}

fn is_known(authority: &Authority, names: &[String]) -> bool {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    !authority.as_str().contains('@')
        && (host.parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || names.iter().any(|name| name.eq_ignore_ascii_case(host)))
}

#[cfg(test)]
mod tests;
