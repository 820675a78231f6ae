//! What rows of an encrypted pool's catalog have in their file.
//!
//! Three functions of SQL stand wherever a column says what something is called or contains:
//! - `seal(column, text)`: `nonce (12 bytes) ‖ ciphertext ‖ tag (16 bytes)` of AES-256-GCM, with a random
//!   nonce;
//! - `label(column, text)`: the same with a nonce that HMAC-SHA256 makes of the text, so that equal texts are
//!   equal in the file: for what rows are looked up by, and must be unique;
//! - `unseal(column, value)`: the text again, or NULL if it does not open, which no column with a text may be.
//!
//! The column is associated data. In the catalog of other pools all three leave the text as it is. Kinds, ids,
//! times and lengths can be seen in either.

use crate::Error;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use offshoot_os::random_bytes;
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use std::sync::Arc;

/// The key of the rows, of 32 bytes.
pub type RowKey = [u8; 32];

struct Cipher {
    rows: LessSafeKey,
    labels: hmac::Key,
}

impl Cipher {
    fn new(key: &RowKey) -> Result<Cipher, Error> {
        let unusable = |_| Error::Unusable("the cipher does not work".to_owned());
        let main = hmac::Key::new(HMAC_SHA256, key);
        let rows = hmac::sign(&main, b"rows");
        let rows = UnboundKey::new(&AES_256_GCM, rows.as_ref()).map_err(unusable)?;
        let labels = hmac::Key::new(HMAC_SHA256, hmac::sign(&main, b"labels").as_ref());
        Ok(Cipher { rows: LessSafeKey::new(rows), labels })
    }

    fn seal(&self, column: &str, text: &str, nonce: [u8; NONCE_LEN]) -> Option<Vec<u8>> {
        let mut bytes = text.as_bytes().to_vec();
        let (used, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(column.as_bytes()));
        self.rows.seal_in_place_append_tag(used, aad, &mut bytes).ok()?;
        Some([&nonce, bytes.as_slice()].concat())
    }

    /// The same text has the same nonce; another one another.
    fn label(&self, column: &str, text: &str) -> Option<Vec<u8>> {
        let said = [column.as_bytes(), b"\0", text.as_bytes()].concat();
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(hmac::sign(&self.labels, &said).as_ref().get(..NONCE_LEN)?);
        self.seal(column, text, nonce)
    }

    fn open(&self, column: &str, value: &[u8]) -> Option<String> {
        let (nonce, sealed) = value.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = sealed.to_vec();
        let aad = Aad::from(column.as_bytes());
        let len = self.rows.open_in_place(nonce, aad, &mut bytes).ok()?.len();
        bytes.truncate(len);
        String::from_utf8(bytes).ok()
    }
}

/// Makes the functions known to a connection.
///
/// # Errors
/// If the cipher or SQLite does not work.
pub fn register(db: &Connection, key: Option<&RowKey>) -> Result<(), Error> {
    let cipher = Arc::new(key.map(Cipher::new).transpose()?);
    let same = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    let of = cipher.clone();
    db.create_scalar_function("seal", 2, FunctionFlags::SQLITE_UTF8, move |context| {
        change(context, of.as_ref().as_ref(), |cipher, column, text| {
            cipher.seal(column, text, random_bytes())
        })
    })?;
    let of = cipher.clone();
    db.create_scalar_function("label", 2, same, move |context| {
        change(context, of.as_ref().as_ref(), Cipher::label)
    })?;
    db.create_scalar_function("unseal", 2, same, move |context| {
        let column = context.get_raw(0).as_str().unwrap_or_default();
        Ok(match (cipher.as_ref(), context.get_raw(1)) {
            (None, ValueRef::Text(text)) => Value::Text(String::from_utf8_lossy(text).into_owned()),
            (Some(cipher), ValueRef::Blob(value)) => {
                cipher.open(column, value).map_or(Value::Null, Value::Text)
            }
            _ => Value::Null,
        })
    })?;
    Ok(())
}

fn change(
    context: &Context<'_>,
    cipher: Option<&Cipher>,
    work: impl Fn(&Cipher, &str, &str) -> Option<Vec<u8>>,
) -> rusqlite::Result<Value> {
    let column = context.get_raw(0).as_str()?;
    let text = match context.get_raw(1) {
        ValueRef::Null => return Ok(Value::Null),
        value => value.as_str()?,
    };
    let Some(cipher) = cipher else { return Ok(Value::Text(text.to_owned())) };
    let sealed = work(cipher, column, text);
    let failed = || rusqlite::Error::UserFunctionError("the cipher does not work".into());
    sealed.map(Value::Blob).ok_or_else(failed)
}

#[cfg(test)]
mod tests;
