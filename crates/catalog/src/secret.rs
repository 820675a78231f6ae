//! Passwords and settings.

use crate::{Catalog, Error, Transaction};
use offshoot_domain::Secret;
use rusqlite::{OptionalExtension, params};
use serde::{Serialize, de::DeserializeOwned};

impl Catalog {
    /// Stores a password under a key such as `dsource-1`, replacing an earlier one.
    pub fn put_secret(&self, key: &str, secret: &Secret) -> Result<(), Error> {
        self.transaction(|tx| tx.put_secret(key, secret))
    }

    /// The password kept under a key.
    pub fn secret(&self, key: &str) -> Result<Option<Secret>, Error> {
        self.transaction(|tx| Ok(tx.value("secret", key)?.map(Secret::new)))
    }

    /// Removes a password and overwrites its bytes in the file.
    pub fn delete_secret(&self, key: &str) -> Result<(), Error> {
        self.transaction(|tx| tx.delete_secret(key))
    }

    /// The value of a setting of the engine.
    pub fn setting<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        self.transaction(|tx| {
            let Some(text) = tx.value("setting", key)? else { return Ok(None) };
            serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| Error::Damaged(format!("setting '{key}': {error}")))
        })
    }

    /// Sets a setting of the engine.
    pub fn set_setting<T: Serialize>(&self, key: &str, value: &T) -> Result<(), Error> {
        let text = serde_json::to_string(value).map_err(|e| Error::Unusable(e.to_string()))?;
        self.transaction(|tx| {
            let sql = "INSERT OR REPLACE INTO setting VALUES (?1, ?2)";
            tx.sql().execute(sql, params![key, text])?;
            Ok(())
        })
    }
}

impl Transaction<'_> {
    /// Keeps a password.
    pub fn put_secret(&self, key: &str, secret: &Secret) -> Result<(), Error> {
        let sql = "INSERT OR REPLACE INTO secret VALUES (?1, ?2)";
        self.sql().execute(sql, params![key, secret.reveal()])?;
        Ok(())
    }

    /// Forgets a password.
    pub fn delete_secret(&self, key: &str) -> Result<(), Error> {
        self.sql().execute("DELETE FROM secret WHERE key = ?1", [key])?;
        Ok(())
    }

    fn value(&self, table: &str, key: &str) -> Result<Option<String>, Error> {
        let sql = format!("SELECT value FROM {table} WHERE key = ?1");
        Ok(self.sql().query_row(&sql, [key], |row| row.get(0)).optional()?)
    }
}
