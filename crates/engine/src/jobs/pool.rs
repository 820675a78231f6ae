//! Jobs on the pool itself.

use crate::core::encryption;
use crate::core::job_kind::JobKind;
use crate::core::secret_keys::KeyPlaces;
use crate::ground::paths::{CATALOG, Paths};
use crate::parts::{Context, Parts};
use crate::space::damage::{self, DamagedBlock};
use offshoot_catalog::{Catalog, Subject};
use offshoot_dataset::CheckReport;
use offshoot_os::disk::{Disk, LinuxDisk};
use offshoot_types::{ErrorKind, Failure, JobId};
use offshoot_workflow::{Submission, Workflow};
use std::path::Path;
use std::sync::Arc;

/// The workflow that gives space back.
pub fn reclaim_workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::PoolReclaim).step_without_undo("reclaim", reclaim)
}

/// Starts the job.
pub fn submit_reclaim(parts: &Arc<Parts>) -> Result<JobId, Failure> {
    parts.submit(Submission::new(JobKind::PoolReclaim, Subject::Pool, &()).exclusive("pool"))
}

fn reclaim(context: &Context) -> Result<(), Failure> {
    let pool = context.app().store.pool();
    let before = pool.stats().used;
    context.app().ledger.let_go(&*context.app().clock);
    loop {
        context.check_cancelled()?;
        let more = pool.reclaim_step().map_err(|error| {
            Failure::new(
                ErrorKind::DataDamaged,
                format!("reclaiming: {error}"),
                "see: offshoot status",
            )
        })?;
        let freed = before.saturating_sub(pool.stats().used);
        context.progress(freed, 0, "bytes");
        if !more {
            return Ok(());
        }
    }
}

/// What a check of a pool found.
#[derive(Debug)]
pub struct PoolReport {
    /// Of the store.
    pub report: CheckReport,
    /// Its damaged blocks, with the names of those who hold them.
    pub damage: Vec<DamagedBlock>,
}

/// Verifies the store of a pool that no engine uses, and changes nothing. `progress` gets bytes done and
/// bytes in all.
///
/// # Errors
/// `NotFound` if there is no pool, `Busy` if an engine uses it, and whatever prevents a check.
pub fn check_pool(
    pool: &Path,
    keys: &KeyPlaces,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PoolReport, Failure> {
    if !pool.join("label").exists() {
        let message = format!("there is no pool in {}", pool.display());
        return Err(Failure::new(ErrorKind::NotFound, message, "name another one with --pool"));
    }
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(pool).map_err(|error| {
        let message = format!("the pool {} cannot be used: {error}", pool.display());
        Failure::new(ErrorKind::HostUnprepared, message, "check its permissions and its disk")
    })?);
    let data_key = encryption::data_key(&Paths::of(pool)?, keys)?;
    let report = offshoot_dataset::check_encrypted(disk, data_key.as_ref(), progress);
    let report = report.map_err(|error| error.failure())?;
    // Names are optional: if the catalog cannot be read, ids are shown.
    let rows = encryption::row_key(data_key.as_ref());
    let catalog = Catalog::look(&pool.join(CATALOG), rows.as_deref()).ok();
    let damage = damage::of_check(catalog.as_ref(), &report.damage);
    Ok(PoolReport { report, damage })
}
