//! A gateway in front of real servers, of each major version there is.
#![allow(clippy::unwrap_used)]

#[path = "gateway/cluster.rs"]
mod cluster;
#[path = "gateway/held.rs"]
mod held;
#[path = "gateway/hostile.rs"]
mod hostile;
#[path = "gateway/passing.rs"]
mod passing;
#[path = "gateway/secured.rs"]
mod secured;
