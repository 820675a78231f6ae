//! Jobs on the pool itself.

use crate::core::{Context, Core};
use offshoot_types::{ErrorKind, Failure, JobId};
use offshoot_workflow::{Submission, Workflow};
use std::sync::Arc;

/// The workflow that gives space back.
pub fn reclaim_workflow() -> Workflow<Core> {
    Workflow::new("pool_reclaim").check("reclaim", reclaim)
}

/// Starts the job.
pub fn submit_reclaim(core: &Arc<Core>) -> Result<JobId, Failure> {
    core.submit(Submission::new("pool_reclaim", "pool", &()).exclusive("pool"))
}

fn reclaim(context: &Context) -> Result<(), Failure> {
    let pool = context.app().store.pool();
    let before = pool.stats().used;
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
