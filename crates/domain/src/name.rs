//! Names of objects.

use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::{fmt, ops::Deref, str::FromStr};

/// A name a user gave: 1 to 63 of `a-z 0-9 _ -`, beginning with a letter.
///
/// It is safe in paths, URLs and shell words as it is. Ids (`vdb-3`) are refused as names, so that
/// one argument can take either.
///
/// A copy of another engine's object has more of them, `west/shop`: its namespace and its name there, which is of the same
/// form where that is a copy too, `south/west/shop`. No user can give such a name ([`FromStr`] refuses it), so nothing else
/// is ever in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectName(String);

impl ObjectName {
    /// The longest name, in bytes.
    pub const LENGTH_MAX: usize = 63;

    /// The most names that one consists of.
    const PARTS_MAX: usize = 8;

    /// A name in a namespace.
    ///
    /// # Errors
    /// `InvalidInput` when it is in too many already.
    pub fn within(namespace: &ObjectName, name: &ObjectName) -> Result<ObjectName, Failure> {
        format!("{namespace}/{name}").try_into()
    }

    /// The namespace it is in.
    pub fn namespace(&self) -> Option<ObjectName> {
        self.0.rsplit_once('/').map(|(namespace, _)| ObjectName(namespace.to_owned()))
    }

    /// The name without its namespace.
    pub fn base(&self) -> ObjectName {
        ObjectName(self.0.rsplit_once('/').map_or(&self.0[..], |(_, base)| base).to_owned())
    }

    /// Of a name in namespaces the first one: that of the engine that has sent it here.
    pub fn outermost(&self) -> ObjectName {
        ObjectName(self.0.split_once('/').map_or(&self.0[..], |(first, _)| first).to_owned())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ObjectName {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let refuse = |why: &str| {
            let shown: String = text.chars().take(80).collect();
            Err(Failure::new(
                ErrorKind::InvalidInput,
                format!("'{shown}' cannot be a name: {why}"),
                "use 1 to 63 lower-case letters, digits, '-' and '_', beginning with a letter",
            ))
        };
        let allowed =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
        if text.is_empty() {
            return refuse("it is empty");
        }
        if text.len() > ObjectName::LENGTH_MAX {
            return refuse("it is longer than 63 characters");
        }
        if !text.bytes().all(allowed) {
            return refuse("it holds a character that is not allowed");
        }
        if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
            return refuse("it does not begin with a letter");
        }
        if looks_like_id(text) {
            return refuse("it has the form of an id");
        }
        Ok(ObjectName(text.to_owned()))
    }
}

fn looks_like_id(text: &str) -> bool {
    const KINDS: [&str; 7] =
        ["dataset", "snapshot", "dsource", "vdb", "timeflow", "job", "bookmark"];
    text.split_once('-').is_some_and(|(kind, number)| {
        KINDS.contains(&kind) && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// As it is stored: with or without namespaces.
impl TryFrom<String> for ObjectName {
    type Error = Failure;
    fn try_from(text: String) -> Result<Self, Failure> {
        for (at, part) in text.split('/').enumerate() {
            ObjectName::from_str(part)?;
            if at == ObjectName::PARTS_MAX {
                return Err(Failure::new(
                    ErrorKind::InvalidInput,
                    format!("'{part}' would be in more than {at} namespaces"),
                    "replicate it from an engine that is nearer to where it comes from",
                ));
            }
        }
        Ok(ObjectName(text))
    }
}

impl From<ObjectName> for String {
    fn from(name: ObjectName) -> String {
        name.0
    }
}

impl Deref for ObjectName {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
