//! What users made in a VDB beside its data, for its next data.

use crate::Server;
use offshoot_domain::{Kept, Secret};
use offshoot_types::Failure;
use std::collections::BTreeSet;

/// Takes along what users made in a VDB when its data is replaced.
pub trait Keepsakes: Send + Sync {
    /// What there is of these kinds, as a text that only [`Keepsakes::bring`] reads. Passwords are in it as the server keeps them.
    ///
    /// # Errors
    /// When the server does not answer.
    fn take(&self, server: &dyn Server, kinds: &BTreeSet<Kept>) -> Result<Secret, Failure>;

    /// Gives it to a server of other data, before users reach that. `superuser`: whether the VDB's user is one there; nobody
    /// becomes one otherwise. Returns what did not fit, in words for people.
    ///
    /// # Errors
    /// When the server does not answer, and for a text that is none.
    fn bring(
        &self,
        server: &dyn Server,
        kept: &Secret,
        superuser: bool,
    ) -> Result<Vec<String>, Failure>;
}
