//! The names of keys.

use std::fmt;

/// Which key sealed a value: 16 hexadecimal digits that tell nothing else about the key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(String);

impl KeyId {
    /// An id as it was stored. It may name no key at all.
    pub fn stored(text: impl Into<String>) -> KeyId {
        KeyId(text.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
