//! What is kept of a token. Tokens are 256 random bits, so a plain hash is as good as a slow one.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// SHA-256 of a token, in hexadecimal digits.
pub(crate) fn token_hash(token: &str) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(token.as_bytes()) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
