//! Groups of the stand-in.

use super::{State, missing, taken, time};
use offshoot_api::*;
use offshoot_types::{Failure, GroupId, JobId, VdbGroupId};

impl State {
    pub fn create_group(&mut self, request: &CreateGroup) -> Result<Group, Failure> {
        if self.groups.contains_key(&request.name) {
            return Err(taken(&request.name));
        }
        let member = |name: &String| {
            let dsource = self.dsources.get(name).ok_or_else(|| missing("dSource", name))?;
            Ok(GroupMember {
                id: dsource.id,
                name: name.clone(),
                state: dsource.state,
                synced_to: Some(time()),
                clock_skew_ms: Some(-1_200),
            })
        };
        let members = request.members.iter().map(member).collect::<Result<Vec<_>, Failure>>()?;
        let group = Group {
            id: GroupId(self.groups.len() as u64 + 1),
            name: request.name.clone(),
            members,
            latest: Some(time()),
            created_at: time(),
            warnings: vec![Warning {
                object: "prod".into(),
                message: "its clock is behind".into(),
                hint: "set it".into(),
            }],
        };
        self.groups.insert(request.name.clone(), group.clone());
        Ok(group)
    }

    /// A group by name or id.
    pub fn group(&self, name: &str) -> Result<Group, Failure> {
        let found = self.groups.values().find(|one| one.name == name || one.id.to_string() == name);
        found.cloned().ok_or_else(|| missing("group", name))
    }

    /// The VDBs are there already.
    pub fn provision_vdb_group(&mut self, group: &Group, request: ProvisionVdbGroup) -> JobId {
        let vdb =
            |member: &GroupMember| self.vdbs[&format!("{}-{}", request.name, member.name)].clone();
        let made = VdbGroup {
            id: VdbGroupId(self.vdb_groups.len() as u64 + 1),
            name: request.name.clone(),
            group: group.name.clone(),
            moment: request.at.or(Some(time())),
            vdbs: group.members.iter().map(vdb).collect(),
            members: group.members.clone(),
            created_at: time(),
            warnings: group.warnings.clone(),
        };
        self.vdb_groups.insert(request.name.clone(), made);
        let job = self.job("group_provision", &request.name, None);
        self.grouped.push(request);
        job
    }

    /// A VDB group by name or id.
    pub fn vdb_group(&self, name: &str) -> Result<VdbGroup, Failure> {
        let mut all = self.vdb_groups.values();
        let found = all.find(|one| one.name == name || one.id.to_string() == name);
        found.cloned().ok_or_else(|| missing("VDB group", name))
    }

    pub fn on_vdb_group(&mut self, kind: &str, name: &str) -> Result<JobId, Failure> {
        let name = self.vdb_group(name)?.name;
        Ok(self.job(kind, &name, None))
    }
}
