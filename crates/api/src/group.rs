//! Groups: dSources that belong together, and the VDBs made of them at one moment.

use crate::{DsourceState, Vdb, Warning};
use jiff::Timestamp;
use offshoot_types::{DsourceId, GroupId, VdbGroupId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A dSource of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupMember {
    /// Its id.
    #[schema(value_type = String, example = "dsource-1")]
    pub id: DsourceId,
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: DsourceState,
    /// The source's clock when all it had was received; null before the first copy is complete.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub synced_to: Option<Timestamp>,
    /// How far the source's clock is ahead of the engine's; less than 0: behind; null where they cannot be compared.
    #[schema(required)]
    pub clock_skew_ms: Option<i64>,
}

/// A group of dSources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Its id.
    #[schema(value_type = String, example = "group-1")]
    pub id: GroupId,
    /// Its name.
    pub name: String,
    /// Its dSources, as they were named.
    pub members: Vec<GroupMember>,
    /// The latest moment that all of them have; null while one has none.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub latest: Option<Timestamp>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// What is not wrong, but should be known: of the clocks.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// All groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupList {
    /// By name.
    pub groups: Vec<Group>,
}

/// VDBs that were provisioned together, one from each dSource of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VdbGroup {
    /// Its id.
    #[schema(value_type = String, example = "vdb-group-1")]
    pub id: VdbGroupId,
    /// Its name.
    pub name: String,
    /// The name of the group it was provisioned from, also after that was deleted.
    pub group: String,
    /// The moment that all of its VDBs were opened at last; null before the first, and after a rewind.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub moment: Option<Timestamp>,
    /// Its VDBs.
    pub vdbs: Vec<Vdb>,
    /// The dSources that they are made from.
    pub members: Vec<GroupMember>,
    /// When it was provisioned.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// What is not wrong, but should be known: of the clocks.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// All VDB groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VdbGroupList {
    /// By name.
    pub vdb_groups: Vec<VdbGroup>,
}

/// Makes a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateGroup {
    /// The name to give it: 1–63 of `a-z 0-9 _ -`, starting with a letter.
    pub name: String,
    /// The dSources: at least two.
    pub members: Vec<String>,
}

/// Makes a VDB of each member of a group, all of one moment, or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProvisionVdbGroup {
    /// The name to give it; that of a VDB is this and its dSource's: `NAME-MEMBER`.
    pub name: String,
    /// The group.
    pub group: String,
    /// The moment, by the sources' clocks; the latest that all members have where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
    /// Settings of the databases, over the engine's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// A limit of the memory of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// Opens another moment in all VDBs, or in none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RefreshVdbGroup {
    /// The moment, by the sources' clocks; the latest that all have where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
}

/// Goes back to bookmarks that were set together, in all VDBs or in none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RewindVdbGroup {
    /// The name that was given then.
    pub bookmark: String,
}

/// Sets a bookmark on each VDB, or on none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BookmarkVdbGroup {
    /// What their names begin with: the bookmark on the VDB of a member is `BOOKMARK-MEMBER`.
    pub bookmark: String,
}
