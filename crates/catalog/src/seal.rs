//! Sealing: what is secret is in the file only as AES-256-GCM leaves it, under keys that are kept
//! elsewhere.
//!
//! A sealed value is `nonce (12 bytes) ‖ ciphertext ‖ tag (16 bytes)`, of the secret's text in UTF-8. Its
//! nonce is random and used once; the name of the secret is associated data, so that a value opens
//! nothing under another name. The id of its key stands beside it.

use crate::{Error, KeyId};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use offshoot_domain::Secret;
use offshoot_os::random_bytes;
use std::fmt;
use zeroize::Zeroizing;

/// What the digest of a key begins with that is its id.
const ID_OF: &[u8] = b"offshoot: the id of a secret key\0";
const KEY_BYTES: usize = 32;

/// A key of 256 bits. It is never printed.
#[derive(Clone)]
pub struct SecretKey {
    id: KeyId,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

impl SecretKey {
    /// A key that nobody can guess.
    pub fn random() -> SecretKey {
        SecretKey::of(random_bytes())
    }

    /// The key of these bytes.
    pub fn of(bytes: [u8; KEY_BYTES]) -> SecretKey {
        let digest = digest(&SHA256, &Zeroizing::new([ID_OF, &bytes].concat()));
        let id: String = digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        SecretKey { id: KeyId::stored(id), bytes: Zeroizing::new(bytes) }
    }

    /// The key that 64 hexadecimal digits say, if they do.
    pub fn parse(text: &str) -> Option<SecretKey> {
        let digits = text.as_bytes();
        if digits.len() != 2 * KEY_BYTES {
            return None;
        }
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let value = |digit: u8| (digit as char).to_digit(16);
            let (high, low) = (value(*pair.first()?)?, value(*pair.get(1)?)?);
            *byte = u8::try_from(high << 4 | low).ok()?;
        }
        Some(SecretKey::of(*bytes))
    }

    /// The text that [`SecretKey::parse`] reads: only for where keys are kept.
    pub fn reveal(&self) -> Zeroizing<String> {
        let digits = b"0123456789abcdef";
        let mut text = Zeroizing::new(String::with_capacity(2 * KEY_BYTES));
        for byte in self.bytes.iter() {
            for digit in [byte >> 4, byte & 15] {
                text.push(digits[digit as usize] as char);
            }
        }
        text
    }

    /// Its id.
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    fn cipher(&self) -> Result<LessSafeKey, Error> {
        let key = UnboundKey::new(&AES_256_GCM, &*self.bytes);
        key.map(LessSafeKey::new).map_err(|_| Error::Unusable("the cipher does not work".into()))
    }

    fn seal(&self, name: &str, secret: &Secret) -> Result<Vec<u8>, Error> {
        self.wrap(name, secret.reveal().as_bytes())
    }

    /// Seals bytes that are kept elsewhere, under a name: nonce, ciphertext, tag.
    ///
    /// # Errors
    /// If the cipher does not work.
    pub fn wrap(&self, name: &str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let nonce: [u8; NONCE_LEN] = random_bytes();
        let mut text = bytes.to_vec();
        let sealed = self.cipher()?.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(name.as_bytes()),
            &mut text,
        );
        sealed.map_err(|_| Error::Unusable(format!("{name} cannot be sealed")))?;
        Ok([&nonce, text.as_slice()].concat())
    }

    fn open(&self, name: &str, value: &[u8]) -> Result<Secret, Error> {
        let damaged = |_| Error::Damaged(format!("the secret {name} does not open"));
        Ok(Secret::new(std::str::from_utf8(&self.unwrap(name, value)?).map_err(damaged)?))
    }

    /// The bytes that were sealed under a name.
    ///
    /// # Errors
    /// [`Error::Damaged`] if they do not open.
    pub fn unwrap(&self, name: &str, value: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let damaged = || Error::Damaged(format!("the secret {name} does not open"));
        let (nonce, sealed) = value.split_at_checked(NONCE_LEN).ok_or_else(damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
        let mut text = Zeroizing::new(sealed.to_vec());
        let aad = Aad::from(name.as_bytes());
        let len = self.cipher()?.open_in_place(nonce, aad, &mut text).map_err(|_| damaged())?.len();
        text.truncate(len);
        Ok(text)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.id)
    }
}

/// The keys of a catalog: the first seals, all open.
#[derive(Debug, Clone)]
pub struct Keyring {
    first: SecretKey,
    others: Vec<SecretKey>,
}

impl Keyring {
    /// Seals and opens with this key, and opens with the others.
    pub fn new(first: SecretKey, others: Vec<SecretKey>) -> Keyring {
        Keyring { first, others }
    }

    /// The key that seals.
    pub fn first(&self) -> &SecretKey {
        &self.first
    }

    /// All keys, that which seals first.
    pub fn all(&self) -> impl Iterator<Item = &SecretKey> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The key of an id.
    pub fn find(&self, id: &KeyId) -> Option<&SecretKey> {
        self.all().find(|key| key.id == *id)
    }

    pub(crate) fn seal(&self, name: &str, secret: &Secret) -> Result<(KeyId, Vec<u8>), Error> {
        Ok((self.first.id.clone(), self.first.seal(name, secret)?))
    }

    pub(crate) fn open(&self, name: &str, key: &KeyId, value: &[u8]) -> Result<Secret, Error> {
        self.find(key).ok_or_else(|| Error::NoKey(key.clone()))?.open(name, value)
    }
}

impl From<SecretKey> for Keyring {
    fn from(key: SecretKey) -> Keyring {
        Keyring::new(key, Vec::new())
    }
}

#[cfg(test)]
mod tests;
