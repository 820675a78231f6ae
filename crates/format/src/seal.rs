//! Sealing: what an encrypted pool has on its device is there only as AES-256-GCM leaves it.
//!
//! One *data key* per pool. What is sealed has a purpose, and each purpose keys of its own: HKDF-SHA256
//! makes them of the data key, the purpose and a number. That number is random for each opening of the
//! pool, and another one follows after 2^28 messages, so that no key comes near the 2^32 messages that
//! random nonces allow. Nothing has to be remembered for that: the number stands beside the nonce.
//!
//! In a pool that is not encrypted, sealing and opening leave everything as it is.

use crate::{DecodeError, Reader};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};
use aws_lc_rs::rand;
use parking_lot::RwLock;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

/// Length of a data key, in bytes.
pub const KEY_LEN: usize = 32;
/// Length of a seal, in bytes: a message is so much longer when it is sealed.
pub const SEAL_LEN: usize = 4 + NONCE_LEN + TAG_LEN;

const TAG_LEN: usize = 16;
/// Messages of an opening after which the next key is used, as a power of two.
const MESSAGES_BITS: u32 = 28;
/// Keys kept in memory: of so many openings that blocks were written by.
const CIPHERS_MAX: usize = 1024;
const INFO: &[u8] = b"offshoot pool 1\0";

/// The key of an encrypted pool: everything else is derived from it. It is never printed.
#[derive(Clone)]
pub struct DataKey(Zeroizing<[u8; KEY_LEN]>);

impl DataKey {
    /// The key of these bytes.
    pub fn of(bytes: [u8; KEY_LEN]) -> DataKey {
        DataKey(Zeroizing::new(bytes))
    }

    /// Its bytes: only to be wrapped.
    pub fn reveal(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// A key for something else that belongs to the pool.
    pub fn derive(&self, what: &str) -> Zeroizing<[u8; KEY_LEN]> {
        let mut key = Zeroizing::new([0; KEY_LEN]);
        let prk = Prk::new_less_safe(HKDF_SHA256, &*self.0);
        let filled = prk
            .expand(&[INFO, b"other\0", what.as_bytes()], &AES_256_GCM)
            .and_then(|okm| okm.fill(&mut *key));
        assert!(filled.is_ok(), "HKDF gives 32 bytes");
        key
    }
}

impl PartialEq for DataKey {
    fn eq(&self, other: &DataKey) -> bool {
        verify_slices_are_equal(&*self.0, &*other.0).is_ok()
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey")
    }
}

/// What a message is for. A message opens for no other purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// A block's stored content.
    Block = 1,
    /// Records of the block table.
    Table = 2,
    /// A root slot.
    Root = 3,
    /// A record of the intent log.
    Log = 4,
}

/// What stands before a sealed message: the number of its key, its nonce and its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    key: u32,
    nonce: [u8; NONCE_LEN],
    tag: [u8; TAG_LEN],
}

impl Seal {
    /// Its bytes.
    pub fn encode(&self) -> [u8; SEAL_LEN] {
        let mut bytes = [0; SEAL_LEN];
        bytes[..4].copy_from_slice(&self.key.to_le_bytes());
        bytes[4..16].copy_from_slice(&self.nonce);
        bytes[16..].copy_from_slice(&self.tag);
        bytes
    }

    /// Takes a seal.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Seal, DecodeError> {
        Ok(Seal { key: reader.u32()?, nonce: reader.array()?, tag: reader.array()? })
    }
}

struct Keys {
    prk: Prk,
    /// The number of the first key of this opening.
    first: u32,
    /// Messages sealed since.
    messages: AtomicU64,
    ciphers: RwLock<HashMap<(Purpose, u32), Arc<LessSafeKey>>>,
}

impl Keys {
    fn cipher(&self, purpose: Purpose, number: u32) -> Result<Arc<LessSafeKey>, DecodeError> {
        if let Some(cipher) = self.ciphers.read().get(&(purpose, number)) {
            return Ok(cipher.clone());
        }
        let (purpose_byte, number_bytes) = ([purpose as u8], number.to_le_bytes());
        let info = [INFO, &purpose_byte, &number_bytes];
        let okm = self.prk.expand(&info, &AES_256_GCM).map_err(|_| unusable())?;
        let cipher = Arc::new(LessSafeKey::new(UnboundKey::from(okm)));
        let mut ciphers = self.ciphers.write();
        if ciphers.len() >= CIPHERS_MAX {
            // Damaged bytes may name any number.
            ciphers.clear();
        }
        ciphers.insert((purpose, number), cipher.clone());
        Ok(cipher)
    }

