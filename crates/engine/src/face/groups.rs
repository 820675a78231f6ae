//! What can be asked of groups, and of the VDBs that were made of them.

use crate::face::dsources::{self, DsourceView};
use crate::face::vdbs::{self, VdbView};
use crate::history::groups;
use crate::history::names;
use crate::jobs::group;
use crate::jobs::provision::Input;
use crate::parts::Parts;
use jiff::Timestamp;
use offshoot_domain::{Dsource, DsourceState, Group, ObjectName, Owner, Parent, Vdb, VdbGroup};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId, UserId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fewest members of a group.
const MEMBERS_MIN: usize = 2;
/// The most: all their VDBs are opened by one job.
const MEMBERS_MAX: usize = 64;

/// What is provisioned of a group.
#[derive(Debug, Clone, Default)]
pub struct GroupProvisionRequest {
    /// The VDB group's name; its VDBs are named after it and their members.
    pub name: String,
    /// The name or id of the group.
    pub group: String,
    /// The moment to open in all; none: the latest that all have.
    pub at: Option<Timestamp>,
    /// Settings of their servers that are not those of the sources.
    pub settings: BTreeMap<String, String>,
    /// What each server and the kernel's cache of its files may take, in bytes.
    pub memory_bytes: Option<u64>,
    /// Whose they are; none: the administrators'.
    pub user: Option<UserId>,
}

/// A group and its members as they are now.
#[derive(Debug, Clone)]
pub struct GroupView {
    /// Its record.
    pub group: Group,
    /// The dSources.
    pub members: Vec<DsourceView>,
}

/// A VDB group, its VDBs and what they are made from as they are now.
#[derive(Debug, Clone)]
pub struct VdbGroupView {
    /// Its record.
    pub group: VdbGroup,
    /// The VDBs.
    pub vdbs: Vec<VdbView>,
    /// The dSources that they are made from, where they are still there.
    pub sources: Vec<DsourceView>,
}

