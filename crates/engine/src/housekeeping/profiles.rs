//! Runs profiles when they are due, and says where a peer is further behind than it may be.

use crate::core::topic::Topic;
use crate::jobs::replicate;
use crate::parts::Parts;
use offshoot_domain::{Profile, format_duration};
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
        let all = parts.catalog.all::<Profile>()?;
        for profile in all.iter().filter(|one| one.rpo_ms.is_some()) {
            tell_lateness(parts, profile);
        }
        for profile in all.iter().filter(|one| one.is_due(parts.now())) {
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

fn tell_lateness(parts: &Parts, profile: &Profile) {
    if !profile.is_late(parts.now()) {
        return parts.clear(&profile.name, Topic::Behind);
    }
    let rpo = format_duration(Duration::from_millis(profile.rpo_ms.unwrap_or_default()));
    let name = &profile.name;
    let hint = match profile.paused {
        true => format!("let it run again: offshoot replication resume {name}"),
        false => format!(
            "see why: offshoot replication show {name}, offshoot replication history {name}"
        ),
    };
    let message = format!("what '{name}' replicates is more than {rpo} behind");
    parts.raise(name, Topic::Behind, &Failure::new(ErrorKind::EngineUnreachable, message, hint));
}
