//! A typed, blocking client of an engine's API.
//!
//! [`Target`] says which engine; [`Client`] has one method for each endpoint, and [`Client::wait_job`] to
//! follow long work to its end. Every error is a [`Failure`](offshoot_types::Failure) as the engine sent
//! it, or one of `engine_unreachable` and `unauthorized` that says how to fix it.

mod calls;
mod job;
mod known;
mod local;
mod stream;
mod target;
mod tls;
mod transport;

pub use known::{KnownEngine, KnownEngines};
pub use target::Target;
pub use tls::shown_fingerprint;
pub use transport::Client;
