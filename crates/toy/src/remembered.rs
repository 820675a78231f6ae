//! What is remembered about a source with its dSource: its identity.

use offshoot_domain::ConnectorState;
use offshoot_types::{ErrorKind, Failure};

/// How it is written.
const VERSION: u32 = 1;

/// What to remember.
pub(crate) fn state_of(identity: &str) -> ConnectorState {
    ConnectorState { version: VERSION, data: serde_json::json!({ "identity": identity }) }
}

/// The identity that is remembered.
///
/// # Errors
/// `WrongState` for what another version wrote.
pub(crate) fn identity_in(state: &ConnectorState) -> Result<String, Failure> {
    let identity = state.data.get("identity").and_then(|identity| identity.as_str());
    match identity {
        Some(identity) if state.version == VERSION => Ok(identity.to_owned()),
        _ => Err(Failure::new(
            ErrorKind::WrongState,
            format!("what is remembered of the source is of version {}", state.version),
            "use the release of Offshoot that wrote it, or a later one",
        )),
    }
}
