//! Where things lie on this host.

pub mod keeping;
pub mod paths;
pub mod ports;
