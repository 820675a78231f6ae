//! What a connector remembers about a source.

use serde::{Deserialize, Serialize};

/// What a connector remembers about a source. The engine keeps it with the dSource and never reads
/// it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectorState {
    /// The version the connector wrote it in; 0: nothing is known yet.
    pub version: u32,
    /// What it wrote.
    pub data: serde_json::Value,
}

impl ConnectorState {
    /// Nothing is known yet.
    pub fn is_empty(&self) -> bool {
        self.version == 0
    }
}
