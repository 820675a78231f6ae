//! One-time codes: what lets an engine in that is not known yet.
//!
//! A code holds the fingerprint of the certificate of the engine that made it, and a secret. Whoever is given it sends the secret
//! only to what proves to have that certificate's key; and only who was given it knows the secret. So it proves both ends,
//! whoever is in between.

use offshoot_types::{ErrorKind, Failure};

/// How a code begins: what it is, and its version.
const BEGIN: &str = "peer1-";
/// How a fingerprint begins.
const FINGERPRINT: &str = "sha256:";
/// Hexadecimal digits of a fingerprint.
const DIGITS: usize = 64;
/// Bytes of a secret.
pub const SECRET_BYTES: usize = 16;

/// A code, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct Code {
    /// Of the certificate of the engine that made it: `sha256:` and 64 hexadecimal digits.
    pub fingerprint: String,
    /// What only the two know, in hexadecimal digits.
    pub secret: String,
}

/// Leaves out the secret.
impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl Code {
    /// A code of an engine's certificate and of random bytes.
    pub fn new(fingerprint: &str, secret: [u8; SECRET_BYTES]) -> Code {
        let secret = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        Code { fingerprint: fingerprint.to_owned(), secret }
    }

    /// As people hand it on.
    pub fn text(&self) -> String {
        let digits = self.fingerprint.trim_start_matches(FINGERPRINT);
        format!("{BEGIN}{digits}{}", self.secret)
    }

    /// Reads what [`Code::text`] wrote.
    ///
    /// # Errors
    /// `InvalidInput` if it is none, or not all of one.
    pub fn parse(text: &str) -> Result<Code, Failure> {
        let wrong = || {
            Failure::new(
                ErrorKind::InvalidInput,
                "this is no code of 'offshoot peer invite', or not all of it",
                "copy it whole; it begins with 'peer1-'",
            )
        };
        let digits = text.trim().strip_prefix(BEGIN).ok_or_else(wrong)?;
        if digits.len() != DIGITS + 2 * SECRET_BYTES
            || !digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return Err(wrong());
        }
        let digits = digits.to_ascii_lowercase();
        let (fingerprint, secret) = digits.split_at(DIGITS);
        Ok(Code { fingerprint: format!("{FINGERPRINT}{fingerprint}"), secret: secret.to_owned() })
    }
}

/// What is kept of a secret: it is random, so that says nothing about it.
pub fn hash(secret: &str) -> String {
    blake3::hash(secret.as_bytes()).to_hex().to_string()
}

/// A digest of what is offered, by which two engines know that nothing changed.
pub fn digest(manifest: &[u8], states: &[offshoot_format::directory::TreeState]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(manifest);
    states.iter().for_each(|state| {
        hasher.update(&state.root.0);
    });
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests;
