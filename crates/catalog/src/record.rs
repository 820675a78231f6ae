//! What the objects of the catalog have in common.

use offshoot_domain::{
    AccessToken, Bookmark, Dsource, Group, Incoming, Invitation, MaskReport, Masking, Owner, Peer,
    Profile, Replica, Snapshot, Template, Timeflow, Told, User, Vdb, VdbGroup, Webhook,
};
use offshoot_types::{
    BookmarkId, DsourceId, GroupId, PeerId, ProfileId, SnapshotId, TemplateId, TimeflowId, TokenId,
    UserId, VdbGroupId, VdbId, WebhookId,
};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt;

/// An object the catalog keeps by its id.
pub trait Record: Clone + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// Its typed id.
    type Id: Copy + fmt::Display + From64;
    /// What the row is filed under.
    const KIND: &'static str;
    /// Among what its name is unique.
    const NAMESPACE: Option<&'static str> = None;

    /// The id.
    fn id(&self) -> Self::Id;
    /// The unique name, where such objects have one.
    fn name(&self) -> Option<&str> {
        None
    }
    /// Whom it belongs to or comes from: what [`list_of`](crate::Catalog::list_of) looks for.
    fn owner(&self) -> Option<Owner> {
        None
    }
}

/// An id made of a number.
pub trait From64 {
    /// The id of this number.
    fn from_number(number: u64) -> Self;
    /// The number of this id.
    fn number(&self) -> u64;
}

macro_rules! numbered {
    ($($id:ty),*) => {$(
        impl From64 for $id {
            fn from_number(number: u64) -> Self {
                Self(number)
            }
            fn number(&self) -> u64 {
                self.0
            }
        }
    )*};
}
numbered!(
    DsourceId, VdbId, TimeflowId, SnapshotId, BookmarkId, GroupId, VdbGroupId, UserId, TokenId,
    PeerId, ProfileId, WebhookId, TemplateId
);

/// dSources and VDBs share one namespace, as `--from NAME` takes either; so do the groups of both.
const DATABASES: Option<&str> = Some("database");

impl Record for Dsource {
    type Id = DsourceId;
    const KIND: &'static str = "dsource";
    const NAMESPACE: Option<&'static str> = DATABASES;
    fn id(&self) -> DsourceId {
        self.id
    }
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Record for Vdb {
    type Id = VdbId;
    const KIND: &'static str = "vdb";
    const NAMESPACE: Option<&'static str> = DATABASES;
    fn id(&self) -> VdbId {
        self.id
    }
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
    /// The parent.
    fn owner(&self) -> Option<Owner> {
        Some(self.parent.owner)
    }
}

impl Record for Timeflow {
    type Id = TimeflowId;
    const KIND: &'static str = "timeflow";
    fn id(&self) -> TimeflowId {
        self.id
    }
    fn owner(&self) -> Option<Owner> {
        Some(self.owner)
    }
}

impl Record for Snapshot {
    type Id = SnapshotId;
    const KIND: &'static str = "snapshot";
    fn id(&self) -> SnapshotId {
        self.id
    }
    fn owner(&self) -> Option<Owner> {
        Some(self.owner)
    }
}

impl Record for Bookmark {
    type Id = BookmarkId;
    const KIND: &'static str = "bookmark";
    const NAMESPACE: Option<&'static str> = Some("bookmark");
    fn id(&self) -> BookmarkId {
        self.id
    }
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
    fn owner(&self) -> Option<Owner> {
        Some(self.owner)
    }
}

impl Record for Masking {
    type Id = DsourceId;
    const KIND: &'static str = "masking";
    fn id(&self) -> DsourceId {
        self.id
    }
    /// What it is masked from.
    fn owner(&self) -> Option<Owner> {
        Some(self.source.into())
    }
}

impl Record for MaskReport {
    type Id = SnapshotId;
    const KIND: &'static str = "mask_report";
    fn id(&self) -> SnapshotId {
        self.id
    }
    /// The masked dSource.
    fn owner(&self) -> Option<Owner> {
        Some(self.masked.into())
    }
}

impl Record for Replica {
    type Id = DsourceId;
    const KIND: &'static str = "replica";
    fn id(&self) -> DsourceId {
        self.id
    }
}

impl Record for Incoming {
    type Id = DsourceId;
    const KIND: &'static str = "incoming";
    fn id(&self) -> DsourceId {
        self.id
    }
}

impl Record for Told {
    type Id = PeerId;
    const KIND: &'static str = "told";
    fn id(&self) -> PeerId {
        self.id
    }
}

impl Record for Invitation {
    type Id = PeerId;
    const KIND: &'static str = "invitation";
    fn id(&self) -> PeerId {
        self.id
    }
}

impl Record for Peer {
    type Id = PeerId;
    const KIND: &'static str = "peer";
    const NAMESPACE: Option<&'static str> = Some("peer");
    fn id(&self) -> PeerId {
        self.id
    }
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Record for Profile {
    type Id = ProfileId;
    const KIND: &'static str = "profile";
    const NAMESPACE: Option<&'static str> = Some("profile");
    fn id(&self) -> ProfileId {
        self.id
    }
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Record for Webhook {
    type Id = WebhookId;
    const KIND: &'static str = "webhook";
    const NAMESPACE: Option<&'static str> = Some("webhook");
    fn id(&self) -> WebhookId {
        self.id
    }
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Record for Template {
    type Id = TemplateId;
    const KIND: &'static str = "template";
    const NAMESPACE: Option<&'static str> = Some("template");
    fn id(&self) -> TemplateId {
        self.id
    }
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Record for Group {
    type Id = GroupId;
    const KIND: &'static str = "group";
    const NAMESPACE: Option<&'static str> = DATABASES;
    fn id(&self) -> GroupId {
        self.id
    }
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Record for VdbGroup {
    type Id = VdbGroupId;
    const KIND: &'static str = "vdb-group";
    const NAMESPACE: Option<&'static str> = DATABASES;
    fn id(&self) -> VdbGroupId {
        self.id
    }
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Record for User {
    type Id = UserId;
    const KIND: &'static str = "user";
    const NAMESPACE: Option<&'static str> = Some("user");
    fn id(&self) -> UserId {
        self.id
    }
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Record for AccessToken {
    type Id = TokenId;
    const KIND: &'static str = "token";
    fn id(&self) -> TokenId {
        self.id
    }
}
