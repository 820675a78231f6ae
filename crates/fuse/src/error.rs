//! Why a mount could not be made or ended.

use offshoot_types::{ErrorKind, Failure};
use std::io;
use std::path::PathBuf;

/// How mounting or unmounting failed.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The host has no FUSE, or does not let this user use it.
    #[error("this host cannot mount datasets: {reason}")]
    HostUnprepared {
        /// What is missing.
        reason: String,
        /// How to fix it.
        mend: String,
    },
    /// The directory is not usable as a mount point.
    #[error("cannot use {path} as a mount point: {source}")]
    MountPoint {
        /// The directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The kernel refused the mount.
    #[error("cannot mount a dataset on {path}: {source}")]
    Refused {
        /// The mount point.
        path: PathBuf,
        /// What the kernel or fusermount3 said.
        source: io::Error,
    },
    /// The mount could not be removed.
    #[error("cannot unmount {path}: {reason}")]
    Unmount {
        /// The mount point.
        path: PathBuf,
        /// What the kernel or fusermount3 said.
        reason: String,
    },
    /// The table of mounts could not be read.
    #[error("cannot read the table of mounts: {0}")]
    MountTable(#[source] io::Error),
}

impl From<MountError> for Failure {
    fn from(error: MountError) -> Self {
        let message = error.to_string();
        match error {
            MountError::HostUnprepared { mend, .. } => {
                Failure::new(ErrorKind::HostUnprepared, message, mend)
            }
            MountError::MountPoint { path, .. } | MountError::Refused { path, .. } => Failure::new(
                ErrorKind::HostUnprepared,
                message,
                format!("check that {} is an empty directory the engine may use", path.display()),
            ),
            MountError::Unmount { path, .. } => Failure::new(
                ErrorKind::Busy,
                message,
                format!(
                    "end the programs that use it (see 'fuser -vm {0}') or run 'umount -l {0}'",
                    path.display()
                ),
            ),
            MountError::MountTable(_) => {
                Failure::new(ErrorKind::HostUnprepared, message, "make sure that /proc is mounted")
            }
        }
    }
}
