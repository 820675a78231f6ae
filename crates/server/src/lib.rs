//! The HTTP API of an engine, and the only place where its parts are wired together.
//!
//! [`service`] is the boundary: above it HTTP, below it the engine. Nothing here decides anything about
//! databases.

mod engine_process;
mod http;
mod options;
mod rendezvous;
mod service;

pub use engine_process::run_engine;
pub use http::HttpServer;
pub use options::{DEFAULT_LISTEN, ServeOptions};
pub use rendezvous::{Token, publish_address, withdraw_address};
pub use service::EngineService;
