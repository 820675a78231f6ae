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
    /// What they are to be like.
    #[serde(flatten)]
    pub wishes: Wishes,
    /// What runs in them. The texts are the template's own: a VDB gets copies.
    pub hooks: BTreeMap<HookEvent, Hook>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What a VDB is to be like, said where it is provisioned and by templates: all but its name, its port, where it comes from, and
/// what runs in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Wishes {
    /// The moment of its parent's history to open.
    pub moment: Moment,
    /// What listens on its port.
    pub gateway: GatewayChange,
    /// Settings of its server that are not those of the source.
    pub settings: BTreeMap<String, String>,
    /// What its server and the kernel's cache of its files may take, in bytes.
    pub memory_bytes: Option<u64>,
    /// The source's logins work on it as well.
    pub keep_source_logins: bool,
    /// Its user is a superuser, who may also run programs in the server's cell.
    pub superuser: bool,
    /// The source's foreign servers stay, with the passwords for them.
    pub keep_foreign_servers: bool,
    /// How other hosts reach it; none: not at all.
    pub exposure: Option<Exposure>,
    /// The ports of other hosts that it may connect to.
    pub reaches: Vec<Remote>,
    /// A warm copy will do, if there is one: of a moment that may be a minute old.
    pub warm: bool,
    /// What its user says about it.
    pub care: CareChange,
    /// What a refresh keeps of it.
    #[serde(default)]
    pub refresh_keeps: BTreeSet<Kept>,
}

impl Wishes {
    /// These, and where they say nothing what others say. Settings, labels, reachable ports and what a refresh keeps are added to
    /// theirs; what others allow stays allowed.
    pub fn or(self, mut others: Wishes) -> Wishes {
        others.settings.extend(self.settings);
        others.reaches.extend(self.reaches);
        others.refresh_keeps.extend(self.refresh_keeps);
        others.care.labels.extend(self.care.labels);
        Wishes {
            moment: match self.moment {
                Moment::Latest => others.moment,
                chosen => chosen,
            },
            gateway: GatewayChange {
                wanted: self.gateway.wanted.or(others.gateway.wanted),
                stop_when_idle_ms: self
                    .gateway
                    .stop_when_idle_ms
                    .or(others.gateway.stop_when_idle_ms),
            },
            settings: others.settings,
            memory_bytes: self.memory_bytes.or(others.memory_bytes),
            keep_source_logins: self.keep_source_logins || others.keep_source_logins,
            superuser: self.superuser || others.superuser,
            keep_foreign_servers: self.keep_foreign_servers || others.keep_foreign_servers,
            exposure: self.exposure.or(others.exposure),
            reaches: others.reaches,
            warm: self.warm || others.warm,
            care: CareChange {
                description: self.care.description.or(others.care.description),
                labels: others.care.labels,
                protected: self.care.protected.or(others.care.protected),
                expires_in_ms: self.care.expires_in_ms.or(others.care.expires_in_ms),
            },
            refresh_keeps: others.refresh_keeps,
        }
    }
}
