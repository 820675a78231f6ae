//! What can go wrong while states are passed on.

use offshoot_types::{ErrorKind, Failure};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a state was not passed on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not begin as an archive does.
    #[error("this is no archive of Offshoot")]
    NotAnArchive,
    /// A version that is not known here.
    #[error("the archive has version {0}, and this engine knows version {known}", known = crate::wire::VERSION)]
    Version(u32),
    /// It ends before its last frame.
    #[error("it ends after {at} bytes, before its end: it was cut off")]
    CutOff {
        /// Bytes read.
        at: u64,
    },
    /// Bytes are not what was written.
    #[error("it is damaged at byte {at}: {problem}")]
    Damaged {
        /// Where the frame begins.
        at: u64,
        /// What is wrong.
        problem: String,
    },
    /// The store refused.
    #[error("{0}")]
    Store(#[from] offshoot_dataset::Error),
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// What was asked for is no part of what was offered.
    #[error("it asks for what was not offered")]
    NotOffered,
    /// The other engine said no.
    #[error("{0}")]
    Refused(Failure),
    /// The other engine says what does not belong there.
    #[error("the other engine says what is not understood: {0}")]
    Confused(String),
    /// A block came that was not asked for, or was damaged: its content has another name.
    #[error("a block came damaged, or was not asked for")]
    Spoiled,
    /// Nothing came for too long.
    #[error("nothing came from the other engine for {seconds} s")]
    Silent {
        /// How long that was.
        seconds: u64,
    },
    /// The connection ended.
    #[error("the connection to the other engine ended")]
    HungUp,
    /// Whoever asked for it does not want it any more.
    #[error("it was cancelled")]
    Cancelled,
}

impl Error {
    /// Whether another connection may do better.
    pub fn is_of_connection(&self) -> bool {
        matches!(self, Error::Io(_) | Error::Silent { .. } | Error::HungUp)
    }

    /// What a user is told.
    pub fn failure(&self) -> Failure {
        let (kind, hint) = match self {
            Error::NotAnArchive => {
                (ErrorKind::InvalidInput, "name a file that 'offshoot replication export' wrote")
            }
            Error::Version(_) => (
                ErrorKind::InvalidInput,
                "upgrade this engine, or export it again with its version",
            ),
            Error::CutOff { .. } | Error::Damaged { .. } => (
                ErrorKind::InvalidInput,
                "nothing of it was kept; copy the archive again, or export it again",
            ),
            Error::Store(offshoot_dataset::Error::Corrupt(_)) => {
                (ErrorKind::InvalidInput, "nothing of it was kept; export it again")
            }
            Error::Store(error) => return error.failure(),
            Error::Io(_) => (ErrorKind::EngineUnreachable, "try again"),
            Error::NotOffered => (ErrorKind::Forbidden, "upgrade the older one of the two engines"),
            Error::Refused(failure) => return failure.clone(),
            Error::Confused(_) => (ErrorKind::Internal, "upgrade the older one of the two engines"),
            Error::Spoiled => (
                ErrorKind::DataDamaged,
                "check the pool of the engine that sends: offshoot pool scrub; the next run goes on",
            ),
            Error::Silent { .. } | Error::HungUp => (
                ErrorKind::EngineUnreachable,
                "check that the other engine runs and that the network reaches it; what came is kept, and the next run goes on",
            ),
            Error::Cancelled => (ErrorKind::Cancelled, ""),
        };
        Failure::new(kind, self.to_string(), hint)
    }
}
