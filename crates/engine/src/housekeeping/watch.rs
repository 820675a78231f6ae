//! What the engine looks after on its own: snapshots to be made ready, servers that died, damage
//! found.

use crate::core::keys::vdb_key;
use crate::core::topic::Topic;
use crate::following::reservations;
use crate::ground::stopping::Stopping;
use crate::history::snapshots;
use crate::housekeeping::checkpoints::Checkpoints;
use crate::housekeeping::lifetimes::Lifetimes;
use crate::housekeeping::loads::Loads;
use crate::housekeeping::profiles::Profiles;
use crate::housekeeping::promises::Promises;
use crate::housekeeping::restart;
use crate::housekeeping::warm::WarmCopies;
use crate::housekeeping::ways::Ways;
use crate::images::readiness;
use crate::jobs::mask;
use crate::jobs::point;
use crate::jobs::retention;
use crate::jobs::snapshot;
use crate::parts::Parts;
use crate::space::damage;
use crate::space::room;
use crate::space::shares;
use offshoot_catalog::JobState;
use offshoot_domain::{Dsource, DsourceState, Masking, Snapshot, SnapshotKind, Vdb, VdbState};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId, SnapshotId, VdbId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Pause between two rounds.
const ROUND: Duration = Duration::from_millis(250);
/// How often to try a proof before the snapshot counts as failed.
const ATTEMPTS_MAX: u32 = 3;
/// Pause after one that ended for lack of room.
const PROOF_PAUSE: Duration = Duration::from_secs(10);
/// How long to wait before restarting a server that died.
const RESTART_PAUSE: Duration = Duration::from_secs(2);
/// Pause between two looks at quotas.
const QUOTAS_PAUSE: Duration = Duration::from_secs(5);
/// Pause after a snapshot of a dSource that failed: its staging may still be starting.
const FAILED_PAUSE: Duration = Duration::from_secs(2);
/// Pause between checks for due snapshots of VDBs.
const SNAPSHOT_PAUSE: Duration = Duration::from_secs(1);
/// Pause between two tries to renew one that fails.
const RENEWAL_PAUSE: Duration = Duration::from_secs(60);
/// Pause between looks for masked dSources that are due.
const MASKS_PAUSE: Duration = Duration::from_secs(5);
/// Pause between checks for what retention does not keep.
const RETENTION_PAUSE: Duration = Duration::from_secs(60);
/// Pause between attempts to release log that sources keep for nobody.
const RESERVATIONS_PAUSE: Duration = Duration::from_secs(3);
/// A server that dies this many times in a row stays down.
const RESTARTS_MAX: u32 = 5;
/// A server that ran this long starts a new count.
const RAN_WELL: Duration = Duration::from_secs(600);

/// A kind of snapshot of a dSource.
type Due = (DsourceId, SnapshotKind);

/// The state of the rounds.
#[derive(Default)]
struct Rounds {
    proof: Option<(SnapshotId, JobId)>,
    attempts: HashMap<SnapshotId, u32>,
    /// No proof begins before.
    proofs_at: Duration,
    restarts: Restarts,
    checkpoints: Checkpoints,
    warm: WarmCopies,
    promises: Promises,
    profiles: Profiles,
    ways: Ways,
    lifetimes: Lifetimes,
    loads: Loads,
    reservations_at: Duration,
    quotas_at: Duration,
    /// The last snapshot of each kind that was due of a dSource, until it has ended.
    taking: HashMap<Due, JobId>,
    /// When the next may be tried, after one that failed.
    taken_at: HashMap<Due, Duration>,
    snapshots_at: Duration,
    masks_at: Duration,
    /// When the renewal of a masked dSource last failed.
    renewed_at: HashMap<DsourceId, Duration>,
    /// The last renewal of each that was due, until it is looked at again.
    renewals: HashMap<DsourceId, JobId>,
    retention_at: Duration,
    /// VDBs without a due snapshot before then.
    unchanged: HashMap<VdbId, Duration>,
    /// VDBs that have ended and wait for room.
    waiting: HashSet<VdbId>,
}

