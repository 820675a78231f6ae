//! The key of an encrypted pool. The file `encryption` in the pool has it, wrapped by a key of those that secrets are
//! sealed with, which are kept elsewhere.
//!
//! The wrapping key is durable before anything is wrapped by it, and forgotten only when this no longer is: at any time
//! the file opens with a key that is there. It is there before the label that makes a directory an encrypted pool.

pub mod file;

use crate::core::secret_keys::KeyPlaces;
use crate::ground::paths::Paths;
use offshoot_catalog::{RowKey, SecretKey};
use offshoot_os::random_bytes;
use offshoot_pool::encryption::Encryption;
use offshoot_pool::{DataKey, is_encrypted};
use offshoot_types::{ErrorKind, Failure};
use std::path::Path;
use zeroize::Zeroizing;

/// The name that the data key is wrapped under.
const NAME: &str = "pool-data-key";
/// What keys of other things than the pool are derived for.
const CATALOG: &str = "catalog";

/// The data key of a pool that is there, if it is encrypted. Changes nothing.
///
/// # Errors
/// `HostUnprepared` if its wrapping key or the file is missing, `DataDamaged` if the file is damaged.
pub fn data_key(paths: &Paths, keys: &KeyPlaces) -> Result<Option<DataKey>, Failure> {
    let label = std::fs::read(paths.pool().join("label")).unwrap_or_default();
    match (is_encrypted(&label), file::read(paths)?) {
        (false, _) => Ok(None),
        (true, None) => Err(missing(paths)),
        (true, Some(file)) => unwrap(&file, &keys.need_for_pool(&file::key_id(&file))?).map(Some),
    }
}

/// The data key of a pool that is about to be opened or made; with `wanted` one that is made is encrypted.
///
/// # Errors
/// As [`data_key`]; `InvalidInput` if encryption is wanted of a pool that is there and has none.
pub fn prepare(paths: &Paths, keys: &KeyPlaces, wanted: bool) -> Result<Option<DataKey>, Failure> {
    if paths.pool().join("label").exists() {
        let found = data_key(paths, keys)?;
        return if wanted && found.is_none() { Err(not_encrypted(paths)) } else { Ok(found) };
    }
    let left = file::read(paths).ok().flatten();
    if !wanted {
        // Of a creation that was cut off.
        return file::remove(paths).map(|()| None);
    }
    // What another engine makes of the same directory now, it makes with the same key.
    let reused =
        left.and_then(|file| unwrap(&file, &keys.need_for_pool(&file::key_id(&file)).ok()?).ok());
    if reused.is_some() {
        return Ok(reused);
    }
    let data_key = DataKey::of(random_bytes());
    // By this file a directory is known as a pool that is being made.
    let lock = paths.pool().join("lock");
    let begun = std::fs::OpenOptions::new().create(true).append(true).open(lock);
    begun.map_err(|error| file::unusable(paths, &error))?;
    write(paths, &data_key, keys.prepare(paths)?.first())?;
    Ok(Some(data_key))
}

/// Wraps the data key by this key, unless it is already. The key must be durable where keys are kept.
///
/// # Errors
/// As [`data_key`]; the file system's: the file is then as it was.
pub fn wrap_by(paths: &Paths, keys: &KeyPlaces, new: &SecretKey) -> Result<(), Failure> {
    let Some(file) = file::read(paths)? else { return Ok(()) };
    let old = file::key_id(&file);
    if old == *new.id() {
        return Ok(());
    }
    write(paths, &unwrap(&file, &keys.need_for_pool(&old)?)?, new)
}

/// The key of the rows in a pool's catalog, for whoever looks at that beside the engine.
///
/// # Errors
/// As [`data_key`].
pub fn row_key_of(pool: &Path, keys: &KeyPlaces) -> Result<Option<Zeroizing<RowKey>>, Failure> {
    Ok(row_key(data_key(&Paths::of(pool)?, keys)?.as_ref()))
}

/// The key of the catalog's rows.
pub fn row_key(data_key: Option<&DataKey>) -> Option<Zeroizing<RowKey>> {
    data_key.map(|key| key.derive(CATALOG))
}

fn unwrap(file: &Encryption, key: &SecretKey) -> Result<DataKey, Failure> {
    let bytes = key.unwrap(NAME, &file.wrapped)?;
    let bytes = Zeroizing::new(
        <[u8; 32]>::try_from(bytes.as_slice())
            .map_err(|_| Failure::internal("the wrapped key of the pool has another length"))?,
    );
    Ok(DataKey::of(*bytes))
}

fn write(paths: &Paths, data_key: &DataKey, key: &SecretKey) -> Result<(), Failure> {
    let wrapped = key.wrap(NAME, data_key.reveal())?;
    let fits = || Failure::internal("a wrapped key does not fit its file");
    let file = Encryption {
        key_id: key.id().as_str().as_bytes().try_into().map_err(|_| fits())?,
        wrapped: wrapped.try_into().map_err(|_| fits())?,
    };
    file::write(paths, &file)
}

fn missing(paths: &Paths) -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        format!(
            "the pool is encrypted, and {}, which has its key wrapped, is missing; nothing was changed",
            file::place(paths).display()
        ),
        "bring the file back from a copy of the pool",
    )
}

fn not_encrypted(paths: &Paths) -> Failure {
    let pool: &Path = paths.pool();
    Failure::new(
        ErrorKind::InvalidInput,
        format!(
            "the pool {} is there and is not encrypted: only a new pool can be",
            pool.display()
        ),
        "leave out --encrypt; or make another pool with --encrypt, link the sources there, and remove this one",
    )
}

#[cfg(test)]
mod tests;
