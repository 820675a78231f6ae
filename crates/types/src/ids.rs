//! One typed id per kind of thing, so that a VDB's id cannot be passed as a snapshot's.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an id of the form {prefix}-N")]
pub struct ParseIdError {
    /// What was given.
    pub text: String,
    /// The prefix such an id has.
    pub prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "-{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix(concat!($prefix, "-"))
                    .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
                    .and_then(|digits| digits.parse().ok())
                    .map($name)
                    .ok_or_else(|| ParseIdError { text: text.to_owned(), prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// A dataset: a tree of files in the pool. Never reused within a pool.
    DatasetId, "dataset");
id!(
    /// An immutable root of a dataset. Never reused within a pool.
    SnapshotId, "snapshot");
id!(
    /// The engine's synchronised copy of one source.
    DsourceId, "dsource");
id!(
    /// A writable virtual database.
    VdbId, "vdb");
id!(
    /// The history of one dSource or VDB between two rewinds or refreshes.
    TimeflowId, "timeflow");
id!(
    /// A named point of a timeflow.
    BookmarkId, "bookmark");
id!(
    /// Several dSources that belong together.
    GroupId, "group");
id!(
    /// The VDBs that were provisioned together, one from each member of a group.
    VdbGroupId, "vdb-group");
id!(
    /// Who may use an engine. Never given twice, also if a name is.
    UserId, "user");
id!(
    /// What a user shows to be known.
    TokenId, "token");
id!(
    /// Another engine that this one sends to or takes from.
    PeerId, "peer");
id!(
    /// What is sent to another engine, and when.
    ProfileId, "profile");
id!(
    /// Whom this engine tells of events.
    WebhookId, "webhook");
id!(
    /// What VDBs are to be like.
    TemplateId, "template");
id!(
    /// One run of a workflow.
    JobId, "job");

/// A transaction group: counts the durable roots of a pool, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Txg(pub u64);

/// An inode number, unique within a dataset and never reused in it. The root directory is 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Ino(pub u64);

impl Ino {
    /// The root directory of every dataset.
    pub const ROOT: Ino = Ino(1);
}
