//! Errors of operations by path.

use offshoot_dataset::Error;
use offshoot_types::Failure;
use std::path::{Path, PathBuf};

/// A result of an operation by path.
pub type Result<T, E = PathError> = std::result::Result<T, E>;

/// An operation by path that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {operation} '{}': {source}", path.display())]
pub struct PathError {
    /// What was tried, as a verb phrase.
    pub operation: &'static str,
    /// The path within the dataset.
    pub path: PathBuf,
    /// Why it failed.
    pub source: Error,
}

impl PathError {
    pub(crate) fn at(operation: &'static str, path: &Path) -> impl Fn(Error) -> PathError {
        let path = path.to_owned();
        move |source| PathError { operation, path: path.clone(), source }
    }

    /// The errno a Linux filesystem answers.
    pub fn errno(&self) -> i32 {
        self.source.errno()
    }

    /// Whether the path or a directory on the way is missing.
    pub fn is_not_found(&self) -> bool {
        self.source == Error::NotFound
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        let failure = error.source.failure();
        Failure::new(failure.code, error.to_string(), failure.hint)
    }
}
