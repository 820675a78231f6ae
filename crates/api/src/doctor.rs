//! What `offshoot doctor` found on a host.

use serde::{Deserialize, Serialize};

/// Everything that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// What an engine needs, most important first.
    pub checks: Vec<HostCheck>,
}

/// One thing that an engine needs of its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCheck {
    /// What was looked at, in a word or two.
    pub name: String,
    /// How it is.
    pub state: HostCheckState,
    /// What was found.
    pub message: String,
    /// What fixes it; empty where nothing has to be.
    pub hint: String,
}

/// How well a host is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostCheckState {
    /// As it should be.
    Ok,
    /// The engine runs, but not as well, or not everything works.
    Warning,
    /// The engine does not start, or no VDB does.
    Failed,
}