    fn seal(&self, purpose: Purpose, aad: &[u8], message: &mut [u8]) -> Result<Seal, DecodeError> {
        let before = self.messages.fetch_add(1, Ordering::Relaxed);
        let key = self.first.wrapping_add((before >> MESSAGES_BITS) as u32);
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).map_err(|_| unusable())?;
        let used_once = Nonce::assume_unique_for_key(nonce);
        let cipher = self.cipher(purpose, key)?;
        let made = cipher.seal_in_place_separate_tag(used_once, Aad::from(aad), message);
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(made.map_err(|_| unusable())?.as_ref());
        Ok(Seal { key, nonce, tag })
    }

    fn open(
        &self,
        purpose: Purpose,
        aad: &[u8],
        seal: &Seal,
        sealed: &[u8],
    ) -> Result<Vec<u8>, DecodeError> {
        let cipher = self.cipher(purpose, seal.key)?;
        let nonce = Nonce::assume_unique_for_key(seal.nonce);
        let mut message = vec![0; sealed.len()];
        cipher
            .open_separate_gather(nonce, Aad::from(aad), sealed, &seal.tag, &mut message)
            .map_err(|_| DecodeError::new("seal", "it does not open"))?;
        Ok(message)
    }
}

/// Seals and opens for one opening of a pool; cheap to clone. The default is that of a pool that is
/// not encrypted.
#[derive(Clone, Default)]
pub struct Seals(Option<Arc<Keys>>);

impl Seals {
    /// Those of a pool with this data key, or without one.
    pub fn new(key: Option<&DataKey>) -> Result<Seals, DecodeError> {
        let Some(key) = key else { return Ok(Seals(None)) };
        let mut first = [0; 4];
        rand::fill(&mut first).map_err(|_| unusable())?;
        Ok(Seals(Some(Arc::new(Keys {
            prk: Prk::new_less_safe(HKDF_SHA256, key.reveal()),
            first: u32::from_le_bytes(first),
            messages: AtomicU64::new(0),
            ciphers: RwLock::default(),
        }))))
    }

    /// Whether the pool is encrypted.
    pub fn are_on(&self) -> bool {
        self.0.is_some()
    }

    /// Bytes by which a message is longer when it is sealed.
    pub fn overhead(&self) -> usize {
        if self.are_on() { SEAL_LEN } else { 0 }
    }

    /// A message as it may be written: its seal, then what is sealed. It opens only with the same
    /// `context`.
    pub fn seal<'a>(
        &self,
        purpose: Purpose,
        context: &[u8],
        message: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, DecodeError> {
        let Some(keys) = &self.0 else { return Ok(Cow::Borrowed(message)) };
        let mut bytes = Vec::with_capacity(SEAL_LEN + message.len());
        bytes.resize(SEAL_LEN, 0);
        bytes.extend_from_slice(message);
        let (head, body) = bytes.split_at_mut(SEAL_LEN);
        head.copy_from_slice(&keys.seal(purpose, context, body)?.encode());
        Ok(Cow::Owned(bytes))
    }

    /// The message that was sealed.
    pub fn open<'a>(
        &self,
        purpose: Purpose,
        context: &[u8],
        bytes: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, DecodeError> {
        let Some(keys) = &self.0 else { return Ok(Cow::Borrowed(bytes)) };
        let mut reader = Reader::new("sealed message", bytes);
        let seal = Seal::decode(&mut reader)?;
        keys.open(purpose, context, &seal, reader.rest()).map(Cow::Owned)
    }

    /// Seals a message where it is; its seal is kept apart.
    pub fn seal_apart(
        &self,
        purpose: Purpose,
        context: &[u8],
        message: &mut [u8],
    ) -> Result<Seal, DecodeError> {
        self.0.as_ref().ok_or_else(closed)?.seal(purpose, context, message)
    }

    /// Opens a message whose seal was kept apart.
    pub fn open_apart(
        &self,
        purpose: Purpose,
        context: &[u8],
        seal: &Seal,
        sealed: &[u8],
    ) -> Result<Vec<u8>, DecodeError> {
        self.0.as_ref().ok_or_else(closed)?.open(purpose, context, seal, sealed)
    }
}

impl fmt::Debug for Seals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.are_on() { "Seals(on)" } else { "Seals(off)" })
    }
}

fn unusable() -> DecodeError {
    DecodeError::new("seal", "the cipher does not work")
}

fn closed() -> DecodeError {
    DecodeError::new("seal", "there is no key")
}

#[cfg(test)]
mod tests;
