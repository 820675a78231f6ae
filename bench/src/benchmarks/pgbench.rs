//! pgbench in a VDB against the same server on the host filesystem.

use super::engine_options;
use crate::host::resident_bytes;
use crate::record::Record;
use crate::setting::Setting;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::{interleaved, median};
use anyhow::Result;

/// What is measured in turn.
const PLACES: [&str; 3] = ["plain", "plain_fpw_off", "vdb"];

/// Measure pgbench in a VDB against the same server on the host filesystem
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench pgbench --scale 100 --clients 10 --seconds 30")]
pub struct Arguments {
    /// pgbench scale
    #[arg(long, value_name = "N", default_value_t = 100)]
    scale: u32,
    /// Clients
    #[arg(long, value_name = "N", default_value_t = 10)]
    clients: u32,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u32,
    /// Counted runs of each, in turn, after one that warms up
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let mut settings = vec![("shared_buffers", "100MB")];
    settings.extend(CHECKPOINTS);
    let stage = Stage::start(&engine_options(&arguments.setting)?, arguments.scale, &settings)?;
    let mut record = Record::begin("pgbench", arguments, stage.scratch.path())?;
    stage.link("prod")?;
    let settings: Vec<String> =
        settings.iter().map(|(name, value)| format!("--set={name}={value}")).collect();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let vdb = stage.provision("virtual", "prod", &settings)?;
    // The source is the plain copy; while it is measured nothing may follow it.
    stage.engine.command(["dsource", "pause", "prod"])?;
    let select = &["--select-only"][..];
    for (mix, flags, goal) in [("select_only", select, 0.95), ("tpcb_like", &[][..], 1.0)] {
        let mut tps = [Vec::new(), Vec::new(), Vec::new()];
        for (round, place) in interleaved(PLACES.len(), arguments.repeats + 1) {
            let uri = match PLACES[place] {
                "vdb" => vdb.uri.clone(),
                plain => plain_uri(&stage, plain == "plain")?,
            };
            let rate = stage.pgbench(&uri, arguments.clients, arguments.seconds, flags)?;
            if round > 0 {
                tps[place].push(rate);
            }
        }
        let medians = tps.each_ref().map(|samples| median(samples));
        for (place, samples) in PLACES.iter().zip(tps) {
            record.figures.note(format!("{mix}_{place}_tps"), samples);
        }
        record.figures.at_least(format!("{mix}_vdb_to_plain"), medians[2] / medians[0], goal);
        record.figures.note(format!("{mix}_vdb_to_plain_fpw_off"), medians[2] / medians[1]);
    }
    let cache = stage.pool()?.cache;
    record.figures.note("engine_cache_hit_ratio", cache.hit_ratio);
    if let Some(engine) = stage.engine.pid().and_then(resident_bytes) {
        let over = engine.saturating_sub(cache.used_bytes) as f64 / f64::from(1 << 20);
        record.figures.at_most("engine_memory_over_cache_mib", over, 256.0);
    }
    Ok(record)
}

/// The source as the plain copy, with or without full page writes. A VDB runs without, as its store
/// writes whole pages; a host's filesystem does not make that safe.
fn plain_uri(stage: &Stage, full_page_writes: bool) -> Result<String> {
    let db = stage.source.connect("postgres")?;
    let value = if full_page_writes { "on" } else { "off" };
    db.execute(&format!("ALTER SYSTEM SET full_page_writes = {value}"))?;
    db.execute("SELECT pg_reload_conf()")?;
    // The first checkpoint with the setting belongs to no run.
    db.execute("CHECKPOINT")?;
    Ok(stage.source.superuser_uri("postgres"))
}
