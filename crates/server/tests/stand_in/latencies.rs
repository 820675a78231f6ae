//! How long the work of the stand-in took.

use offshoot_api::ObjectKind;
use offshoot_server::{FileLatencies, Latencies, StoreLatencies};
use offshoot_types::{Latency, LatencyCounts};
use std::time::Duration;

/// Some that took so many microseconds.
fn counts(took_us: &[u64]) -> LatencyCounts {
    let latency = Latency::default();
    took_us.iter().for_each(|us| latency.record(Duration::from_micros(*us)));
    latency.counts()
}

pub fn latencies<'a>(
    dsources: impl Iterator<Item = &'a String>,
    vdbs: impl Iterator<Item = &'a String>,
) -> Latencies {
    let of = |kind: ObjectKind| {
        move |owner: &String| FileLatencies {
            owner: owner.clone(),
            kind,
            reads: counts(&[10, 20, 40, 20_000_000]),
            writes: counts(&[50]),
            syncs: counts(&[]),
            direct: None,
        }
    };
    let store = StoreLatencies {
        pool_reads: counts(&[100, 200]),
        log_flushes: counts(&[1_500]),
        commits: counts(&[40_000]),
    };
    let files =
        dsources.map(of(ObjectKind::Dsource)).chain(vdbs.map(of(ObjectKind::Vdb))).collect();
    Latencies { files, store: Some(store) }
}
