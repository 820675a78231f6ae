//! Asks VDBs in a full pool to free logs they no longer need.

use crate::core::keys::vdb_key;
use crate::parts::Parts;
use crate::space::room;
use offshoot_domain::{Vdb, VdbState};
use offshoot_types::{Failure, VdbId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How often to ask a VDB to free log.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);
/// How long that may take.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(300);

/// When VDBs were asked last.
#[derive(Default)]
pub struct Checkpoints {
    at: Arc<Mutex<HashMap<VdbId, Duration>>>,
}

impl Checkpoints {
    /// Handles a full pool: asks VDBs to free logs they no longer need.
    pub fn look_after(&self, parts: &Arc<Parts>) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        if room::look(parts).is_none_or(|(level, _)| level < room::Level::Full) {
            return Ok(());
        }
        if !parts.catalog.unsettled_jobs()?.is_empty() {
            room::make_way(&parts.store);
        }
        for vdb in parts.catalog.list::<Vdb>()? {
            let mut checkpoints = self.at.lock();
            let due = checkpoints.get(&vdb.id).is_none_or(|last| now >= *last + CHECKPOINT_EVERY);
            if vdb.state != VdbState::Running || !due {
                continue;
            }
            // Not again before this one has ended.
            checkpoints.insert(vdb.id, now + CHECKPOINT_TIMEOUT);
            let (parts, at) = (parts.clone(), self.at.clone());
            let checkpoint = move || {
                if let Err(failure) = checkpoint(&parts, vdb.id) {
                    tracing::info!(vdb = %vdb.name, %failure, "no checkpoint in a full pool");
                }
                at.lock().insert(vdb.id, parts.clock.elapsed());
            };
            let started =
                std::thread::Builder::new().name("checkpoint".to_owned()).spawn(checkpoint);
            if let Err(error) = started {
                tracing::warn!(%error, "no thread for a checkpoint");
            }
        }
        Ok(())
    }
}

fn checkpoint(parts: &Parts, vdb: VdbId) -> Result<(), Failure> {
    match parts.servers.get(&vdb_key(vdb)) {
        Some(server) => server.checkpoint(CHECKPOINT_TIMEOUT),
        None => Ok(()),
    }
}
