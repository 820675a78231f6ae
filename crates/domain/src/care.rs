//! What a VDB is for and how long it is to stay, as its users say.

use jiff::{SignedDuration, Timestamp};
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const DESCRIPTION_CHARS_MAX: usize = 500;
const LABELS_MAX: usize = 32;
const KEY_BYTES_MAX: usize = 63;
const VALUE_CHARS_MAX: usize = 200;
/// The longest life: ten years.
const LIFE_MS_MAX: u64 = 10 * 365 * 24 * 3_600_000;

/// What the users of a VDB say about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Care {
    /// What it is for.
    pub description: String,
    /// What it is found by.
    pub labels: BTreeMap<String, String>,
    /// It is neither deleted nor replaced.
    pub protected: bool,
    /// When it is deleted; none: never.
    pub expires_at: Option<Timestamp>,
}

/// What to change; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CareChange {
    /// See [`Care::description`].
    pub description: Option<String>,
    /// Labels to set; with none, to remove.
    pub labels: BTreeMap<String, Option<String>>,
    /// See [`Care::protected`].
    pub protected: Option<bool>,
    /// Milliseconds from now; `Some(None)`: never.
    pub expires_in_ms: Option<Option<u64>>,
}

impl Care {
    /// What becomes of it by a change made now.
    ///
    /// # Errors
    /// `InvalidInput` with what would be valid.
    pub fn changed(&self, change: &CareChange, now: Timestamp) -> Result<Care, Failure> {
        let mut care = self.clone();
        if let Some(description) = &change.description {
            care.description.clone_from(description);
        }
        for (key, value) in &change.labels {
            match value {
                Some(value) => drop(care.labels.insert(key.clone(), value.clone())),
                None => drop(care.labels.remove(key)),
            }
        }
        care.protected = change.protected.unwrap_or(care.protected);
        if let Some(expires_in_ms) = change.expires_in_ms {
            care.expires_at = expires_in_ms.map(|ms| end_of_life(ms, now)).transpose()?;
        }
        care.check()?;
        Ok(care)
    }

    /// Whether it is what users may say.
    ///
    /// # Errors
    /// `InvalidInput` with what would be valid.
    pub fn check(&self) -> Result<(), Failure> {
        check_text("a description", &self.description, DESCRIPTION_CHARS_MAX)?;
        for (key, value) in &self.labels {
            check_key(key)?;
            check_text("the value of a label", value, VALUE_CHARS_MAX)?;
        }
        if self.labels.len() > LABELS_MAX {
            let message = format!("a VDB has {LABELS_MAX} labels at most");
            return Err(invalid(message, "remove some that nobody looks for"));
        }
        if self.protected && self.expires_at.is_some() {
            return Err(invalid(
                "what is protected does not expire".to_owned(),
                "leave out the one or the other: --expires never, --unprotect",
            ));
        }
        Ok(())
    }

    /// Whether it is to be deleted.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

fn end_of_life(ms: u64, now: Timestamp) -> Result<Timestamp, Failure> {
    let end = i64::try_from(ms).ok().filter(|_| ms > 0 && ms <= LIFE_MS_MAX);
    end.and_then(|ms| now.checked_add(SignedDuration::from_millis(ms)).ok()).ok_or_else(|| {
        let why = if ms == 0 {
            "a VDB cannot expire at once"
        } else {
            "a VDB expires within ten years, or never"
        };
        invalid(why.to_owned(), "use --expires 3d")
    })
}

fn check_key(key: &str) -> Result<(), Failure> {
    let usable = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    if !key.is_empty() && key.len() <= KEY_BYTES_MAX && key.bytes().all(usable) {
        return Ok(());
    }
    let shown: String = key.escape_debug().take(80).collect();
    let message = format!("'{shown}' is no key of a label");
    Err(invalid(message, "use 1 to 63 of A-Z a-z 0-9 . _ / -"))
}

fn check_text(what: &str, text: &str, chars_max: usize) -> Result<(), Failure> {
    if text.chars().count() <= chars_max && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let message = format!("{what} is one line of {chars_max} characters at most");
    Err(invalid(message, "shorten it, and leave line breaks out"))
}

fn invalid(message: String, hint: &str) -> Failure {
    Failure::new(ErrorKind::InvalidInput, message, hint)
}

#[cfg(test)]
mod tests;
