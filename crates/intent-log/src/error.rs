//! What can go wrong with the log.

/// A failure of the intent log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No room until older records are trimmed: commit instead.
    #[error("the intent log is full")]
    Full,
    /// The record can never fit into a file of the log.
    #[error("a record of {len} bytes is longer than the intent log's {max}")]
    TooLarge {
        /// Bytes of the record.
        len: usize,
        /// The most that fit.
        max: usize,
    },
    /// The disk refused.
    #[error("cannot {action}: {detail}")]
    Io {
        /// What was tried.
        action: String,
        /// The system's answer.
        detail: String,
    },
    /// The device had no room to flush; the next flush rewrites the same.
    #[error("the device has no room to flush the intent log: {0}")]
    NoRoom(String),
    /// A write or flush failed earlier; the log takes nothing more until it is opened again.
    #[error("the intent log refuses records since a flush failed: {0}")]
    Failed(String),
    /// The log is missing.
    #[error("the intent log is missing or incomplete: {0}")]
    Missing(String),
}

impl Error {
    pub(crate) fn io(action: impl Into<String>, source: &std::io::Error) -> Error {
        Error::Io { action: action.into(), detail: source.to_string() }
    }
}

/// What the log's functions return.
pub type Result<T> = std::result::Result<T, Error>;
