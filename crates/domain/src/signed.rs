//! Documents that an engine signs.
//!
//! A signed document is a text of any form that has, last of all such places, `offshoot-ed25519:` and a signature of 128
//! hexadecimal digits. What is signed (Ed25519, RFC 8032) is every byte of it, with zeros for those digits: a
//! document of which any byte was changed is refused, whether it is JSON, a page or anything else.

use crate::Secret;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use offshoot_types::{ErrorKind, Failure};
use zeroize::Zeroizing;

/// What stands before a signature.
const MARK: &str = "offshoot-ed25519:";
const DIGITS: usize = 128;
const KEY_BYTES: usize = 32;

/// A key to sign documents with.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Of a secret of 64 hexadecimal digits.
    ///
    /// # Errors
    /// `DataDamaged` if it is something else.
    pub fn new(secret: &Secret) -> Result<SigningKey, Failure> {
        let damaged = || {
            Failure::new(
                ErrorKind::DataDamaged,
                "the key that reports are signed with cannot be read",
                "restore the pool's catalog from a backup",
            )
        };
        let seed: Zeroizing<[u8; KEY_BYTES]> =
            Zeroizing::new(bytes(secret.reveal()).ok_or_else(damaged)?);
        let pair = Ed25519KeyPair::from_seed_unchecked(&*seed).map_err(|_| damaged())?;
        Ok(SigningKey(pair))
    }

    /// What its signatures are checked with, in hexadecimal digits. It is no secret.
    pub fn public(&self) -> String {
        digits(self.0.public_key().as_ref())
    }

    /// Signs the document that `with` makes of the text that stands for the signature. That text must stand in it as
    /// it is, and nothing like it after it.
    ///
    /// # Errors
    /// `Internal` if it does not.
    pub fn sign(&self, with: impl FnOnce(&str) -> String) -> Result<String, Failure> {
        let mut document = with(&format!("{MARK}{}", "0".repeat(DIGITS)));
        let place = place(&document).ok_or_else(|| {
            Failure::internal("a document has no place for its signature, so it cannot be signed")
        })?;
        let signature = digits(self.0.sign(document.as_bytes()).as_ref());
        document.replace_range(place, &signature);
        Ok(document)
    }
}

/// Checks that a document is as it was signed with the key of a public key.
///
/// # Errors
/// `InvalidInput` if it has no signature, was changed, or another key signed it; or if the public key is none.
pub fn verify(document: &str, public: &str) -> Result<(), Failure> {
    let refused = |what: &str, hint: &str| Failure::new(ErrorKind::InvalidInput, what, hint);
    let public: [u8; KEY_BYTES] = bytes(public).ok_or_else(|| {
        refused(
            "that is no public key",
            "give 64 digits, as `offshoot mask report --public-key` shows them",
        )
    })?;
    let none = || {
        refused("the document has no signature", "name a file that `offshoot mask report` wrote")
    };
    let place = place(document).ok_or_else(none)?;
    let (before, rest) = document.split_at(place.start);
    let (signature, after) = rest.split_at(DIGITS);
    let signature: [u8; DIGITS / 2] = bytes(signature).ok_or_else(none)?;
    let signed = [before, &"0".repeat(DIGITS), after].concat();
    UnparsedPublicKey::new(&ED25519, public).verify(signed.as_bytes(), &signature).map_err(|_| {
        refused(
            "the signature does not fit: the document was changed, or another engine signed it",
            "get the report anew from the engine that made it: offshoot mask report NAME",
        )
    })
}

/// SHA-256 of a text, in hexadecimal digits.
pub fn sha256(text: &str) -> String {
    digits(digest(&SHA256, text.as_bytes()).as_ref())
}

/// Where the digits of the signature are.
fn place(document: &str) -> Option<std::ops::Range<usize>> {
    let begin = document.rfind(MARK)? + MARK.len();
    document.get(begin..begin + DIGITS)?;
    Some(begin..begin + DIGITS)
}

/// Only the form that [`digits`] writes: another one would be another document.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    let mut out = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.chunks(2)) {
        let [high, low] = pair else { return None };
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(out)
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
