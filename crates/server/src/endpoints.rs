//! The handlers, one module per noun. Each asks the service one thing.

pub(crate) mod audit;
pub(crate) mod bisection;
pub(crate) mod bookmark;
pub(crate) mod console;
pub(crate) mod diff;
pub(crate) mod dsource;
pub(crate) mod events;
pub(crate) mod group;
pub(crate) mod job;
pub(crate) mod mask;
pub(crate) mod monitoring;
pub(crate) mod peer;
pub(crate) mod policy;
pub(crate) mod pool;
pub(crate) mod replication;
pub(crate) mod secret;
pub(crate) mod snapshot;
pub(crate) mod template;
pub(crate) mod timeflow;
pub(crate) mod token;
pub(crate) mod user;
pub(crate) mod vdb;
pub(crate) mod webhook;

use crate::access::guard::Guard;
use crate::access::{Access, Caller};
use crate::reply::Refusal;
use crate::{Accounts, EngineService};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use offshoot_types::Failure;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// What handlers work with.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) service: Arc<dyn EngineService>,
    pub(crate) accounts: Arc<dyn Accounts>,
    pub(crate) access: Arc<Access>,
    /// Places for subscribers of events.
    pub(crate) streams: Arc<Semaphore>,
    /// Whether the server stops: what has no end of its own ends then.
    pub(crate) ending: watch::Receiver<bool>,
}

/// The engine as the caller of a request sees it.
pub(crate) struct Service(pub(crate) Arc<dyn EngineService>);

impl FromRequestParts<App> for Service {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Failure::internal("a request of nobody"))?;
        let App { service, accounts, .. } = app.clone();
        Ok(Service(Arc::new(Guard { service, accounts, caller })))
    }
}
