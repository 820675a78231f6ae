//! Keeps as many warm copies of each dSource as its policy says, of a moment that is not old.

use crate::history::moments::newest;
use crate::jobs::{vdb, warm};
use crate::parts::Parts;
use crate::space::room;
use offshoot_catalog::JobState;
use offshoot_domain::{Dsource, DsourceState, Owner, Parent, Snapshot, Vdb};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// Pause after a copy that could not be made.
const FAILED_PAUSE: Duration = Duration::from_secs(15);
/// How far the source may have gone on before a copy is replaced.
const AGE_MAX: Duration = Duration::from_secs(60);

/// What is being made.
#[derive(Default)]
pub struct WarmCopies {
    look_at: Duration,
    /// One at a time of each dSource.
    making: HashMap<DsourceId, JobId>,
    /// When the next may be tried.
    not_before: HashMap<DsourceId, Duration>,
}

impl WarmCopies {
    /// Makes one where one lacks, and removes one that is too old or too many.
    pub fn look_after(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + PAUSE;
        for dsource in parts.catalog.all::<Dsource>()?.iter() {
            if let Err(failure) = self.look_after_one(parts, dsource, now)
                && failure.code != ErrorKind::Busy
            {
                tracing::warn!(dsource = %dsource.name, %failure, "warm copies");
                self.not_before.insert(dsource.id, now + FAILED_PAUSE);
            }
        }
        // Those of a dSource that was unlinked.
        let orphan = |vdb: &&Vdb| match vdb.parent.owner {
            Owner::Dsource(id) => {
                vdb.warm && parts.catalog.find::<Dsource>(id).is_ok_and(|found| found.is_none())
            }
            Owner::Vdb(_) => false,
        };
        for vdb in parts.catalog.all::<Vdb>()?.iter().filter(orphan) {
            remove(parts, vdb)?;
        }
        Ok(())
    }

    fn look_after_one(
        &mut self,
        parts: &Arc<Parts>,
        dsource: &Dsource,
        now: Duration,
    ) -> Result<(), Failure> {
        let owner = Owner::from(dsource.id);
        let mut copies = warm::copies_of(parts, owner)?;
        let wanted = dsource.policy.warm as usize;
        if copies.is_empty() && wanted == 0 {
            return Ok(());
        }
        if let Some(job) = self.making.get(&dsource.id) {
            let job = parts.runner()?.job(*job)?;
            if !job.state.is_final() {
                return Ok(());
            }
            self.making.remove(&dsource.id);
            if job.state == JobState::Failed {
                self.not_before.insert(dsource.id, now + FAILED_PAUSE);
            }
        }
        let waits = self.not_before.get(&dsource.id).is_some_and(|at| now < *at);
        let opens = matches!(dsource.state, DsourceState::Active | DsourceState::Masked);
        if copies.len() > wanted {
            // The oldest is last.
            return copies.pop().map_or(Ok(()), |oldest| remove(parts, &oldest));
        }
        if waits || !opens || !room::takes_on(parts) {
            return Ok(());
        }
        if copies.len() < wanted {
            let parent = Parent { owner, name: dsource.name.clone() };
            self.making.insert(dsource.id, warm::submit_new(parts, parent)?);
        } else if let Some(oldest) = copies.pop()
            && is_old(parts, dsource, &oldest)?
        {
            remove(parts, &oldest)?;
        }
        Ok(())
    }
}

fn remove(parts: &Arc<Parts>, copy: &Vdb) -> Result<(), Failure> {
    match vdb::submit_delete(parts, &copy.name) {
        Err(failure) if failure.code == ErrorKind::Busy => Ok(()),
        submitted => submitted.map(drop),
    }
}

/// Whether the source has gone on, for longer than a copy may be behind.
fn is_old(parts: &Parts, dsource: &Dsource, copy: &Vdb) -> Result<bool, Failure> {
    let Some(moment) = copy.moment else { return Ok(false) };
    if dsource.state == DsourceState::Masked {
        let images: Vec<Snapshot> = parts.catalog.list_of(dsource.id)?;
        let newest = newest(&images).map(|one| one.id);
        return Ok(newest.is_some_and(|newest| newest != moment.snapshot));
    }
    let Some(now) = parts.follower(dsource.id).and_then(|follower| follower.indexed()) else {
        return Ok(false);
    };
    let behind = now.time.duration_since(moment.time);
    Ok(now.log > moment.log && behind.as_secs() >= AGE_MAX.as_secs() as i64)
}
