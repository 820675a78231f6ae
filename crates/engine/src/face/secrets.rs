//! What can be asked of the secrets together. None of them is shown.

use crate::jobs::secrets;
use crate::parts::Parts;
use offshoot_types::{Failure, JobId};
use std::sync::Arc;

/// How secrets are sealed.
#[derive(Debug, Clone)]
pub struct SecretsView {
    /// How many there are.
    pub sealed: u64,
    /// The ids of the keys: the first seals, the others open what a crash or an old copy of the pool has.
    pub keys: Vec<String>,
    /// The file or directory with the keys.
    pub place: String,
    /// Whether the engine can change the keys.
    pub changeable: bool,
}

/// The secrets, as a user works with them.
pub struct Secrets<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Secrets<'_> {
    /// How they are sealed.
    ///
    /// # Errors
    /// The catalog's.
    pub fn view(&self) -> Result<SecretsView, Failure> {
        let places = &self.parts.key_places;
        let keys = self.parts.catalog.keyring();
        let keys = keys.iter().flat_map(|ring| ring.all());
        Ok(SecretsView {
            sealed: self.parts.catalog.secrets()?,
            keys: keys.map(|key| key.id().to_string()).collect(),
            place: places.place(),
            changeable: places.is_changeable(),
        })
    }

    /// Makes a new key and seals all secrets with it, as a job. The keys before it are removed only if told so: copies of
    /// the pool from before need them.
    ///
    /// # Errors
    /// `InvalidInput` where the system keeps the keys; `Busy` if one is running.
    pub fn rotate(&self, forget_old: bool) -> Result<JobId, Failure> {
        secrets::submit(self.parts, forget_old)
    }
}
