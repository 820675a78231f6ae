//! What datasets stand on: pool, log, directory, and the sums over all of them. It knows no dataset.

use crate::directory::Directory;
use crate::logged::LoggedRecords;
use crate::prefetch::Prefetch;
use crate::schedule::{Schedule, Signal};
use crate::{Result, StoreOptions};
use offshoot_intent_log::IntentLog;
use offshoot_os::Clock;
use offshoot_pool::{Pool, Purpose};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Those who have something unwritten.
pub(crate) trait Writers: Send + Sync {
    /// Has all of them write what they can.
    fn write_all(&self);
}

/// What the store, its datasets and its background threads share.
pub(crate) struct Ground {
    pub(crate) pool: Arc<Pool>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: StoreOptions,
    pub(crate) directory: Directory,
    /// Set when the log of the last run has been replayed.
    pub(crate) log: OnceLock<IntentLog>,
    pub(crate) logged: LoggedRecords,
    /// Memory of all changed layers, in bytes.
    pub(crate) weight: AtomicU64,
    /// Bytes that files may fill without growing, of all datasets; see `admission.rs`.
    pub(crate) promised: AtomicU64,
    pub(crate) closed: AtomicBool,
    /// Announced when a commit is done.
    pub(crate) progress: Signal,
    pub(crate) prefetch: Prefetch,
    pub(crate) schedule: Schedule,
    writers: OnceLock<Weak<dyn Writers>>,
}

impl Ground {
    pub(crate) fn new(
        pool: Arc<Pool>,
        clock: Arc<dyn Clock>,
        options: StoreOptions,
    ) -> Result<Ground> {
        Ok(Ground {
            directory: Directory::load(&pool)?,
            pool,
            clock,
            options,
            log: OnceLock::new(),
            logged: LoggedRecords::default(),
            weight: AtomicU64::new(0),
            promised: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            progress: Signal::default(),
            prefetch: Prefetch::default(),
            schedule: Schedule::default(),
            writers: OnceLock::new(),
        })
    }

    /// Sets, once, who writes when room is needed.
    pub(crate) fn set_writers(&self, writers: Weak<dyn Writers>) {
        let _ = self.writers.set(writers);
    }

    /// Has everybody write what is unwritten: until then it counts as if nothing compressed or was
    /// already stored, and takes more room than it will.
    pub(crate) fn write_all(&self) {
        if let Some(writers) = self.writers.get().and_then(Weak::upgrade) {
            writers.write_all();
        }
    }

    /// Bytes of new content that the pool has room for, in addition to what was already admitted.
    pub(crate) fn growth_room(&self) -> u64 {
        let let_in = self.weight.load(Ordering::Relaxed) + self.promised.load(Ordering::Relaxed);
        self.pool.available_now(Purpose::Growth).saturating_sub(let_in + let_in / 2)
    }

    /// Time for intervals, in ms.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.elapsed().as_millis() as u64
    }

    /// Makes the background threads check whether a dataset is due.
    pub(crate) fn request_commit(&self) {
        self.schedule.wake();
    }

    /// Stops the background threads' work.
    pub(crate) fn stop(&self) {
        self.schedule.stop();
        self.prefetch.stop();
    }
}
