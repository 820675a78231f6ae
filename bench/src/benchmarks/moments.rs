//! Whether any second of a stretch of load opens, holds what it should, and how long that takes.

use super::{engine_options, provision};
use crate::figures::millis;
use crate::record::Record;
use crate::setting::Setting;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::quantile;
use anyhow::{Context, Result, ensure};
use offshoot_api::ProvisionTimings;
use offshoot_os::{Clock, SystemClock, random_bytes};
use offshoot_rig::{Database, History, Writer};
use std::time::Duration;

/// Ten times the log between checkpoints that the defaults allow.
const RARE_CHECKPOINTS: [(&str, &str); 2] =
    [("checkpoint_timeout", "1h"), ("max_wal_size", "16GB")];
/// As fast as it goes.
const HEAVY: &[&str] = &["--client=8", "--jobs=2", "--time=100000", "--no-vacuum"];
/// What the latest moment may take beside the load, in milliseconds.
const LATEST_MS_GOAL: f64 = 3_000.0;
/// What any moment may take: half of them, and 95 of 100.
const OPEN_P50_MS_GOAL: f64 = 1_500.0;
const OPEN_P95_MS_GOAL: f64 = 3_000.0;

/// What the source is loaded with, by pgbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Load {
    /// Two clients, 100 transactions a second
    Steady,
    /// Eight clients, as many as the source takes
    Heavy,
}

/// Open random seconds of a stretch of load: does each open, is it right, how long does it take
///
/// Beside the load the latest moment is opened: it must hold every commit that was acknowledged before it was asked for.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Examples:\n  offshoot bench moments --minutes 2 --moments 10\n  \
                        offshoot bench moments --load heavy --minutes 10 --scale 50\n  \
                        offshoot bench moments --load heavy --rare-checkpoints")]
pub struct Arguments {
    /// What the source is loaded with
    #[arg(long, value_enum, default_value_t = Load::Steady)]
    load: Load,
    /// Have the source make a checkpoint an hour, or after 16 GB of log, instead of PostgreSQL's defaults
    #[arg(long)]
    rare_checkpoints: bool,
    /// Openings of the latest moment beside the load, spread over it
    #[arg(long, value_name = "N", default_value_t = 10)]
    latest: u32,

    /// Length of the load
    #[arg(long, value_name = "N", default_value_t = 15.0)]
    minutes: f64,
    /// Random moments opened
    #[arg(long, value_name = "N", default_value_t = 50)]
    moments: u32,
    /// pgbench scale of the source
    #[arg(long, value_name = "N", default_value_t = 20)]
    scale: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let checkpoints = if arguments.rare_checkpoints { RARE_CHECKPOINTS } else { CHECKPOINTS };
    let stage = Stage::start(&engine_options(&arguments.setting)?, arguments.scale, &checkpoints)?;
    let mut record = Record::begin("moments", arguments, stage.scratch.path())?;
    stage.link("prod")?;
    let writer = stage.source.start_writes(Duration::from_millis(100));
    let mut load = match arguments.load {
        Load::Steady => provision::start_load(&stage.source)?,
        Load::Heavy => stage.source.pgbench(HEAVY).die_with_parent(true).spawn()?,
    };
    let end = SystemClock.elapsed() + Duration::from_secs_f64(arguments.minutes * 60.0);
    let latest = open_latest(&stage, &writer, arguments.latest, end);
    SystemClock.sleep(end.saturating_sub(SystemClock.elapsed()));
    load.kill_group();
    let history = writer.stop();
    let latest_ms = latest?;

    let (mut right, mut took_ms) = (0, Vec::new());
    for _ in 0..arguments.moments {
        let began = SystemClock.elapsed();
        match open_one(&stage, &history) {
            Ok(()) => right += 1,
            Err(error) => eprintln!("  {error:#}"),
        }
        took_ms.push(millis(SystemClock.elapsed() - began));
        // Already gone if it could not be made.
        let _ = stage.engine.command(["vdb", "delete", "then"]);
    }
    let figures = &mut record.figures;
    figures.note("load_minutes", arguments.minutes);
    figures.at_least("opened_and_right", f64::from(right), f64::from(arguments.moments));
    if !latest_ms.is_empty() {
        figures.at_most("latest_p50_ms", quantile(&latest_ms, 0.5), LATEST_MS_GOAL);
        figures.note("latest_ms", latest_ms);
    }
    figures.at_most("open_p50_ms", quantile(&took_ms, 0.5), OPEN_P50_MS_GOAL);
    figures.at_most("open_p95_ms", quantile(&took_ms, 0.95), OPEN_P95_MS_GOAL);
    figures.note("open_ms", took_ms);
    Ok(record)
}

/// Opens the latest moment now and then until `end`; milliseconds each took.
fn open_latest(stage: &Stage, writer: &Writer, times: u32, end: Duration) -> Result<Vec<f64>> {
    let mut took_ms = Vec::new();
    let pause = end.saturating_sub(SystemClock.elapsed()) / (times + 1);
    for _ in 0..times {
        SystemClock.sleep(pause);
        let acknowledged = writer.history().last_value();
        let began = SystemClock.elapsed();
        let vdb = stage.provision("now", "prod", &[])?;
        let took = millis(SystemClock.elapsed() - began);
        let ProvisionTimings { recover_ms, start_ms, .. } = vdb.timings;
        eprintln!("  the latest: {took:.0} ms, recovery {recover_ms}, start {start_ms}");
        took_ms.push(took);
        let held = Database::connect(&vdb.uri)?.number("SELECT value FROM tick_now")?;
        ensure!(held >= acknowledged, "the latest moment holds {held}, not {acknowledged}");
        stage.engine.command(["vdb", "delete", "now"])?;
    }
    Ok(took_ms)
}

/// Opens one random moment between two writes and asks it for its value.
fn open_one(stage: &Stage, history: &History) -> Result<()> {
    let count = history.ticks().len() as u64;
    ensure!(count > 2, "the source took no writes");
    let index = u64::from_le_bytes(random_bytes::<8>()) % (count - 2);
    let tick = history.ticks()[index as usize];
    let moment = history.moment_of(tick.value).context("a gap between two writes")?;
    let vdb = stage.provision("then", "prod", &["--at", &moment.to_string()])?;
    let db = Database::connect(&vdb.uri)?;
    let held = db.number("SELECT value FROM tick_now")?;
    ensure!(held == tick.value, "at {moment}: holds {held}, not {}", tick.value);
    let rows = db.number("SELECT count(*) FROM ticks")?;
    ensure!(rows == tick.value, "at {moment}: {rows} rows, not {}", tick.value);
    Ok(())
}
