//! Whether any second of a stretch of load opens, holds what it should, and how long that takes.

use super::{engine_options, provision};
use crate::figures::millis;
use crate::record::Record;
use crate::setting::Setting;
use crate::stage::Stage;
use crate::statistics::quantile;
use anyhow::{Context, Result, ensure};
use offshoot_os::{Clock, SystemClock, random_bytes};
use offshoot_rig::{Database, History};
use std::time::Duration;

/// Open random seconds of a stretch of load: does each open, is it right, how long does it take
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench moments --minutes 2 --moments 10")]
pub struct Arguments {
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
    let stage = Stage::start(&engine_options(&arguments.setting)?, arguments.scale, &[])?;
    let mut record = Record::begin("moments", arguments, stage.scratch.path())?;
    stage.link("prod")?;
    let writer = stage.source.start_writes(Duration::from_millis(100));
    let mut load = provision::start_load(&stage.source)?;
    SystemClock.sleep(Duration::from_secs_f64(arguments.minutes * 60.0));
    load.kill_group();
    let history = writer.stop();

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
    figures.at_most("open_p95_ms", quantile(&took_ms, 0.95), 10_000.0);
    figures.note("open_ms", took_ms);
    Ok(record)
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
