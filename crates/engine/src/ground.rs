//! Where things are on this host.

pub mod custody;
pub mod network;
pub mod paths;
pub mod pool_dir;
pub mod ports;
pub mod poster;
pub mod stopping;
