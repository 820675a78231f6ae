//! Policies of dSources and VDBs: shown, set.

use crate::history::names::{self, ObjectKind};
use crate::parts::Parts;
use crate::space::room;
use offshoot_domain::{Dsource, Owner, Policy, PolicyChange, Vdb};
use offshoot_types::Failure;

/// How a dSource or VDB is kept.
#[derive(Debug, Clone)]
pub struct PolicyView {
    /// Its name.
    pub object: String,
    /// What it is.
    pub kind: ObjectKind,
    /// Its policy.
    pub policy: Policy,
}

impl PolicyView {
    fn of_dsource(dsource: Dsource) -> Self {
        let object = dsource.name.to_string();
        PolicyView { object, kind: ObjectKind::Dsource, policy: dsource.policy }
    }

    fn of_vdb(vdb: Vdb) -> Self {
        PolicyView { object: vdb.name.to_string(), kind: ObjectKind::Vdb, policy: vdb.policy }
    }
}

/// All policies: of dSources first, by name.
pub fn list(parts: &Parts) -> Result<Vec<PolicyView>, Failure> {
    let dsources = parts.catalog.list::<Dsource>()?.into_iter().map(PolicyView::of_dsource);
    let vdbs = parts.catalog.list::<Vdb>()?.into_iter().map(PolicyView::of_vdb);
    let mut all: Vec<PolicyView> = dsources.chain(vdbs).collect();
    all.sort_by(|a, b| (a.kind, &a.object).cmp(&(b.kind, &b.object)));
    Ok(all)
}

/// The policy of one object.
pub fn show(parts: &Parts, object: &str) -> Result<PolicyView, Failure> {
    Ok(match names::find(parts, object)? {
        Owner::Dsource(id) => PolicyView::of_dsource(parts.catalog.get(id)?),
        Owner::Vdb(id) => PolicyView::of_vdb(parts.catalog.get(id)?),
    })
}

/// Changes a policy; what it does not keep is given up soon after.
pub fn set(parts: &Parts, object: &str, change: &PolicyChange) -> Result<PolicyView, Failure> {
    let owner = names::find(parts, object)?;
    // What is refused is refused before anything is changed.
    let mut changed = Ok(());
    let mut apply = |policy: &mut Policy| match policy.changed(change, owner) {
        Ok(new) => *policy = new,
        Err(failure) => changed = Err(failure),
    };
    let view = match owner {
        Owner::Dsource(id) => {
            let dsource = parts.catalog.update::<Dsource>(id, |one| apply(&mut one.policy))?;
            PolicyView::of_dsource(dsource)
        }
        Owner::Vdb(id) => {
            PolicyView::of_vdb(parts.catalog.update::<Vdb>(id, |one| apply(&mut one.policy))?)
        }
    };
    changed?;
    parts.retention_wanted.lock().insert(owner);
    room::set_quotas(parts)?;
    Ok(view)
}
