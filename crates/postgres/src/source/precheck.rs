//! Whether a source can be linked, and which statements make it so.

use offshoot_types::{ErrorKind, Failure};

use super::{Session, Source, SourceFacts};
use crate::installation::{Installation, Tools};

/// What a look at a source found.
#[derive(Debug, Clone, Default)]
pub struct Precheck {
    /// What the source is; present whenever it let us in.
    pub facts: Option<SourceFacts>,
    /// Everything that prevents the link; each hint is the statement or command that mends it.
    pub problems: Vec<Failure>,
    /// What may become a problem later; each hint says what to do.
    pub warnings: Vec<Failure>,
}

impl Precheck {
    /// The facts when nothing prevents the link.
    ///
    /// # Errors
    /// One failure that names all problems and all mends.
    pub fn into_result(self) -> Result<SourceFacts, Failure> {
        todo!()
    }
}

/// Looks at a source and collects all problems. Takes at most a few seconds, changes nothing.
pub fn precheck(source: &Source, installations: &[Installation]) -> Precheck {
    todo!()
}
