//! A port of another host.

use crate::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A port of another host, written `HOST:PORT`, or `[ADDRESS]:PORT` for IPv6.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Remote {
    /// A name or an address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl FromStr for Remote {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Remote, Failure> {
        let wrong = || {
            Failure::new(
                ErrorKind::InvalidInput,
                format!("'{text}' is no port of a host"),
                "write it as HOST:PORT, e.g. db.example.com:5432 or [2001:db8::1]:5432",
            )
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_address = |text: &str| text.parse::<std::net::Ipv6Addr>().is_ok();
        let is_name = |text: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            (1..=253).contains(&text.len()) && text.bytes().all(plain)
        };
        let host = match bare {
            Some(address) if is_address(address) => address,
            None if is_name(host) => host,
            _ => return Err(wrong()),
        };
        match port.parse() {
            Ok(port) if port > 0 => Ok(Remote { host: host.to_owned(), port }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl TryFrom<String> for Remote {
    type Error = Failure;

    fn try_from(text: String) -> Result<Remote, Failure> {
        text.parse()
    }
}

impl From<Remote> for String {
    fn from(remote: Remote) -> String {
        remote.to_string()
    }
}

#[cfg(test)]
mod tests;
