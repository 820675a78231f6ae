//! Templates: what VDBs are to be like, said once.

use crate::{CareChange, Exposure, GatewayChange, Hook, HookEvent, Kept, Moment, ObjectName};
use jiff::Timestamp;
use offshoot_types::{Remote, TemplateId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What VDBs that are made by it are like, unless whoever makes one says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// The id.
    pub id: TemplateId,
    /// Unique among templates.
    pub name: ObjectName,
    /// What they are made from; none: whoever makes one says it.
    pub from: Option<ObjectName>,
    /// Which moment of that.
    pub moment: Moment,
    /// What listens on their port.
    pub gateway: GatewayChange,
    /// Settings of the database.
    pub settings: BTreeMap<String, String>,
    /// What they may take, in bytes.
    pub memory_bytes: Option<u64>,
    /// Whether the source's logins work on them.
    pub keep_source_logins: bool,
    /// Whether their user is a superuser.
    pub superuser: bool,
    /// Whether the source's foreign servers stay.
    pub keep_foreign_servers: bool,
    /// How other hosts reach them.
    pub exposure: Option<Exposure>,
    /// The ports of other hosts that they may connect to.
    pub reaches: Vec<Remote>,
    /// Whether warm copies will do.
    pub warm: bool,
    /// What is said about them.
    pub care: CareChange,
    /// What a refresh keeps of them.
    #[serde(default)]
    pub refresh_keeps: BTreeSet<Kept>,
    /// What runs in them. The texts are the template's own: a VDB gets copies.
    pub hooks: BTreeMap<HookEvent, Hook>,
    /// When it was made.
    pub created_at: Timestamp,
}
