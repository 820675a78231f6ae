//! The server side against real servers: configuration, staging, recovery, settling, checks.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, missing_docs)]

#[path = "server_side/cluster.rs"]
mod cluster;
#[path = "server_side/configuration.rs"]
mod configuration;
#[path = "server_side/hostile_load.rs"]
mod hostile_load;
#[path = "server_side/hostile_source.rs"]
mod hostile_source;
#[path = "server_side/image.rs"]
mod image;
#[path = "server_side/masking.rs"]
mod masking;
#[path = "server_side/renewal.rs"]
mod renewal;
#[path = "server_side/replay.rs"]
mod replay;
#[path = "server_side/rights.rs"]
mod rights;
#[path = "server_side/rounds.rs"]
mod rounds;
#[path = "server_side/scripts.rs"]
mod scripts;
#[path = "server_side/start_stop.rs"]
mod start_stop;
#[path = "server_side/subset.rs"]
mod subset;
