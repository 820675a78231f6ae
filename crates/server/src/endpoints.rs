//! The handlers, one module per noun. Each asks the service one thing.

pub(crate) mod bookmark;
pub(crate) mod dsource;
pub(crate) mod job;
pub(crate) mod policy;
pub(crate) mod pool;
pub(crate) mod snapshot;
pub(crate) mod timeflow;
pub(crate) mod vdb;

use crate::EngineService;
use std::sync::Arc;

/// The service, as handlers get it.
pub(crate) type Service = axum::extract::State<Arc<dyn EngineService>>;
