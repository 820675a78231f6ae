//! Groups as the API shows them.

use super::{follow_state, vdb, warning};
use offshoot_api as api;
use offshoot_engine::{DsourceView, GroupView, VdbGroupView};

pub(super) fn group(view: GroupView) -> api::Group {
    let GroupView { group, members } = view;
    let times = || members.iter().map(|one| one.synced_to.as_ref().map(|at| at.time));
    // While one has none, all have none.
    let latest = times().min().flatten();
    api::Group {
        id: group.id,
        name: group.name.to_string(),
        latest,
        created_at: group.created_at,
        warnings: warnings(&members),
        members: members.into_iter().map(member).collect(),
    }
}

pub(super) fn vdb_group(view: VdbGroupView) -> api::VdbGroup {
    let VdbGroupView { group, vdbs, sources } = view;
    api::VdbGroup {
        id: group.id,
        name: group.name.to_string(),
        group: group.group.to_string(),
        moment: group.moment,
        vdbs: vdbs.into_iter().map(vdb).collect(),
        created_at: group.created_at,
        warnings: warnings(&sources),
        members: sources.into_iter().map(member).collect(),
    }
}

fn member(view: DsourceView) -> api::GroupMember {
    api::GroupMember {
        id: view.dsource.id,
        name: view.dsource.name.to_string(),
        state: follow_state(view.state).0,
        synced_to: view.synced_to.map(|at| at.time),
        clock_skew_ms: view.clock_skew_ms,
    }
}

/// Of the clocks; what else is to be known of a member, it shows itself.
fn warnings(members: &[DsourceView]) -> Vec<api::Warning> {
    let of =
        |one: &DsourceView| Some(warning((one.dsource.name.to_string(), one.clock_warning()?)));
    members.iter().filter_map(of).collect()
}
