//! Runs profiles when they are due.

use crate::jobs::replicate;
use crate::parts::Parts;
use offshoot_domain::Profile;
use offshoot_types::{ErrorKind, Failure};
use std::sync::Arc;
use std::time::Duration;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// When to look next.
#[derive(Default)]
pub struct Profiles {
    look_at: Duration,
}

impl Profiles {
    /// Begins what is due and not at work. What fails is a fault; the job raises it.
    pub fn look_after(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + PAUSE;
        let due = |one: &&Profile| one.is_due(parts.now());
        for profile in parts.catalog.all::<Profile>()?.iter().filter(due) {
            if parts.runner()?.is_taken(profile.id) {
                continue;
            }
            match replicate::submit(parts, profile, true) {
                Ok(_) => {}
                Err(failure) if failure.code == ErrorKind::Busy => {}
                Err(failure) => tracing::warn!(profile = %profile.name, %failure, "it is due"),
            }
        }
        Ok(())
    }
}
