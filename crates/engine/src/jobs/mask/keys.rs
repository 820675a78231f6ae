//! The keys that values are masked with.
//!
//! A key is kept sealed as its version, the time when it was made, and its digits; one from before keys were rotated is its
//! digits alone. There is one of each name: a rotation forgets the key before.

use crate::core::hex;
use crate::core::keys::masking_key;
use crate::parts::Parts;
use jiff::Timestamp;
use offshoot_catalog::Error;
use offshoot_domain::Secret;
use offshoot_os::random_bytes;
use offshoot_types::{ErrorKind, Failure};

/// What a key has of randomness.
const KEY_BYTES: usize = 32;

/// A key.
pub struct StoredKey {
    /// What masks depend on.
    pub secret: Secret,
    /// 1, and one more with each rotation.
    pub version: u32,
    /// When it was made; none: before that was noted.
    pub made_at: Option<Timestamp>,
}

impl StoredKey {
    fn new(version: u32, made_at: Timestamp) -> StoredKey {
        StoredKey { secret: random_key(), version, made_at: Some(made_at) }
    }

    fn read(stored: &Secret) -> StoredKey {
        let parts = stored.reveal().split_once(' ').and_then(|(version, rest)| {
            let (made_at, digits) = rest.split_once(' ')?;
            Some((version.parse().ok()?, made_at.parse().ok()?, Secret::new(digits.to_owned())))
        });
        match parts {
            Some((version, made_at, secret)) => {
                StoredKey { secret, version, made_at: Some(made_at) }
            }
            None => StoredKey { secret: stored.clone(), version: 1, made_at: None },
        }
    }

    fn stored(&self) -> Secret {
        match self.made_at {
            Some(made_at) => {
                Secret::new(format!("{} {made_at} {}", self.version, self.secret.reveal()))
            }
            None => self.secret.clone(),
        }
    }
}

/// The key of a name; made when it is first asked for. It stays when the masked dSource goes, so that one made again
/// shows the same masks.
pub fn key(parts: &Parts, name: &str) -> Result<StoredKey, Failure> {
    let place = masking_key(name);
    Ok(parts.catalog.transaction(|tx| -> Result<StoredKey, Error> {
        if let Some(stored) = tx.secret(&place)? {
            return Ok(StoredKey::read(&stored));
        }
        let key = StoredKey::new(1, parts.now());
        tx.put_secret(&place, &key.stored())?;
        Ok(key)
    })?)
}

/// The key of a name, if there is one.
pub fn find(parts: &Parts, name: &str) -> Result<Option<StoredKey>, Failure> {
    Ok(parts.catalog.secret(&masking_key(name))?.map(|stored| StoredKey::read(&stored)))
}

/// Makes another key of a name and forgets the one before.
///
/// # Errors
/// `NotFound` if there is none.
pub fn rotate(parts: &Parts, name: &str) -> Result<StoredKey, Failure> {
    let place = masking_key(name);
    let rotated = parts.catalog.transaction(|tx| -> Result<Option<StoredKey>, Error> {
        let Some(stored) = tx.secret(&place)? else { return Ok(None) };
        let key = StoredKey::new(StoredKey::read(&stored).version.saturating_add(1), parts.now());
        tx.put_secret(&place, &key.stored())?;
        Ok(Some(key))
    })?;
    rotated.ok_or_else(|| {
        let shown: String = name.chars().take(80).collect();
        Failure::new(
            ErrorKind::NotFound,
            format!("there is no key '{shown}' that values were masked with"),
            "list them: offshoot mask key list; a key is made when rules that name it are first applied",
        )
    })
}

/// A key that nobody can guess, in hexadecimal digits.
pub fn random_key() -> Secret {
    Secret::new(hex(&random_bytes::<KEY_BYTES>()))
}

#[cfg(test)]
mod tests;
