//! The HTTP API of an engine, and the only place where its parts are wired together.
//!
//! [`EngineService`] is the boundary: above it HTTP, below it the engine. No decisions about databases
//! are made here.

mod access;
mod config;
mod console;
mod doctor;
mod endpoints;
mod engine_process;
mod engine_service;
mod extract;
mod http;
mod listen;
mod openapi;
mod options;
mod peers;
mod pool_check;
mod poster;
mod rendezvous;
mod reply;
mod router;
mod secret_keys;
mod service;
mod signal;
mod tls;

pub use access::accounts::{Account, Accounts, Record, Thing};
pub use config::parse_listen;
pub use doctor::examine_host;
pub use engine_process::{enter_cell, run_engine, run_gateway, run_keeper};
pub use http::HttpServer;
pub use listen::{Listen, LocalSocket};
pub use offshoot_catalog::AuditFilter;
pub use openapi::openapi_json;
pub use options::{DEFAULT_LISTEN, ServeOptions};
pub use pool_check::check_pool;
pub use rendezvous::{Token, publish_address, withdraw_address};
pub use service::latencies::{FileLatencies, Latencies, StoreLatencies};
pub use service::notifier::Notifier;
pub use service::replicator::Replicator;
pub use service::templates::Templates;
pub use service::{ArchiveReader, ArchiveWriter, EngineService};
pub use signal::ShutdownSignal;
pub use tls::Identity;
