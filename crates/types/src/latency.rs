//! How long something takes, counted as Prometheus counts it: in histograms with fixed buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The bound of the first bucket, in ns; each further one is twice as much.
const FIRST_BOUND_NS: u64 = 16_000;
/// Buckets with a bound: the last one's is 16.8 s.
const BOUNDED: usize = 21;
/// All buckets, with the one for whatever took longer.
const BUCKETS: usize = BOUNDED + 1;

/// A histogram of durations. It only grows, and counts without a lock: any thread may add at any time.
#[derive(Debug, Default)]
pub struct Latency {
    counts: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

impl Latency {
    /// Adds one.
    pub fn record(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(ns)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// What was counted so far. What is added meanwhile may be in the counts and not in the sum, or in the sum alone.
    pub fn counts(&self) -> LatencyCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LatencyCounts { counts: self.counts.each_ref().map(load), sum_ns: load(&self.sum_ns) }
    }
}

/// What a [`Latency`] has counted at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatencyCounts {
    counts: [u64; BUCKETS],
    sum_ns: u64,
}

impl LatencyCounts {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long they took together.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }

    /// The buckets, shortest first: the longest duration that belongs to each (`None`: the rest), and how many it
    /// has, without those of the buckets before it.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        let bound = |at: usize| Duration::from_nanos(FIRST_BOUND_NS << at);
        let bounds = (0..BUCKETS).map(move |at| (at < BOUNDED).then(|| bound(at)));
        bounds.zip(self.counts)
    }
}

/// The first bucket whose bound is not below a duration.
fn bucket(ns: u64) -> usize {
    let firsts = ns.saturating_sub(1) / FIRST_BOUND_NS;
    ((u64::BITS - firsts.leading_zeros()) as usize).min(BOUNDED)
}

#[cfg(test)]
mod tests;
