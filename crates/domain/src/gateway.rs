//! What holds the connections of a VDB while its server is away.

use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};

/// The shortest time after which a VDB counts as idle.
const IDLE_MS_MIN: u64 = 1_000;
/// The longest one: a year.
const IDLE_MS_MAX: u64 = 365 * 24 * 3_600_000;

/// A VDB whose clients connect to a gateway on its port, which passes them on to its server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gateway {
    /// The port of the server on loopback; 0 until one was chosen.
    pub server_port: u16,
    /// After how many milliseconds without use the server is stopped; none: never.
    #[serde(default)]
    pub stop_when_idle_ms: Option<u64>,
}

/// What to change; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayChange {
    /// Whether there is one.
    pub wanted: Option<bool>,
    /// Milliseconds; `Some(None)`: the server is not stopped. It needs a gateway, so one is there then.
    pub stop_when_idle_ms: Option<Option<u64>>,
}

impl GatewayChange {
    /// What becomes of a VDB's gateway.
    ///
    /// # Errors
    /// `InvalidInput` with what would be valid.
    pub fn of(&self, present: Option<&Gateway>) -> Result<Option<Gateway>, Failure> {
        let had = present.and_then(|gateway| gateway.stop_when_idle_ms);
        let stop_when_idle_ms = self.stop_when_idle_ms.unwrap_or(had);
        if let Some(ms) = stop_when_idle_ms
            && !(IDLE_MS_MIN..=IDLE_MS_MAX).contains(&ms)
        {
            return Err(invalid(
                "a VDB is idle after a second at least, and a year at most",
                "use --stop-when-idle 30min",
            ));
        }
        let wanted = self.wanted.unwrap_or(present.is_some() || stop_when_idle_ms.is_some());
        match (wanted, stop_when_idle_ms) {
            (false, None) => Ok(None),
            (false, Some(_)) => Err(invalid(
                "a VDB that is stopped when idle needs its gateway: clients could not wake it",
                "add --stop-when-idle never",
            )),
            (true, stop_when_idle_ms) => {
                let server_port = present.map_or(0, |gateway| gateway.server_port);
                Ok(Some(Gateway { server_port, stop_when_idle_ms }))
            }
        }
    }
}

fn invalid(message: &str, hint: &str) -> Failure {
    Failure::new(ErrorKind::InvalidInput, message, hint)
}

#[cfg(test)]
mod tests;
