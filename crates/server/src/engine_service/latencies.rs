//! How long the engine's work takes, as monitoring asks for it.

use crate::service::latencies::{DirectReads, FileLatencies, Latencies, StoreLatencies};
use offshoot_engine::{LatenciesView, RequestCounts};

pub(super) fn latencies(view: LatenciesView) -> Latencies {
    let file = |one: offshoot_engine::FileLatencies| {
        let RequestCounts { reads, writes, syncs } = one.requests;
        let kind = super::kind(one.kind);
        let direct = one.direct.map(|it| DirectReads {
            blocks: it.reads,
            size: it.group.size,
            used: it.group.used,
        });
        FileLatencies { owner: one.owner, kind, reads, writes, syncs, direct }
    };
    let offshoot_engine::StoreLatencies { pool_reads, log_flushes, commits } = view.store;
    let store = StoreLatencies { pool_reads, log_flushes, commits };
    Latencies { files: view.files.into_iter().map(file).collect(), store: Some(store) }
}
