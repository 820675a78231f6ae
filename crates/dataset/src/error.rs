//! What can go wrong, and the error number that the kernel knows.

use offshoot_types::{BlockHash, DatasetId, ErrorKind, Failure, SnapshotId};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on a store or a dataset failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such name or inode (`ENOENT`).
    #[error("no such file or directory")]
    NotFound,
    /// The name or attribute exists (`EEXIST`).
    #[error("the name exists")]
    Exists,
    /// The inode is no directory (`ENOTDIR`).
    #[error("not a directory")]
    NotDirectory,
    /// The inode is a directory (`EISDIR`).
    #[error("is a directory")]
    IsDirectory,
    /// The directory has entries (`ENOTEMPTY`).
    #[error("the directory is not empty")]
    NotEmpty,
    /// A name or target is too long (`ENAMETOOLONG`).
    #[error("the name is too long")]
    NameTooLong,
    /// The pool has no room (`ENOSPC`). What is there stays readable and can be deleted.
    #[error("the pool has no room")]
    NoSpace,
    /// The dataset may take no more of the pool (`EDQUOT`).
    #[error("its quota is used up")]
    QuotaUsedUp,
    /// The operation is invalid for this inode or these arguments (`EINVAL`).
    #[error("invalid argument: {0}")]
    Invalid(&'static str),
    /// The inode can have no further name (`EMLINK`).
    #[error("too many links")]
    TooManyLinks,
    /// Past the largest size of a file, 16 TiB (`EFBIG`).
    #[error("the file would be too large")]
    FileTooBig,
    /// The inode or the whole dataset has been deleted (`ESTALE`).
    #[error("the file or its dataset has been deleted")]
    Stale,
    /// No such extended attribute (`ENODATA`).
    #[error("no such extended attribute")]
    NoAttribute,
    /// An extended attribute is too large (`E2BIG`).
    #[error("the extended attribute is too large")]
    AttributeTooBig,
    /// Nothing (no data, no hole) after that offset (`ENXIO`).
    #[error("nothing behind that offset")]
    NoSuchRange,
    /// Not supported here (`EOPNOTSUPP`).
    #[error("operation not supported")]
    Unsupported,
    /// A block on disk is not what was written (`EIO`). Recorded as a fault of the pool.
    #[error("block {0} is damaged")]
    Damaged(BlockHash),
    /// A block that should be in the pool is not (`EIO`).
    #[error("block {0} is missing")]
    Missing(BlockHash),
    /// A structure on disk is invalid (`EIO`).
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// Acknowledged writes are lost because the intent log was damaged (`EIO`).
    #[error(
        "acknowledged writes to {0} are lost: the intent log was damaged; it is as it was before them"
    )]
    Lost(DatasetId),
    /// The disk failed (`EIO`).
    #[error("{0}")]
    Io(String),
    /// The pool was made by a newer version, or it is not a pool (`EIO`).
    #[error("{0}")]
    Unusable(String),
    /// The pool is in use by another process.
    #[error("{0}")]
    InUse(String),
    /// The store has been closed (`EIO`).
    #[error("the store has been closed")]
    Closed,
    /// No dataset of that id.
    #[error("there is no {0}")]
    NoDataset(DatasetId),
    /// No snapshot of that id.
    #[error("there is no {0}")]
    NoSnapshot(SnapshotId),
}

impl Error {
    /// The errno a Linux filesystem answers.
    pub fn errno(&self) -> i32 {
        match self {
            Error::NotFound => 2,
            Error::Exists => 17,
            Error::NotDirectory => 20,
            Error::IsDirectory => 21,
            Error::NotEmpty => 39,
            Error::NameTooLong => 36,
            Error::NoSpace => 28,
            Error::QuotaUsedUp => 122,
            Error::Invalid(_) => 22,
            Error::TooManyLinks => 31,
            Error::FileTooBig => 27,
            Error::Stale | Error::NoDataset(_) | Error::NoSnapshot(_) => 116,
            Error::NoAttribute => 61,
            Error::AttributeTooBig => 7,
            Error::NoSuchRange => 6,
            Error::Unsupported => 95,
            Error::Damaged(_)
            | Error::Missing(_)
            | Error::Corrupt(_)
            | Error::Lost(_)
            | Error::Io(_)
            | Error::Unusable(_)
            | Error::InUse(_)
            | Error::Closed => 5,
        }
    }

    /// What a user is told.
    pub fn failure(&self) -> Failure {
        let (kind, hint) = match self {
            Error::NoSpace => (
                ErrorKind::PoolFull,
                "delete snapshots or virtual databases, or give the pool's filesystem more room",
            ),
            Error::QuotaUsedUp => (
                ErrorKind::PoolFull,
                "delete snapshots of it, or raise its quota: offshoot policy set NAME --quota SIZE",
            ),
            Error::NotFound | Error::NoDataset(_) | Error::NoSnapshot(_) | Error::Stale => {
                (ErrorKind::NotFound, "")
            }
            Error::Exists => (ErrorKind::AlreadyExists, "choose another name"),
            Error::Damaged(_) | Error::Missing(_) | Error::Corrupt(_) => (
                ErrorKind::DataDamaged,
                "run 'offshoot pool scrub'; a new SnapSync or refresh replaces damaged data",
            ),
            Error::Lost(_) => (
                ErrorKind::DataDamaged,
                "go on without them by starting it: offshoot vdb start NAME; or rewind or refresh it; check \
                 the disk",
            ),
            Error::Io(_) => (ErrorKind::DataDamaged, "check the disk that holds the pool"),
            Error::Unusable(_) => {
                (ErrorKind::WrongState, "open the pool with the version of Offshoot that made it")
            }
            Error::InUse(_) => (ErrorKind::Busy, "stop the engine that uses this pool"),
            _ => (ErrorKind::InvalidInput, ""),
        };
        Failure::new(kind, self.to_string(), hint)
    }
}
