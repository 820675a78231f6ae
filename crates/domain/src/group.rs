//! dSources that belong together, and the VDBs made from them together.

use crate::ObjectName;
use jiff::Timestamp;
use offshoot_types::{DsourceId, ErrorKind, Failure, GroupId, VdbGroupId, VdbId};
use serde::{Deserialize, Serialize};

/// Several dSources of which VDBs of one moment are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The id.
    pub id: GroupId,
    /// Unique among dSources, VDBs, groups and VDB groups.
    pub name: ObjectName,
    /// The dSources, in the order in which they were named; at least two, each once.
    pub members: Vec<DsourceId>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// VDBs that were provisioned together, one from each member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VdbGroup {
    /// The id.
    pub id: VdbGroupId,
    /// Unique as that of a [`Group`].
    pub name: ObjectName,
    /// The name of the group that it was provisioned from, also after that was deleted.
    pub group: ObjectName,
    /// The VDBs, in the order of the group's members.
    pub vdbs: Vec<VdbId>,
    /// The moment that all of them were opened at last; none before the first, and after a rewind.
    #[serde(default)]
    pub moment: Option<Timestamp>,
    /// When it was provisioned.
    pub created_at: Timestamp,
}

impl Group {
    /// What is made from a member, of what is made from all, gets this name: `dev-shop`.
    ///
    /// # Errors
    /// `InvalidInput` where that is no name.
    pub fn name_of(whole: &str, member: &str) -> Result<ObjectName, Failure> {
        format!("{whole}-{member}").parse()
    }

    /// A name for a group or a VDB group: one argument takes their ids, too.
    ///
    /// # Errors
    /// `InvalidInput`.
    pub fn parse_name(text: &str) -> Result<ObjectName, Failure> {
        if text.parse::<GroupId>().is_ok() || text.parse::<VdbGroupId>().is_ok() {
            return Err(Failure::new(
                ErrorKind::InvalidInput,
                format!("'{text}' cannot be a name: it has the form of an id"),
                "choose another name",
            ));
        }
        text.parse()
    }
}

#[cfg(test)]
mod tests;
