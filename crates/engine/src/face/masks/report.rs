//! Reports of masking, and the key that they are signed with.

use super::Masks;
use crate::core::keys::REPORT_KEY;
use crate::jobs::mask::keys::random_key;
use offshoot_catalog::Error;
use offshoot_domain::signed::SigningKey;
use offshoot_domain::{Dsource, DsourceState, MaskReport, Masking, Secret};
use offshoot_types::{ErrorKind, Failure, SnapshotId};

/// A report, and the name of its masked dSource.
#[derive(Debug, Clone)]
pub struct ReportView {
    /// The name of the masked dSource.
    pub name: String,
    /// What the run did.
    pub report: MaskReport,
}

impl Masks<'_> {
    /// What the newest run of a masked dSource did, or the one that gave an image.
    ///
    /// # Errors
    /// `NotFound` if it is none, or has no such image, or that was masked before reports were kept.
    pub fn report(&self, name: &str, image: Option<SnapshotId>) -> Result<ReportView, Failure> {
        let catalog = &self.parts.catalog;
        let masked = catalog.find_named::<Dsource>(name)?;
        let masked = masked.filter(|one| one.state == DsourceState::Masked).ok_or_else(|| {
            let hint = "list them: offshoot mask status";
            Failure::new(ErrorKind::NotFound, format!("there is no masked dSource '{name}'"), hint)
        })?;
        let masking = catalog.get::<Masking>(masked.id)?;
        let image = image.unwrap_or(masking.last.snapshot);
        let report = catalog.find::<MaskReport>(image)?.filter(|one| one.masked == masked.id);
        let report = report.ok_or_else(|| {
            Failure::new(
                ErrorKind::NotFound,
                format!("there is no report of {image} of '{name}'"),
                format!(
                    "its images: offshoot snapshot list {name}; a new one: offshoot mask apply"
                ),
            )
        })?;
        Ok(ReportView { name: masked.name.to_string(), report })
    }

    /// The key that reports are signed with; made when it is first asked for.
    ///
    /// # Errors
    /// The catalog's.
    pub fn report_key(&self) -> Result<SigningKey, Failure> {
        let secret = self.parts.catalog.transaction(|tx| -> Result<Secret, Error> {
            if let Some(secret) = tx.secret(REPORT_KEY)? {
                return Ok(secret);
            }
            let secret = random_key();
            tx.put_secret(REPORT_KEY, &secret)?;
            Ok(secret)
        })?;
        SigningKey::new(&secret)
    }
}
