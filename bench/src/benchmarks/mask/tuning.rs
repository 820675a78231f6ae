//! What settings of a server do for masking in place: UPDATE in batches with each of them alone, and with all.

use super::{How, gain, tables, update};
use crate::server::Server;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::interleaved;
use anyhow::Result;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;
use std::path::Path;

/// Settings by what they are called; without any the server has PostgreSQL's own.
const STUDIED: [(&str, &[(&str, &str)]); 6] = [
    ("none", &[]),
    ("asynchronous_commit", &[("synchronous_commit", "off")]),
    ("large_log", &[("max_wal_size", "16GB"), ("checkpoint_timeout", "1h")]),
    ("minimal_log", &[("wal_level", "minimal"), ("max_wal_senders", "0")]),
    ("without_full_pages", &[("full_page_writes", "off")]),
    ("large_buffers", &[("shared_buffers", "1GB")]),
];

/// How much faster one table is masked with each, and with all.
pub fn measure(stage: &Stage, files: &Path, repeats: u32) -> Result<Vec<(String, f64)>> {
    let all = STUDIED.iter().flat_map(|(_, settings)| *settings).copied().collect::<Vec<_>>();
    let mut variants: Vec<(&str, &[(&str, &str)])> = STUDIED.to_vec();
    variants.push(("all", &all));
    let mut took = vec![Vec::new(); variants.len()];
    for (_, variant) in interleaved(variants.len(), repeats) {
        let (name, settings) = variants[variant];
        let seconds = once(stage, files, settings)?;
        eprintln!("  {name}: {seconds:.1} s");
        took[variant].push(seconds);
    }
    let (without, with) = took.split_at(1);
    let named = variants.iter().skip(1).zip(with);
    Ok(named
        .map(|((name, _), with)| (format!("tuned_{name}_to_default"), gain(&without[0], with)))
        .collect())
}

fn once(stage: &Stage, files: &Path, settings: &[(&str, &str)]) -> Result<f64> {
    let server = Server::spawn(
        &stage.source,
        files,
        CHECKPOINTS.into_iter().chain(settings.iter().copied()),
    )?;
    server.wait_ready()?;
    let db = Database::connect(server.uri())?;
    tables::copy(&db, 0)?;
    db.execute("CHECKPOINT")?;
    let began = SystemClock.elapsed();
    update(&db, 0, How::Batches)?;
    let seconds = (SystemClock.elapsed() - began).as_secs_f64();
    tables::drop_copy(&db, 0)?;
    drop(db);
    server.stop()?;
    Ok(seconds)
}
