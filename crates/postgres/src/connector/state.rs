//! What is remembered of a source.

use crate::archive::Archive;
use offshoot_connector::DataDir;
use offshoot_domain::ConnectorState;
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How [`Remembered`] is written.
const STATE_VERSION: u32 = 1;

/// What is remembered of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remembered {
    pub(super) system_identifier: u64,
    pub(super) timeline: u32,
    pub(super) wal_segment_bytes: u64,
}

impl Remembered {
    pub(super) fn store(&self) -> Result<ConnectorState, Failure> {
        let data = serde_json::to_value(self)
            .map_err(|error| Failure::internal(format!("the facts of a source: {error}")))?;
        Ok(ConnectorState { version: STATE_VERSION, data })
    }

    pub(super) fn load(state: &ConnectorState) -> Result<Remembered, Failure> {
        let unknown = |why: String| {
            let hint = "use the release of Offshoot that wrote it, or a later one";
            Failure::new(ErrorKind::WrongState, why, hint)
        };
        if state.version > STATE_VERSION {
            let why = format!("what is remembered of the source is of version {}", state.version);
            return Err(unknown(why));
        }
        serde_json::from_value(state.data.clone())
            .map_err(|error| unknown(format!("what is remembered of the source: {error}")))
    }
}

/// The received log of a source.
pub(super) fn archive(state: &ConnectorState, log: Arc<dyn DataDir>) -> Result<Archive, Failure> {
    Archive::new(log, Remembered::load(state)?.wal_segment_bytes)
}
