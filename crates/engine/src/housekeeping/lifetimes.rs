//! Deletes VDBs whose time has come.

use crate::jobs::vdb;
use crate::parts::Parts;
use offshoot_domain::{Vdb, VdbState};
use offshoot_types::{ErrorKind, Failure};
use std::sync::Arc;
use std::time::Duration;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// When to look next.
#[derive(Default)]
pub struct Lifetimes {
    look_at: Duration,
}

impl Lifetimes {
    /// Deletes what has expired; what is busy, soon after.
    pub fn look_after(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + PAUSE;
        let expired =
            |vdb: &&Vdb| vdb.state != VdbState::Provisioning && vdb.care.has_expired(parts.now());
        for vdb in parts.catalog.all::<Vdb>()?.iter().filter(expired) {
            match vdb::submit_expiry(parts, vdb) {
                Ok(_) => tracing::info!(vdb = %vdb.name, "it has expired"),
                Err(failure) if failure.code == ErrorKind::Busy => {}
                Err(failure) => tracing::warn!(vdb = %vdb.name, %failure, "it should be deleted"),
            }
        }
        Ok(())
    }
}
