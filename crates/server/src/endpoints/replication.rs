//! Replication.

mod channel;
pub(crate) mod profiles;

use crate::endpoints::Service;
use crate::extract::{Filter, Name};
use crate::reply::{Accepted, Refusal, accept, ask};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use channel::{Incoming, Outgoing};
use http_body_util::BodyExt;
use offshoot_api::{ErrorBody, JobAccepted, routes};
use offshoot_types::Failure;
use serde::Deserialize;
use utoipa::IntoParams;

/// The namespace of archives that name none.
const NAMESPACE: &str = "imported";

/// How to export.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// Also where the pool is encrypted: the archive is not.
    #[serde(default)]
    plain: bool,
}

/// Where to import.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImportQuery {
    /// The namespace: what the dSource's name gets before it.
    #[serde(rename = "as")]
    namespace: Option<String>,
    /// How long the archive is, in bytes: then it is refused before it comes if there is no room for it, and the job tells how far it is.
    bytes: Option<u64>,
}

/// A dSource as an archive: its snapshots, and its log so that any commit opens; or the ready snapshots of a VDB. An answer that was cut off is no archive:
/// its end is missing.
#[utoipa::path(
    get,
    path = routes::REPLICATION_ARCHIVE,
    tag = "replication",
    params(("name" = String, Path, description = "Its name"), ExportQuery),
    responses((status = 200, description = "The archive", content_type = "application/octet-stream"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn export_archive(
    Service(service): Service,
    Name(name): Name,
    Filter(query): Filter<ExportQuery>,
) -> Result<Response, Refusal> {
    let object = name.clone();
    let write = ask(service, move |service| service.export_archive(&name, query.plain)).await?;
    let (mut out, body) = channel::outgoing();
    tokio::task::spawn_blocking(move || {
        let written = write(&mut out).and_then(|()| out.end());
        if let Err(failure) = written {
            tracing::warn!(object, %failure, "an archive was cut off");
            Outgoing::fail(out, &failure);
        }
    });
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, Body::new(body)).into_response())
}

/// Takes an archive in. What it holds becomes a dSource `PREFIX/NAME`, read only, or renews it.
#[utoipa::path(
    post,
    path = routes::REPLICATION_ARCHIVES,
    tag = "replication",
    params(ImportQuery),
    request_body(content_type = "application/octet-stream", description = "The archive"),
    responses((status = 202, body = JobAccepted, description = "The job that does it"), (status = "default", body = ErrorBody, description = "Not done")),
)]
pub(crate) async fn import_archive(
    Service(service): Service,
    Filter(query): Filter<ImportQuery>,
    request: Request,
) -> Accepted {
    let namespace = query.namespace.unwrap_or_else(|| NAMESPACE.to_owned());
    let (sender, archive) = Incoming::new();
    let asked = tokio::spawn(accept(service, move |service| {
        service.import_archive(Box::new(archive), &namespace, query.bytes)
    }));
    let mut body = request.into_body();
    // Also of an archive that is refused all is read: whoever sends hears the answer only then.
    let end = loop {
        match body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    let _ = sender.send(Ok(Some(data))).await;
                }
            }
            Some(Err(error)) => break Err(std::io::Error::other(error)),
            None => break Ok(None),
        }
    };
    let _ = sender.send(end).await;
    asked.await.map_err(|panic| Failure::internal(panic.to_string()))?
}
