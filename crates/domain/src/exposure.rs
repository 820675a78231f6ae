//! How a VDB is reached from other hosts.

use ipnet::IpNet;
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr};

/// Addresses, or networks, that a VDB may name.
const NAMED_MAX: usize = 64;

/// Beyond loopback, a VDB listens on these addresses of the engine's host, answers these networks alone, and those by
/// TLS and SCRAM alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    /// Addresses of the engine's host; `0.0.0.0` and `::` are all of their family.
    pub listen: Vec<IpAddr>,
    /// Who may connect.
    pub allow: Vec<IpNet>,
}

impl Exposure {
    /// As it was asked for; none if nothing was.
    ///
    /// # Errors
    /// `InvalidInput` for one half without the other, for loopback, and for too many.
    pub fn asked(listen: Vec<IpAddr>, allow: Vec<IpNet>) -> Result<Option<Exposure>, Failure> {
        let refused =
            |message: &str, hint: &str| Err(Failure::new(ErrorKind::InvalidInput, message, hint));
        match (listen.is_empty(), allow.is_empty()) {
            (true, true) => return Ok(None),
            (false, true) => {
                return refused(
                    "a VDB that listens beyond loopback needs to know who may connect",
                    "name networks with --allow, e.g. --allow 10.1.0.0/16",
                );
            }
            (true, false) => {
                return refused(
                    "nobody but this host reaches a VDB that listens on loopback",
                    "name an address of this host with --listen, e.g. --listen 10.1.0.5",
                );
            }
            (false, false) => {}
        }
        if listen.len() > NAMED_MAX || allow.len() > NAMED_MAX {
            return refused("there are more than 64 addresses or networks", "name larger networks");
        }
        if listen.iter().any(IpAddr::is_loopback) {
            return refused(
                "a VDB always listens on loopback",
                "name with --listen only what other hosts reach it by",
            );
        }
        if let Some(network) = allow.iter().find(|network| network.trunc() != **network) {
            return Err(Failure::new(
                ErrorKind::InvalidInput,
                format!("{network} is an address in a network, not a network"),
                format!(
                    "write {} for that network, or {}/{}",
                    network.trunc(),
                    network.addr(),
                    network.max_prefix_len()
                ),
            ));
        }
        Ok(Some(Exposure { listen, allow }))
    }

    /// The addresses that a VDB listens on, with an exposure or without.
    pub fn listening(exposure: Option<&Exposure>) -> Vec<IpAddr> {
        let loopback = || vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        exposure.map_or_else(loopback, Exposure::addresses)
    }

    /// All addresses to listen on, loopback among them.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        // All addresses are loopback, too, and nobody can listen twice.
        let is_covered = self.listen.contains(&IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        (!is_covered).then_some(loopback).into_iter().chain(self.listen.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests;