/// Groups, as a user works with them.
pub struct Groups<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Groups<'_> {
    /// Makes a group of dSources.
    ///
    /// # Errors
    /// `AlreadyExists` for the name, `NotFound` for a member, `InvalidInput` for too few or one that is named twice.
    pub fn create(&self, name: &str, members: &[String]) -> Result<GroupView, Failure> {
        let parts = self.parts;
        let name = Group::parse_name(name)?;
        let mut ids: Vec<DsourceId> = Vec::new();
        for member in members {
            let dsource = parts.dsource(member)?;
            check_member(&dsource)?;
            if ids.contains(&dsource.id) {
                let message = format!("'{member}' is named twice");
                return Err(Failure::new(ErrorKind::InvalidInput, message, "name it once"));
            }
            ids.push(dsource.id);
        }
        check_count(ids.len())?;
        names::check_free(parts, &name)?;
        if parts.runner()?.is_busy(format!("name:{name}")) {
            let message = format!("a job is making something of the name '{name}'");
            return Err(Failure::new(ErrorKind::Busy, message, "choose another name"));
        }
        let now = parts.now();
        let group = parts.catalog.transaction(|tx| {
            // Those that were removed in the meantime are no members.
            for id in &ids {
                tx.get::<Dsource>(*id)?;
            }
            let group = Group { id: tx.allocate::<Group>()?, name, members: ids, created_at: now };
            tx.put(&group).map(|()| group)
        })?;
        self.view(group)
    }

    /// All groups, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<GroupView>, Failure> {
        let mut all: Vec<Group> = self.parts.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.into_iter().map(|group| self.view(group)).collect()
    }

    /// One group.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, name: &str) -> Result<GroupView, Failure> {
        self.view(groups::group(self.parts, name)?)
    }

    /// Removes a group. Its members and the VDBs that were made of it stay.
    ///
    /// # Errors
    /// `NotFound`; `Busy` while VDBs are being made of it.
    pub fn delete(&self, name: &str) -> Result<GroupView, Failure> {
        let shown = self.show(name)?;
        let id = shown.group.id;
        if self.parts.runner()?.is_busy(id) {
            let message = format!("VDBs are being made of the group '{}'", shown.group.name);
            return Err(Failure::new(ErrorKind::Busy, message, "wait for it: offshoot job list"));
        }
        self.parts.catalog.delete::<Group>(id)?;
        Ok(shown)
    }

    fn view(&self, group: Group) -> Result<GroupView, Failure> {
        Ok(GroupView { members: dsources_of(self.parts, &group.members)?, group })
    }

    /// Makes a VDB of each member, all at one moment.
    ///
    /// # Errors
    /// What can be checked immediately: names, members that do not follow their sources, the moment.
    pub fn provision(&self, request: GroupProvisionRequest) -> Result<JobId, Failure> {
        let (parts, requested_ms) = (self.parts, self.parts.elapsed_ms());
        let group = groups::group(parts, &request.group)?;
        let name = Group::parse_name(&request.name)?;
        let wanted = group.members.iter().map(|id| {
            let member: Dsource = parts.catalog.get(*id)?;
            let vdb = parts.catalog.allocate::<Vdb>()?;
            let name = Group::name_of(&name, &member.name)?;
            let parent = Parent { owner: member.id.into(), name: member.name };
            Ok(Input {
                settings: request.settings.clone(),
                memory_bytes: request.memory_bytes,
                user: request.user,
                requested_ms,
                // Which moment, is agreed on by the job.
                ..Input::of_latest(parts, vdb, name, parent)
            })
        });
        let wanted = wanted.collect::<Result<Vec<Input>, Failure>>()?;
        group::submit_provision(parts, &group, name, request.at, wanted)
    }

    /// All VDB groups, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list_vdb_groups(&self) -> Result<Vec<VdbGroupView>, Failure> {
        let mut all: Vec<VdbGroup> = self.parts.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.into_iter().map(|group| self.vdb_group_view(group)).collect()
    }

    /// One VDB group.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show_vdb_group(&self, name: &str) -> Result<VdbGroupView, Failure> {
        self.vdb_group_view(groups::vdb_group(self.parts, name)?)
    }

    fn vdb_group_view(&self, group: VdbGroup) -> Result<VdbGroupView, Failure> {
        let parts = self.parts;
        let mut vdbs: Vec<Vdb> = Vec::new();
        for id in &group.vdbs {
            // While it is being made, and while it is deleted, not all are there.
            vdbs.extend(parts.catalog.find::<Vdb>(*id)?);
        }
        let sources = vdbs.iter().filter_map(|vdb| match vdb.parent.owner {
            Owner::Dsource(id) => Some(id),
            Owner::Vdb(_) => None,
        });
        let sources = dsources_of(parts, &sources.collect::<Vec<_>>())?;
        Ok(VdbGroupView { group, vdbs: vdbs::views(parts, vdbs)?, sources })
    }

    /// Opens one moment of what they are made from in all VDBs; none: the latest that all have.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `MomentUnavailable`, `WrongState`.
    pub fn refresh(&self, name: &str, at: Option<Timestamp>) -> Result<JobId, Failure> {
        group::submit_refresh(self.parts, name, at)
    }

    /// Goes back to the bookmarks that [`Groups::bookmark`] has set.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn rewind(&self, name: &str, bookmark: &str) -> Result<JobId, Failure> {
        group::submit_rewind(self.parts, name, bookmark)
    }

    /// Sets a bookmark on each VDB: `BOOKMARK-MEMBER`.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists`, `Busy`.
    pub fn bookmark(&self, name: &str, bookmark: &str) -> Result<JobId, Failure> {
        group::submit_bookmark(self.parts, name, &bookmark.parse::<ObjectName>()?)
    }

    /// Starts all VDBs.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn start(&self, name: &str) -> Result<JobId, Failure> {
        group::submit_start(self.parts, name)
    }

    /// Stops all VDBs.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn stop(&self, name: &str) -> Result<JobId, Failure> {
        group::submit_stop(self.parts, name)
    }

    /// Deletes all VDBs and the VDB group.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn delete_vdb_group(&self, name: &str) -> Result<JobId, Failure> {
        group::submit_delete(self.parts, name)
    }
}

fn dsources_of(parts: &Parts, ids: &[DsourceId]) -> Result<Vec<DsourceView>, Failure> {
    let mut found: Vec<Dsource> = Vec::new();
    for id in ids {
        found.extend(parts.catalog.find::<Dsource>(*id)?);
    }
    dsources::views(parts, found)
}

fn check_count(members: usize) -> Result<(), Failure> {
    if (MEMBERS_MIN..=MEMBERS_MAX).contains(&members) {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        format!("a group has {MEMBERS_MIN} to {MEMBERS_MAX} members, not {members}"),
        "name them: --members shop,orders",
    ))
}

/// A moment of all is opened by the log of each.
fn check_member(dsource: &Dsource) -> Result<(), Failure> {
    let (name, state) = (&dsource.name, dsource.state.as_str());
    let hint = match dsource.state {
        DsourceState::Active | DsourceState::Paused | DsourceState::Failed => return Ok(()),
        DsourceState::Masked | DsourceState::Replica => "name dSources that follow a source",
        DsourceState::Linking | DsourceState::Unlinking => "wait: offshoot job list",
    };
    let message = format!("'{name}' is {state}: it cannot be a member of a group");
    Err(Failure::new(ErrorKind::WrongState, message, hint))
}
