//! What can go wrong in the catalog.

use crate::KeyId;
use offshoot_types::{ErrorKind, Failure};

/// An error of the catalog. It turns into a [`Failure`] with `?`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another object has the name.
    #[error("the name '{name}' is taken by {by}")]
    NameTaken {
        /// The name.
        name: String,
        /// The id of the object that has it.
        by: String,
    },
    /// No such object.
    #[error("there is no {0}")]
    NotFound(String),
    /// A newer Offshoot wrote the file.
    #[error("the catalog has format {found}, this Offshoot knows formats up to {known}")]
    Newer {
        /// The format of the file.
        found: u32,
        /// The newest format known.
        known: u32,
    },
    /// Its secrets are sealed with a key that was not given.
    #[error("the catalog's secrets are sealed with the key {0}, which is not there")]
    NoKey(KeyId),
    /// The file is not a catalog, or its content is invalid.
    #[error("the catalog is damaged: {0}")]
    Damaged(String),
    /// The disk of the catalog is full.
    #[error("no room for the catalog: {0}")]
    Full(String),
    /// The file cannot be read or written.
    #[error("the catalog cannot be used: {0}")]
    Unusable(String),
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as Sql;
        use rusqlite::ErrorCode::{DatabaseCorrupt, DiskFull, NotADatabase, TypeMismatch};
        match error.sqlite_error_code() {
            Some(DatabaseCorrupt | NotADatabase | TypeMismatch) => {
                Error::Damaged(error.to_string())
            }
            Some(DiskFull) => Error::Full(error.to_string()),
            Some(_) => Error::Unusable(error.to_string()),
            None => match error {
                Sql::FromSqlConversionFailure(..)
                | Sql::IntegralValueOutOfRange(..)
                | Sql::InvalidColumnType(..)
                | Sql::Utf8Error(..) => Error::Damaged(error.to_string()),
                _ => Error::Unusable(error.to_string()),
            },
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let (code, hint) = match &error {
            Error::NameTaken { .. } => (ErrorKind::AlreadyExists, "choose another name"),
            Error::NotFound(_) => (ErrorKind::NotFound, "list what there is"),
            Error::Newer { .. } => (
                ErrorKind::HostUnprepared,
                "run the Offshoot version that wrote it, or a newer one",
            ),
            Error::NoKey(_) => (
                ErrorKind::HostUnprepared,
                "bring the key file back from where it is kept safe, or name it with --secret-key; if it is lost for good, \
                 start the engine once with --forget-secrets",
            ),
            Error::Damaged(_) => {
                (ErrorKind::DataDamaged, "restore catalog.db of the pool from a backup")
            }
            Error::Full(_) => (ErrorKind::PoolFull, "free space where the pool is"),
            Error::Unusable(_) => (
                ErrorKind::HostUnprepared,
                "check the permissions and the disk of the pool directory",
            ),
        };
        Failure::new(code, error.to_string(), hint)
    }
}
