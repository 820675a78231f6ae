//! Has dSources that were taken over follow their sources, where the password came with them: again and again, since what took
//! the other engine's host may have taken the way to the source as well.

use crate::core::keys::sent_password_key;
use crate::core::topic::Topic;
use crate::jobs::way;
use crate::parts::Parts;
use offshoot_domain::Dsource;
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Pause between two looks: somebody waits for it.
const PAUSE: Duration = Duration::from_millis(500);
/// Pause after a try that failed.
const FAILED_PAUSE: Duration = Duration::from_secs(10);

/// When to look next, and what was tried.
#[derive(Default)]
pub struct Ways {
    look_at: Duration,
    /// The last try of each.
    tried: HashMap<DsourceId, Try>,
}

struct Try {
    job: JobId,
    /// When the next one may begin.
    next: Duration,
    /// Whether it was said why it was in vain.
    told: bool,
}

impl Ways {
    /// Begins what is not at work.
    pub fn look_after(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + PAUSE;
        let all = parts.catalog.all::<Dsource>()?;
        for dsource in all.iter().filter(|one| one.awaits_way()) {
            let runner = parts.runner()?;
            if runner.is_busy(dsource.id)
                || parts.catalog.secret(&sent_password_key(dsource.id))?.is_none()
            {
                continue;
            }
            if let Some(last) = self.tried.get_mut(&dsource.id) {
                if let (false, Some(why)) = (last.told, runner.job(last.job)?.error) {
                    tell(parts, dsource, why);
                    last.told = true;
                }
                if now < last.next {
                    continue;
                }
            }
            match way::submit_as_sent(parts, dsource) {
                Ok(job) => {
                    let next = now + FAILED_PAUSE;
                    self.tried.insert(dsource.id, Try { job, next, told: false });
                }
                Err(failure) if failure.code == ErrorKind::Busy => {}
                Err(failure) => tracing::warn!(dsource = %dsource.name, %failure, "its source"),
            }
        }
        self.tried.retain(|id, _| all.iter().any(|one| one.id == *id && one.awaits_way()));
        Ok(())
    }
}

/// The fault of it says why it was in vain.
fn tell(parts: &Parts, dsource: &Dsource, why: Failure) {
    let name = &dsource.name;
    let message =
        format!("'{name}' was taken over, and does not follow its source yet: {}", why.message);
    parts.raise(name, Topic::Source, &Failure::new(why.code, message, why.hint));
}
