//! The jobs of this process, and what every step reaches.

use crate::live::{Begun, Live};
use crate::lock::{Lock, LockTable};
use offshoot_catalog::{Catalog, Job};
use offshoot_os::Clock;
use offshoot_types::JobId;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What every step reaches.
pub(crate) struct Ground {
    pub catalog: Arc<Catalog>,
    pub clock: Arc<dyn Clock>,
    pub table: Mutex<Table>,
    /// Signalled when a job leaves the table.
    pub left: Condvar,
}

/// Jobs and locks; taken before any `Live::job`, never while one is held.
#[derive(Default)]
pub(crate) struct Table {
    pub live: BTreeMap<JobId, Arc<Live>>,
    pub locks: LockTable,
    pub stopping: bool,
}

impl Table {
    pub fn enter(&mut self, job: Job, locks: &[Lock], begun: Begun) -> Arc<Live> {
        let id = job.id;
        let cancel = AtomicBool::new(job.cancel_requested);
        let live =
            Arc::new(Live { id, job: Mutex::new(job), cancel, begun, ended: Condvar::new() });
        self.locks.hold(id, locks);
        self.live.insert(id, live.clone());
        live
    }
}
