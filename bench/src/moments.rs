//! Whether any second of a stretch of load opens, holds what it should, and how long that takes.

use crate::Setting;
use crate::figures::{Figures, median, millis, quantile};
use crate::provision::start_load;
use anyhow::{Context, Result, ensure};
use offshoot_demo::{Database, History};
use offshoot_os::{Clock, SystemClock, random_bytes};
use offshoot_testbed::Testbed;
use std::time::Duration;

/// Arguments of `moments`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Length of the load.
    #[arg(long, default_value_t = 15.0)]
    minutes: f64,
    /// Random moments opened.
    #[arg(long, default_value_t = 50)]
    moments: u32,
    /// pgbench scale of the source.
    #[arg(long, default_value_t = 20)]
    scale: u32,
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments { minutes: 15.0, moments: 50, scale: 20 }
    }
}

pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Figures> {
    let bed = setting.testbed(arguments.scale, &[])?;
    bed.link("prod")?;
    let writer = bed.source.start_writes(Duration::from_millis(100));
    let mut load = start_load(&bed.source)?;
    SystemClock.sleep(Duration::from_secs_f64(arguments.minutes * 60.0));
    load.kill_group();
    let history = writer.stop();

    let (mut right, mut took_ms) = (0, Vec::new());
    for _ in 0..arguments.moments {
        let began = SystemClock.elapsed();
        match open_one(&bed, &history) {
            Ok(()) => right += 1,
            Err(error) => eprintln!("  {error:#}"),
        }
        took_ms.push(millis(SystemClock.elapsed() - began));
        // Gone already where it could not be made.
        let _ = bed.engine.command(["vdb", "delete", "then"]);
    }
    let mut figures = Figures::new("moments");
    let asked = f64::from(arguments.moments);
    figures.note("load_minutes", arguments.minutes);
    figures.at_least("opened_and_right", f64::from(right), asked);
    figures.note("open_median_ms", median(&took_ms));
    figures.at_most("open_p95_ms", quantile(&took_ms, 0.95), 10_000.0);
    Ok(figures.printed())
}

/// Opens one random moment between two writes and asks it for its value.
fn open_one(bed: &Testbed, history: &History) -> Result<()> {
    let count = history.ticks().len() as u64;
    ensure!(count > 2, "the source took no writes");
    let index = u64::from_le_bytes(random_bytes::<8>()) % (count - 2);
    let tick = history.ticks()[index as usize];
    let moment = history.moment_of(tick.value).context("a gap between two writes")?;
    let vdb = bed.provision("then", "prod", &["--at", &moment.to_string()])?;
    let db = Database::connect(&vdb.uri)?;
    let held = db.number("SELECT value FROM tick_now")?;
    ensure!(held == tick.value, "at {moment}: holds {held}, not {}", tick.value);
    let rows = db.number("SELECT count(*) FROM ticks")?;
    ensure!(rows == tick.value, "at {moment}: {rows} rows, not {}", tick.value);
    Ok(())
}
