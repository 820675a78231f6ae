//! What a fault or a job is about.

use offshoot_domain::ObjectName;
use offshoot_types::SnapshotId;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

const POOL: &str = "pool";
const ENGINE: &str = "engine";
/// Stands before a name that would read as something else: `:` is in no name.
const NAMED: &str = "name:";

/// What a fault or a job is about. Its [stored text](Subject::stored) tells the pool from a VDB of the name
/// `pool`; what people see of both is `pool`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Subject {
    /// The pool.
    Pool,
    /// The engine itself.
    Engine,
    /// A snapshot.
    Snapshot(SnapshotId),
    /// What has a name: a dSource, VDB or bookmark.
    Named(String),
}

impl Subject {
    /// The object of this name.
    pub fn named(name: impl Into<String>) -> Subject {
        Subject::Named(name.into())
    }

    /// The text that is stored, another one for each subject: a name as it stands, unless it is taken.
    pub fn stored(&self) -> Cow<'_, str> {
        match self {
            Subject::Pool => POOL.into(),
            Subject::Engine => ENGINE.into(),
            Subject::Snapshot(id) => id.to_string().into(),
            Subject::Named(name) if Subject::of_stored(name) == *self => name.into(),
            Subject::Named(name) => format!("{NAMED}{name}").into(),
        }
    }

    /// The subject of a stored text.
    pub fn of_stored(text: &str) -> Subject {
        match text {
            POOL => Subject::Pool,
            ENGINE => Subject::Engine,
            _ => match (text.parse(), text.strip_prefix(NAMED)) {
                (Ok(id), _) => Subject::Snapshot(id),
                (_, Some(name)) => Subject::named(name),
                (_, None) => Subject::named(text),
            },
        }
    }
}

/// As people see it.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Pool => f.write_str(POOL),
            Subject::Engine => f.write_str(ENGINE),
            Subject::Snapshot(id) => id.fmt(f),
            Subject::Named(name) => f.write_str(name),
        }
    }
}

impl From<String> for Subject {
    fn from(stored: String) -> Subject {
        Subject::of_stored(&stored)
    }
}

impl From<Subject> for String {
    fn from(subject: Subject) -> String {
        subject.stored().into_owned()
    }
}

impl From<&ObjectName> for Subject {
    fn from(name: &ObjectName) -> Subject {
        Subject::named(name.as_str())
    }
}

impl From<SnapshotId> for Subject {
    fn from(id: SnapshotId) -> Subject {
        Subject::Snapshot(id)
    }
}

#[cfg(test)]
mod tests;
