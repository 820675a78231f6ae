//! The table of sealed secrets.

use crate::{Error, KeyId, Keyring};
use offshoot_domain::Secret;
use rusqlite::{Connection, params};

/// A secret that is in each catalog, so that the wrong key is known where there is no other yet.
pub const CHECK: &str = "key-check";
/// Setting that is there from the moment secrets are sealed until no trace of them unsealed is left.
pub const TRACES: &str = "plain_secrets_left";

/// The keys that secrets of a catalog are sealed with, that of the check first.
pub fn keys_of(sql: &Connection) -> Result<Vec<KeyId>, Error> {
    let grouped = "SELECT key FROM sealed GROUP BY key ORDER BY max(name = ?1) DESC, key";
    let mut query = sql.prepare(grouped)?;
    let ids = query.query_map([CHECK], |row| Ok(KeyId::stored(row.get::<_, String>(0)?)))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Seals what earlier releases kept as it was, and drops their table.
pub fn seal_plain(sql: &Connection, keys: &Keyring) -> Result<(), Error> {
    let mut query = sql.prepare("SELECT key, value FROM secret")?;
    let mut rows = query.query([])?;
    let mut any = false;
    while let Some(row) = rows.next()? {
        put(sql, keys, &row.get::<_, String>(0)?, &Secret::new(row.get::<_, String>(1)?))?;
        any = true;
    }
    drop(rows);
    drop(query);
    sql.execute_batch("DROP TABLE secret")?;
    // Removed ones leave traces, too; only a catalog that is new never had any.
    let used: bool =
        sql.query_row("SELECT EXISTS (SELECT 1 FROM sequence)", [], |row| row.get(0))?;
    if any || used {
        sql.execute(
            "INSERT OR REPLACE INTO setting VALUES (?1, seal('setting', 'true'))",
            [TRACES],
        )?;
    }
    Ok(())
}

/// Seals a secret and keeps it.
pub fn put(sql: &Connection, keys: &Keyring, name: &str, secret: &Secret) -> Result<(), Error> {
    let (key, value) = keys.seal(name, secret)?;
    let insert = "INSERT OR REPLACE INTO sealed VALUES (?1, ?2, ?3)";
    sql.execute(insert, params![name, key.as_str(), value])?;
    Ok(())
}

/// Seals what is sealed with another key than the first, and the check where it is missing. Returns what does not
/// open.
pub fn seal_all(sql: &Connection, keys: &Keyring) -> Result<Vec<String>, Error> {
    let mut query = sql.prepare("SELECT name, key, value FROM sealed WHERE key <> ?1")?;
    let mut rows = query.query([keys.first().id().as_str()])?;
    let (mut opened, mut damaged) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let (name, value): (String, Vec<u8>) = (row.get(0)?, row.get(2)?);
        match keys.open(&name, &KeyId::stored(row.get::<_, String>(1)?), &value) {
            Ok(secret) => opened.push((name, secret)),
            Err(Error::Damaged(_)) => damaged.push(name),
            Err(error) => return Err(error),
        }
    }
    for (name, secret) in &opened {
        put(sql, keys, name, secret)?;
    }
    let check = "SELECT EXISTS (SELECT 1 FROM sealed WHERE name = ?1)";
    if !sql.query_row(check, [CHECK], |row| row.get::<_, bool>(0))? {
        put(sql, keys, CHECK, &Secret::new(""))?;
    }
    Ok(damaged)
}

/// Removes what is sealed with other keys than these; returns the names of the secrets.
pub fn forget_others(sql: &Connection, keys: &Keyring) -> Result<Vec<String>, Error> {
    let mut gone = Vec::new();
    for id in keys_of(sql)?.iter().filter(|id| keys.find(id).is_none()) {
        let mut query = sql.prepare("DELETE FROM sealed WHERE key = ?1 RETURNING name")?;
        let names = query.query_map([id.as_str()], |row| row.get::<_, String>(0))?;
        gone.extend(names.collect::<Result<Vec<_>, _>>()?);
    }
    gone.retain(|name| name != CHECK);
    gone.sort();
    Ok(gone)
}

/// Writes the log back into the file and empties it.
pub fn truncate_log(db: &Connection) -> Result<(), Error> {
    let busy: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy == 0 {
        return Ok(());
    }
    Err(Error::Unusable("another program reads the catalog".to_owned()))
}
