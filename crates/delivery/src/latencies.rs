//! How long clients wait for what they ask of one delivery.

use offshoot_types::{Latency, LatencyCounts};

/// How long requests took, from their receipt to just before their answer, also those that failed. A delivery that
/// is resumed begins anew.
#[derive(Debug, Default)]
pub struct Latencies {
    /// Reads of files.
    pub reads: Latency,
    /// Writes to files; synchronous ones until they are durable.
    pub writes: Latency,
    /// Requests to make what was written durable.
    pub syncs: Latency,
}

impl Latencies {
    /// What was counted so far.
    pub fn counts(&self) -> RequestCounts {
        let Latencies { reads, writes, syncs } = self;
        RequestCounts { reads: reads.counts(), writes: writes.counts(), syncs: syncs.counts() }
    }
}

/// What [`Latencies`] have counted at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Of reads.
    pub reads: LatencyCounts,
    /// Of writes.
    pub writes: LatencyCounts,
    /// Of syncs.
    pub syncs: LatencyCounts,
}
