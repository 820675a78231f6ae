//! What can be asked of policies.

use crate::history::names::{self, ObjectKind};
use crate::parts::Parts;
use crate::space::room;
use offshoot_domain::{Dsource, Owner, Policy, PolicyChange, Vdb};
use offshoot_types::Failure;
use std::sync::Arc;

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

/// Policies, as a user works with them.
pub struct Policies<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Policies<'_> {
    /// All policies: those of dSources first, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<PolicyView>, Failure> {
        let dsources =
            self.parts.catalog.list::<Dsource>()?.into_iter().map(PolicyView::of_dsource);
        let vdbs = self.parts.catalog.list::<Vdb>()?.into_iter();
        let vdbs = vdbs.filter(|vdb| !vdb.warm).map(PolicyView::of_vdb);
        let mut all: Vec<PolicyView> = dsources.chain(vdbs).collect();
        all.sort_by(|a, b| (a.kind, &a.object).cmp(&(b.kind, &b.object)));
        Ok(all)
    }

    /// The policy of a dSource or VDB.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, object: &str) -> Result<PolicyView, Failure> {
        Ok(match names::find(self.parts, object)? {
            Owner::Dsource(id) => PolicyView::of_dsource(self.parts.catalog.get(id)?),
            Owner::Vdb(id) => PolicyView::of_vdb(self.parts.catalog.get(id)?),
        })
    }

    /// Changes the policy of a dSource or VDB; what it no longer keeps is removed soon after.
    ///
    /// # Errors
    /// `NotFound`, `InvalidInput`.
    pub fn set(&self, object: &str, change: &PolicyChange) -> Result<PolicyView, Failure> {
        let owner = names::find(self.parts, object)?;
        // Refusals come before anything is changed.
        let mut changed = Ok(());
        let mut apply = |policy: &mut Policy| match policy.changed(change, owner) {
            Ok(new) => *policy = new,
            Err(failure) => changed = Err(failure),
        };
        let view = match owner {
            Owner::Dsource(id) => {
                let dsource =
                    self.parts.catalog.update::<Dsource>(id, |one| apply(&mut one.policy))?;
                PolicyView::of_dsource(dsource)
            }
            Owner::Vdb(id) => PolicyView::of_vdb(
                self.parts.catalog.update::<Vdb>(id, |one| apply(&mut one.policy))?,
            ),
        };
        changed?;
        self.parts.retention_wanted.lock().insert(owner);
        room::set_quotas(self.parts)?;
        Ok(view)
    }
}
