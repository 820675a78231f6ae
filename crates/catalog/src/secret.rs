//! Passwords and settings.

use crate::sealed::{CHECK, TRACES, keys_of, put, seal_all, truncate_log};
use crate::{Catalog, Error, KeyId, Keyring, Transaction};
use offshoot_domain::Secret;
use rusqlite::{OptionalExtension, params};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

impl Catalog {
    /// Stores a password under a key such as `dsource-1`, replacing an earlier one.
    pub fn put_secret(&self, key: &str, secret: &Secret) -> Result<(), Error> {
        self.transaction(|tx| tx.put_secret(key, secret))
    }

    /// The password kept under a key.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it does not open.
    pub fn secret(&self, key: &str) -> Result<Option<Secret>, Error> {
        self.transaction(|tx| tx.secret(key))
    }

    /// Removes a password and overwrites its bytes in the file.
    pub fn delete_secret(&self, key: &str) -> Result<(), Error> {
        self.transaction(|tx| tx.delete_secret(key))
    }

    /// The keys that secrets are sealed and opened with; none where they stay closed.
    pub fn keyring(&self) -> Option<Arc<Keyring>> {
        self.keys()
    }

    /// The keys that secrets are sealed with; the first is the one that seals, unless a crash is just being recovered
    /// from.
    pub fn keys_in_use(&self) -> Result<Vec<KeyId>, Error> {
        self.transaction(|tx| keys_of(tx.sql()))
    }

    /// How many secrets there are.
    pub fn secrets(&self) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM sealed WHERE name <> ?1";
        self.transaction(|tx| Ok(tx.sql().query_row(sql, [CHECK], |row| row.get(0))?))
    }

    /// Seals all secrets with the first of these keys, and returns the names of those that do not open, which stay as
    /// they are. The keys must be durable where they are kept: secrets that are put meanwhile are sealed with the first
    /// already.
    ///
    /// # Errors
    /// [`Error::NoKey`] if a key is missing: none is changed.
    pub fn seal_with(&self, keys: impl Into<Arc<Keyring>>) -> Result<Vec<String>, Error> {
        let keys = keys.into();
        let before = self.keys();
        // Nothing may be sealed with a key that the change below does not know, so it comes first.
        self.set_keys(keys.clone());
        let sealed = self.insistent_transaction(|tx| seal_all(tx.sql(), &keys));
        if matches!(sealed, Err(Error::NoKey(_)))
            && let Some(before) = before
        {
            self.set_keys(before);
        }
        sealed
    }

    /// Removes what is left in the file and its log of secrets as they were before they were sealed. Does nothing
    /// once that is done.
    ///
    /// # Errors
    /// [`Error::Full`]: the file is rebuilt, which takes as much room as it has. Try again later.
    pub fn remove_traces(&self) -> Result<(), Error> {
        if self.setting::<bool>(TRACES)?.is_none() {
            return Ok(());
        }
        self.outside(|db| {
            // Deleted content is overwritten; what moved between pages may have left copies.
            db.execute_batch("VACUUM")?;
            truncate_log(db)
        })?;
        self.transaction(|tx| {
            tx.sql().execute("DELETE FROM setting WHERE key = ?1", [TRACES])?;
            Ok(())
        })
    }

    /// Empties the log, which may hold what the file no longer has.
    ///
    /// # Errors
    /// The catalog's.
    pub fn empty_log(&self) -> Result<(), Error> {
        self.outside(truncate_log)
    }

    /// The value of a setting of the engine.
    pub fn setting<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        self.transaction(|tx| {
            let sql = "SELECT unseal('setting', value) FROM setting WHERE key = ?1";
            let found = tx.sql().query_row(sql, [key], |row| row.get(0)).optional()?;
            let text: String = match found {
                Some(text) => text,
                None => return Ok(None),
            };
            serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| Error::Damaged(format!("setting '{key}': {error}")))
        })
    }

    /// Sets a setting of the engine.
    pub fn set_setting<T: Serialize>(&self, key: &str, value: &T) -> Result<(), Error> {
        let text = serde_json::to_string(value).map_err(|e| Error::Unusable(e.to_string()))?;
        self.transaction(|tx| {
            let sql = "INSERT OR REPLACE INTO setting VALUES (?1, seal('setting', ?2))";
            tx.sql().execute(sql, params![key, text])?;
            Ok(())
        })
    }
}

impl Transaction<'_> {
    /// Keeps a password.
    pub fn put_secret(&self, key: &str, secret: &Secret) -> Result<(), Error> {
        put(self.sql(), self.keys()?, key, secret)
    }

    /// See [`Catalog::secret`].
    pub fn secret(&self, key: &str) -> Result<Option<Secret>, Error> {
        let sql = "SELECT key, value FROM sealed WHERE name = ?1";
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?));
        let found: Option<(String, Vec<u8>)> = self.sql().query_row(sql, [key], row).optional()?;
        let Some((id, value)) = found else { return Ok(None) };
        self.keys()?.open(key, &KeyId::stored(id), &value).map(Some)
    }

    /// Forgets a password.
    pub fn delete_secret(&self, key: &str) -> Result<(), Error> {
        self.sql().execute("DELETE FROM sealed WHERE name = ?1", [key])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
