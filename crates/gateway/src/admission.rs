//! Who may connect from where.

use crate::messages::{Fatal, NOT_ALLOWED};
use ipnet::IpNet;
use std::net::IpAddr;

/// Whether an address is this host's own.
pub(crate) fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Admits a client by its address, and by whether it came by TLS. Those of this host always may.
///
/// # Errors
/// What to tell it.
pub(crate) fn admit(address: IpAddr, tls: bool, allow: &[IpNet]) -> Result<(), Fatal> {
    let address = address.to_canonical();
    if is_local(address) {
        Ok(())
    } else if !allow.iter().any(|network| network.contains(&address)) {
        let message = format!("connections from {address} are not allowed");
        Err(Fatal::new(NOT_ALLOWED, message))
    } else if !tls {
        Err(Fatal::new(NOT_ALLOWED, "connections from other hosts need TLS (sslmode=require)"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
