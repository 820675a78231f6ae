//! Who reads from the device, and how long that takes.

use offshoot_os::Clock;
use offshoot_types::{Latency, LatencyCounts};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A device is slow if a read takes longer than this, the time to decode about 64 blocks.
const SLOW: Duration = Duration::from_millis(1);

/// The reads of the device.
pub(crate) struct Reads {
    clock: Arc<dyn Clock>,
    /// Readers that wait for the device; less urgent work waits for them.
    waiting: AtomicU32,
    /// Mean time of the last reads, weighted towards the newest, in nanoseconds.
    mean: AtomicU64,
    /// All of them.
    latency: Latency,
}

impl Reads {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Reads {
        let (waiting, mean, latency) = Default::default();
        Reads { clock, waiting, mean, latency }
    }

    /// Does what somebody waits for.
    pub(crate) fn urgently<T>(&self, read: impl FnOnce() -> T) -> T {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = read();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Whether somebody waits.
    pub(crate) fn are_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// When a read begins, for [`Reads::note`].
    pub(crate) fn begin(&self) -> Duration {
        self.clock.elapsed()
    }

    /// A read that began then has its bytes.
    pub(crate) fn note(&self, began: Duration) {
        let took = self.clock.elapsed().saturating_sub(began);
        self.latency.record(took);
        let mean = self.mean.load(Ordering::Relaxed);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) / 8;
        // If two end at the same time, one of them counts.
        self.mean.store((mean - mean / 8).saturating_add(took), Ordering::Relaxed);
    }

    /// How long they took since the pool was opened.
    pub(crate) fn latency(&self) -> LatencyCounts {
        self.latency.counts()
    }

    /// Whether the device is.
    pub(crate) fn are_slow(&self) -> bool {
        u128::from(self.mean.load(Ordering::Relaxed)) > SLOW.as_nanos()
    }
}
