//! Replacing what a copy may not show.

use crate::{Server, Tick};
use offshoot_domain::Secret;
use offshoot_types::Failure;

/// Masks copies.
pub trait Masker: Send + Sync {
    /// Reads rules, written as this kind of database needs them: what to mask, and how.
    ///
    /// # Errors
    /// `InvalidInput` naming the rule that is not understood.
    fn read(&self, rules: &str) -> Result<Box<dyn Masking>, Failure>;
}

/// Rules that were understood.
pub trait Masking: Send + Sync {
    /// Masks a copy by its server, which has replayed all it will, has no way to its source and is reached
    /// by the engine alone. With the same key the same value gets the same mask, in any copy. A copy whose
    /// masking was cut off is discarded: it is made again from the image as taken.
    ///
    /// # Errors
    /// If anything that the rules name could not be masked; nobody may get the copy then. The tick's,
    /// which counts values.
    fn mask(
        &self,
        server: &dyn Server,
        key: &Secret,
        tick: &mut Tick<'_>,
    ) -> Result<Masked, Failure>;
}

/// What was masked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Masked {
    /// How many values were replaced.
    pub values: u64,
    /// Rules that met nothing.
    pub idle: Vec<String>,
}
