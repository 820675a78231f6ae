//! The messages between an engine and its keeper.

use std::time::Duration;

/// How long the keeper waits for an engine before it gives up.
pub const PATIENCE: Duration = Duration::from_secs(600);

const VERSION: u32 = 1;
pub(crate) const MESSAGE_LEN: usize = 16;

pub(crate) const HOLD: u32 = 1;
pub(crate) const DROP: u32 = 2;
pub(crate) const LIST: u32 = 3;
pub(crate) const ENGINE: u32 = 4;
pub(crate) const DONE: u32 = 16;
pub(crate) const HELD: u32 = 17;

pub(crate) fn message(what: u32, key: u64) -> [u8; MESSAGE_LEN] {
    let mut bytes = [0; MESSAGE_LEN];
    bytes[..4].copy_from_slice(&what.to_ne_bytes());
    bytes[4..8].copy_from_slice(&VERSION.to_ne_bytes());
    bytes[8..].copy_from_slice(&key.to_ne_bytes());
    bytes
}

/// What, and the key; nothing for a message of another version.
pub(crate) fn parse(bytes: &[u8; MESSAGE_LEN]) -> Option<(u32, u64)> {
    let word =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let mut key = [0; 8];
    key.copy_from_slice(&bytes[8..]);
    (word(4) == VERSION).then(|| (word(0), u64::from_ne_bytes(key)))
}
