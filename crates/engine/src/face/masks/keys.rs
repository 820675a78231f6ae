//! The keys that values are masked with, as a user manages them.

use super::Masks;
use crate::jobs::mask::keys;
use jiff::Timestamp;
use offshoot_domain::{Dsource, Masking};
use offshoot_types::Failure;
use std::collections::BTreeMap;

/// A key; never the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskKeyView {
    /// The name that rules have for it.
    pub name: String,
    /// 1, and one more with each rotation.
    pub version: u32,
    /// When it was made; none: before that was noted.
    pub made_at: Option<Timestamp>,
    /// Masked dSources whose rules name it.
    pub used_by: Vec<String>,
}

impl Masks<'_> {
    /// The keys that masked dSources use, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn keys(&self) -> Result<Vec<MaskKeyView>, Failure> {
        let mut views = Vec::new();
        for (name, used_by) in self.users()? {
            if let Some(key) = keys::find(self.parts, &name)? {
                let (version, made_at) = (key.version, key.made_at);
                views.push(MaskKeyView { name, version, made_at, used_by });
            }
        }
        Ok(views)
    }

    /// Makes another key of a name and forgets the one before: what is masked from now on does not join what was.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn rotate_key(&self, name: &str) -> Result<MaskKeyView, Failure> {
        let key = keys::rotate(self.parts, name)?;
        let used_by = self.users()?.remove(name).unwrap_or_default();
        let (version, made_at) = (key.version, key.made_at);
        Ok(MaskKeyView { name: name.to_owned(), version, made_at, used_by })
    }

    /// Masked dSources by the names of their keys.
    fn users(&self) -> Result<BTreeMap<String, Vec<String>>, Failure> {
        let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for masking in self.parts.catalog.all::<Masking>()?.iter() {
            if let Some(masked) = self.parts.catalog.find::<Dsource>(masking.id)? {
                users.entry(masking.key.clone()).or_default().push(masked.name.to_string());
            }
        }
        users.values_mut().for_each(|names| names.sort());
        Ok(users)
    }
}