/// Runs until told to stop.
pub fn run(parts: &Arc<Parts>, stopping: &Stopping) {
    let mut rounds = Rounds::default();
    while !stopping.is_told() {
        if let Err(failure) = rounds.round(parts) {
            tracing::warn!(%failure, "looking after things");
        }
        stopping.rest(ROUND);
    }
}

impl Rounds {
    fn round(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        parts.volumes.tend_keeper();
        self.set_quotas(parts)?;
        self.checkpoints.look_after(parts)?;
        self.warm.look_after(parts)?;
        self.promises.look_after(parts)?;
        self.profiles.look_after(parts)?;
        self.ways.look_after(parts)?;
        self.lifetimes.look_after(parts)?;
        self.loads.look_after(parts)?;
        self.prove(parts)?;
        self.revive(parts)?;
        damage::report(parts);
        self.follow_policies(parts)?;
        self.release_reservations(parts)
    }

    /// Makes one snapshot ready at a time, the newest first: it is the one users ask for.
    fn prove(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        if let Some((snapshot, job)) = self.proof {
            let job = parts.runner()?.job(job)?;
            if !job.state.is_final() {
                return Ok(());
            }
            self.proof = None;
            if job.state == JobState::Failed {
                self.proof_failed(parts, snapshot, job.error)?;
            }
        }
        if parts.clock.elapsed() < self.proofs_at || !room::takes_on(parts) {
            return Ok(());
        }
        let waiting = parts.catalog.all::<Snapshot>()?;
        let newest = waiting
            .iter()
            .filter(|one| one.awaits_proof())
            .filter(|one| snapshots::has_log(parts, one).unwrap_or(false))
            .filter(|one| !parts.runner().is_ok_and(|runner| runner.is_busy(one.id)))
            .max_by_key(|one| (one.taken_at, one.id));
        if let Some(snapshot) = newest {
            match readiness::submit(parts, snapshot) {
                Ok(job) => self.proof = Some((snapshot.id, job)),
                Err(failure) if failure.code == ErrorKind::Busy => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn proof_failed(
        &mut self,
        parts: &Parts,
        id: SnapshotId,
        error: Option<Failure>,
    ) -> Result<(), Failure> {
        // That says nothing about the snapshot.
        if error.as_ref().is_some_and(|error| error.code == ErrorKind::PoolFull) {
            self.proofs_at = parts.clock.elapsed() + PROOF_PAUSE;
            return Ok(());
        }
        let attempts = self.attempts.entry(id).or_default();
        *attempts += 1;
        if *attempts < ATTEMPTS_MAX {
            return Ok(());
        }
        let reason = error.map_or_else(|| "it cannot be opened".to_owned(), |e| e.message);
        match parts.catalog.find::<Snapshot>(id)? {
            Some(snapshot) => readiness::mark_failed(parts, &snapshot, &reason),
            None => Ok(()),
        }
    }

    fn set_quotas(&mut self, parts: &Parts) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        if now < self.quotas_at {
            return Ok(());
        }
        self.quotas_at = now + QUOTAS_PAUSE;
        room::set_quotas(parts)?;
        shares::set(parts)
    }

    fn follow_policies(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        self.take_due_of_dsources(parts)?;
        let now = parts.clock.elapsed();
        if now >= self.snapshots_at {
            self.snapshots_at = now + SNAPSHOT_PAUSE;
            self.take_due_snapshots(parts)?;
        }
        self.renew_masked(parts, now)?;
        retention::submit_wanted(parts)?;
        if now >= self.retention_at {
            self.retention_at = now + RETENTION_PAUSE;
            retention::submit_due(parts)?;
        }
        Ok(())
    }

    /// Takes snapshots of dSources as their policies and the spacing of recovery points ask.
    fn take_due_of_dsources(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        if !room::takes_on(parts) {
            return Ok(());
        }
        for dsource in parts.catalog.all::<Dsource>()?.iter() {
            // Those who open moments meanwhile need points more than ever.
            if dsource.state != DsourceState::Active || parts.runner()?.is_taken(dsource.id) {
                continue;
            }
            // A snapshot by policy waits for staging, which may be far behind: points are made meanwhile.
            let due = snapshots::due_of_dsource(parts, dsource)?;
            if due.policy && self.take_due(parts, dsource, SnapshotKind::Policy)? {
                continue;
            }
            if due.point {
                self.take_due(parts, dsource, SnapshotKind::RecoveryPoint)?;
            }
        }
        Ok(())
    }

    /// Takes what is due, unless that is being done or has just failed; whether it was begun.
    fn take_due(
        &mut self,
        parts: &Arc<Parts>,
        dsource: &Dsource,
        kind: SnapshotKind,
    ) -> Result<bool, Failure> {
        let due = (dsource.id, kind);
        if self.is_being_taken(parts, due) || self.has_just_failed(parts, due) {
            return Ok(false);
        }
        let submitted = match kind {
            SnapshotKind::RecoveryPoint => point::submit(parts, dsource),
            kind => snapshot::submit_take(parts, dsource.id.into(), &dsource.name, kind),
        };
        match submitted {
            Ok(job) => {
                self.taking.insert(due, job);
                Ok(true)
            }
            Err(failure) => {
                tracing::warn!(dsource = %dsource.name, %failure, "no snapshot was taken");
                Ok(false)
            }
        }
    }

    /// Renews masked dSources as they ask.
    fn renew_masked(&mut self, parts: &Arc<Parts>, now: Duration) -> Result<(), Failure> {
        if now < self.masks_at || !room::takes_on(parts) {
            return Ok(());
        }
        self.masks_at = now + MASKS_PAUSE;
        for masking in parts.catalog.all::<Masking>()?.iter() {
            let tried =
                self.renewed_at.get(&masking.id).is_some_and(|at| now < *at + RENEWAL_PAUSE);
            if tried || !masking.is_due(parts.now()) {
                continue;
            }
            self.renew(parts, masking, now)?;
        }
        Ok(())
    }

    /// Whether a due snapshot of a dSource is being taken.
    fn is_being_taken(&self, parts: &Parts, due: Due) -> bool {
        let runs = |job: &JobId| parts.runner()?.job(*job).map(|job| !job.state.is_final());
        self.taking.get(&due).is_some_and(|job| runs(job).unwrap_or(false))
    }

    /// Begins to renew one, unless the last try still runs. One that failed is a fault, until another succeeds.
    fn renew(
        &mut self,
        parts: &Arc<Parts>,
        masking: &Masking,
        now: Duration,
    ) -> Result<(), Failure> {
        let last = self.renewals.get(&masking.id).copied();
        let last = last.map(|job| parts.runner().and_then(|runner| runner.job(job)));
        let last = last.and_then(Result::ok);
        if last.as_ref().is_some_and(|job| !job.state.is_final()) {
            return Ok(());
        }
        self.renewals.remove(&masking.id);
        let failure = match last.and_then(|job| job.error) {
            Some(failure) => failure,
            None => match mask::submit_renewal(parts, masking) {
                Ok(job) => {
                    self.renewals.insert(masking.id, job);
                    return Ok(());
                }
                // It is being renewed, or its source is copied again.
                Err(failure) if failure.code == ErrorKind::Busy => return Ok(()),
                Err(failure) => failure,
            },
        };
        self.renewed_at.insert(masking.id, now);
        let Some(masked) = parts.catalog.find::<Dsource>(masking.id)? else { return Ok(()) };
        let message = format!("'{}' is not renewed: {}", masked.name, failure.message);
        let failure = Failure::new(failure.code, message, failure.hint);
        parts.raise(&masked.name, Topic::Renewal, &failure);
        Ok(())
    }

    /// Whether a dSource's last due snapshot failed a moment ago.
    fn has_just_failed(&mut self, parts: &Parts, due: Due) -> bool {
        let now = parts.clock.elapsed();
        if let Some(job) = self.taking.remove(&due)
            && parts
                .runner()
                .and_then(|it| it.job(job))
                .is_ok_and(|it| it.state == JobState::Failed)
        {
            self.taken_at.insert(due, now + FAILED_PAUSE);
        }
        self.taken_at.get(&due).is_some_and(|at| now < *at)
    }

    /// Takes snapshots of running VDBs as their policies ask.
    fn take_due_snapshots(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        let vdbs = parts.catalog.all::<Vdb>()?;
        self.unchanged.retain(|id, _| vdbs.iter().any(|vdb| vdb.id == *id));
        for vdb in vdbs.iter() {
            let Some(every_ms) = vdb.policy.snapshots.every_ms else { continue };
            let now = parts.clock.elapsed();
            let looked = self.unchanged.get(&vdb.id).is_some_and(|until| now < *until);
            if looked || vdb.state != VdbState::Running || parts.runner()?.is_busy(vdb.id) {
                continue;
            }
            match snapshots::due_of_vdb(parts, vdb)? {
                true => {
                    let owner = vdb.id.into();
                    snapshot::submit_take(parts, owner, &vdb.name, SnapshotKind::Policy)?;
                }
                // Its server is not asked repeatedly while nothing is due.
                false => {
                    let pause = Duration::from_millis(every_ms / 10).max(SNAPSHOT_PAUSE);
                    self.unchanged.insert(vdb.id, now + pause);
                }
            }
        }
        Ok(())
    }

    fn release_reservations(&mut self, parts: &Parts) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        if now < self.reservations_at {
            return Ok(());
        }
        let tried = reservations::retry(parts);
        self.reservations_at = parts.clock.elapsed() + RESERVATIONS_PAUSE;
        tried
    }

    /// Restarts servers that should run and do not.
    fn revive(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        let roomy = room::can_grow(parts);
        if !roomy {
            self.restarts.forget_all();
        }
        for vdb in parts.catalog.all::<Vdb>()?.iter() {
            let key = vdb_key(vdb.id);
            let should_run = vdb.state == VdbState::Running && !parts.runner()?.is_busy(vdb.id);
            if !should_run || parts.servers.is_running(&key) {
                continue;
            }
            if !roomy {
                // That is most likely why it died, and its recovery also needs room.
                if self.waiting.insert(vdb.id) {
                    parts.raise(&vdb.name, Topic::Server, &room::waits_for_room(parts));
                }
                continue;
            }
            self.waiting.remove(&vdb.id);
            match self.restarts.next(vdb.id, now) {
                Restart::Later => {}
                Restart::Now => {
                    tracing::warn!(vdb = %vdb.name, "its server has ended; starting it again");
                    restart::submit_revival(parts, vdb)?;
                }
                Restart::Never => restart::give_up(parts, vdb)?,
            }
        }
        Ok(())
    }
}

/// What to do about a server that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restart {
    Now,
    Later,
    /// It has ended too often.
    Never,
}

/// How often servers were restarted lately, and when last.
#[derive(Default)]
struct Restarts(HashMap<VdbId, (u32, Duration)>);

impl Restarts {
    /// Decides about a server that was found ended; asked again while it stays so.
    fn next(&mut self, vdb: VdbId, now: Duration) -> Restart {
        let (times, last) = self.0.get(&vdb).copied().unwrap_or_default();
        if times == 0 || now >= last + RAN_WELL {
            self.0.insert(vdb, (1, now));
            Restart::Now
        } else if now < last + RESTART_PAUSE {
            Restart::Later
        } else if times < RESTARTS_MAX {
            self.0.insert(vdb, (times + 1, now));
            Restart::Now
        } else {
            // A start by hand resets the count.
            self.0.remove(&vdb);
            Restart::Never
        }
    }

    /// Ends for lack of room, which may affect all, say nothing about the servers.
    fn forget_all(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests;
