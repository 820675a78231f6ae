//! Where things are on this host.

pub mod custody;
pub mod paths;
pub mod ports;
pub mod stopping;
