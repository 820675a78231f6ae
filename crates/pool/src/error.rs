//! What can go wrong in a pool.

use offshoot_format::DecodeError;
use offshoot_types::{BlockHash, ErrorKind, Failure};

/// A failure of the pool. Cheap to clone, so that every waiter for a read can have it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no pool in the directory.
    #[error("there is no pool here: the file 'label' is missing")]
    NoPool,
    /// A pool is there already.
    #[error("there is a pool here already")]
    Exists,
    /// Another engine has the pool open.
    #[error("the pool is in use by another engine")]
    InUse,
    /// The pool was written by a newer version.
    #[error("the pool has a format this engine does not know: {0}")]
    UnknownFormat(String),
    /// The pool is encrypted, and opened without its key.
    #[error("the pool is encrypted, and its key is not there")]
    NoKey,
    /// A key was given for a pool that is not encrypted.
    #[error("the pool is not encrypted")]
    NotEncrypted,
    /// Writers have used up the room they may take.
    #[error("{}", describe_full(*needed, *available))]
    Full {
        /// Bytes asked for; 0: the device itself refused.
        needed: u64,
        /// Bytes that writers may still take.
        available: u64,
    },
    /// A block's content on disk does not match its name.
    #[error("block {hash} is damaged on disk: {detail}")]
    Damaged {
        /// The block.
        hash: BlockHash,
        /// What is wrong.
        detail: String,
    },
    /// A block that nothing refers to any more, or that never was.
    #[error("block {0} is not in the pool")]
    Missing(BlockHash),
    /// The root, the table or another structure of the pool itself is damaged.
    #[error("the pool's {what} is damaged: {detail}")]
    DamagedStructure {
        /// Which structure.
        what: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// The operating system refused.
    #[error("cannot {action}: {detail}")]
    Io {
        /// What was tried, on which file.
        action: String,
        /// The system's answer.
        detail: String,
        /// Its kind.
        kind: std::io::ErrorKind,
    },
    /// A flush failed earlier: what is on disk is unknown until the pool is opened again.
    #[error("the pool refuses writes since a flush failed ({0}); restart the engine")]
    Failed(String),
    /// A block or a root's extra bytes are longer than the format holds.
    #[error("{what} of {len} bytes is longer than {max}")]
    TooLarge {
        /// What is too long.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The longest.
        max: usize,
    },
    /// Bytes of a node that do not decode.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl Error {
    /// Wraps an answer of the operating system; `ENOSPC` becomes [`Error::Full`].
    pub(crate) fn io(action: impl Into<String>, source: &std::io::Error) -> Error {
        if source.kind() == std::io::ErrorKind::StorageFull {
            return Error::Full { needed: 0, available: 0 };
        }
        Error::Io { action: action.into(), detail: source.to_string(), kind: source.kind() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let (code, hint) = match &error {
            Error::NoPool => (ErrorKind::NotFound, "create a pool in this directory first"),
            Error::Exists => (ErrorKind::AlreadyExists, "use another directory"),
            Error::InUse => (ErrorKind::Busy, "stop the other engine, or use another directory"),
            Error::UnknownFormat(_) => {
                (ErrorKind::HostUnprepared, "open the pool with the version that wrote it")
            }
            Error::NoKey => (
                ErrorKind::HostUnprepared,
                "bring back its file 'encryption' and the key that this names",
            ),
            Error::NotEncrypted => (
                ErrorKind::InvalidInput,
                "only a new pool can be encrypted: make another and link again",
            ),
            Error::Full { .. } => (
                ErrorKind::PoolFull,
                "delete snapshots or VDBs, or give the pool's file system more room",
            ),
            Error::Damaged { .. } | Error::DamagedStructure { .. } | Error::Decode(_) => (
                ErrorKind::DataDamaged,
                "check the device; delete and re-create what the damaged block belongs to",
            ),
            Error::Failed(_) => (ErrorKind::DataDamaged, "check the device, restart the engine"),
            Error::Io { .. } => (ErrorKind::DataDamaged, "check the device and its permissions"),
            Error::Missing(_) | Error::TooLarge { .. } => {
                return Failure::internal(error.to_string());
            }
        };
        Failure::new(code, error.to_string(), hint)
    }
}

fn describe_full(needed: u64, available: u64) -> String {
    match needed {
        0 => "the device that holds the pool has no room".to_owned(),
        _ => format!("the pool is full: {needed} bytes asked for, {available} left to take"),
    }
}

/// What the pool's functions return.
pub type Result<T> = std::result::Result<T, Error>;
