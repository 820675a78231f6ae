//! pgbench in a VDB against the same server on the host filesystem.

use super::engine_options;
use crate::arguments::Setting;
use crate::record::Record;
use crate::stage::Stage;
use crate::statistics::{interleaved, median};
use anyhow::{Context, Result, ensure};
use offshoot_os::process;
use std::time::Duration;

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
    let buffers = [("shared_buffers", "100MB")];
    let stage = Stage::start(&engine_options(&arguments.setting)?, arguments.scale, &buffers)?;
    let mut record = Record::begin("pgbench", arguments, stage.scratch.path())?;
    stage.link("prod")?;
    let vdb = stage.provision("virtual", "prod", &["--set", "shared_buffers=100MB"])?;
    // The source is the plain copy; while it is measured nothing may follow it.
    stage.engine.command(["dsource", "pause", "prod"])?;
    let places = [stage.source.superuser_uri("postgres"), vdb.uri];
    let select = &["--select-only"][..];
    for (mix, flags, goal) in [("select_only", select, 0.95), ("tpcb_like", &[][..], 1.0)] {
        let mut tps = [Vec::new(), Vec::new()];
        for (round, place) in interleaved(2, arguments.repeats + 1) {
            let rate = pgbench(&stage, &places[place], arguments, flags)?;
            if round > 0 {
                tps[place].push(rate);
            }
        }
        let [plain, vdb] = tps;
        let ratio = median(&vdb) / median(&plain);
        record.figures.note(format!("{mix}_plain_tps"), plain);
        record.figures.note(format!("{mix}_vdb_tps"), vdb);
        record.figures.at_least(format!("{mix}_vdb_to_plain"), ratio, goal);
    }
    record.figures.note("engine_cache_hit_ratio", stage.pool()?.cache.hit_ratio);
    Ok(record)
}

/// Transactions per second of one run.
fn pgbench(stage: &Stage, uri: &str, arguments: &Arguments, flags: &[&str]) -> Result<f64> {
    let spec = stage
        .source
        .pgbench_on(uri, flags)
        .args(["--no-vacuum", "--jobs=2"])
        .arg(format!("--client={}", arguments.clients))
        .arg(format!("--time={}", arguments.seconds));
    let limit = Duration::from_secs(u64::from(arguments.seconds) * 3 + 60);
    let output = process::run(&spec, limit)?;
    ensure!(output.success(), "pgbench: {}", output.stderr_text());
    let text = output.stdout_text();
    let line = text.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = line.and_then(|rest| rest.split_whitespace().next());
    rate.and_then(|rate| rate.parse().ok()).with_context(|| format!("no rate in: {text}"))
}
