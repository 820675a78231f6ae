//! What a timeflow, a snapshot or a VDB belongs to.

use crate::ObjectName;
use offshoot_types::{DsourceId, ErrorKind, Failure, VdbId};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A dSource or a VDB: whatever has a history. Its text is the id (`dsource-1`, `vdb-7`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Owner {
    /// A dSource.
    Dsource(DsourceId),
    /// A VDB.
    Vdb(VdbId),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Dsource(id) => id.fmt(f),
            Owner::Vdb(id) => id.fmt(f),
        }
    }
}

impl FromStr for Owner {
    type Err = Failure;
    fn from_str(text: &str) -> Result<Self, Failure> {
        let dsource = text.parse().map(Owner::Dsource);
        dsource.or_else(|_| text.parse().map(Owner::Vdb)).map_err(|_| {
            Failure::new(
                ErrorKind::InvalidInput,
                format!("'{text}' is neither a dSource's nor a VDB's id"),
                "ids look like dsource-1 and vdb-7",
            )
        })
    }
}

impl TryFrom<String> for Owner {
    type Error = Failure;
    fn try_from(text: String) -> Result<Self, Failure> {
        text.parse()
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> String {
        owner.to_string()
    }
}

impl From<DsourceId> for Owner {
    fn from(id: DsourceId) -> Self {
        Owner::Dsource(id)
    }
}

impl From<VdbId> for Owner {
    fn from(id: VdbId) -> Self {
        Owner::Vdb(id)
    }
}

/// Where a VDB comes from. The name stays when the parent is deleted, as any object may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The parent.
    pub owner: Owner,
    /// Its name when the VDB was provisioned.
    pub name: ObjectName,
}
