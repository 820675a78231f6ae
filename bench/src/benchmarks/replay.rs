//! How fast log is replayed: by the staging of a dSource, and by a plain standby of the same source.

use super::engine_options;
use super::load::observe_blocking;
use crate::driver::LoadPlan;
use crate::figures::megabytes;
use crate::order_entry::Mix;
use crate::record::Record;
use crate::setting::{Setting, SourceData};
use crate::stage::{CHECKPOINTS, Stage, log_bytes};
use crate::standby::{KEPT_LOG, Standby};
use crate::statistics::median;
use anyhow::{Result, ensure};
use offshoot_os::process;
use offshoot_os::{Clock, SystemClock};
use std::time::Duration;

/// Users of the source.
const USERS: u32 = 10;
/// Longest that catching up may take.
const CATCH_UP_SECONDS_MAX: u64 = 3_600;

/// Measure how fast a dSource catches up with its source, against a plain standby
///
/// Both stand still while the source takes the WRITE mix of order entry, or pgbench's load on pgbench's data. Then
/// each receives and replays the same log while the other stands still: the dSource until it has taken a snapshot of
/// the source's last position, the standby until it has replayed up to there.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Examples:\n  offshoot bench replay --scale 0.2 --seconds 30\n  \
    offshoot bench replay --pgbench 50")]
pub struct Arguments {
    #[command(flatten)]
    #[serde(flatten)]
    data: SourceData,
    /// Seconds of writing before both catch up
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u32,
    /// How often, the order alternating
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let settings = [&CHECKPOINTS[..], &[KEPT_LOG]].concat();
    let (data, setting) = (&arguments.data, &arguments.setting);
    let stage = Stage::start(&engine_options(setting)?, data.pgbench_scale(), &settings)?;
    let mut record = Record::begin("replay", arguments, stage.scratch.path())?;
    data.fill(&stage, setting.seed)?;
    stage.link("prod")?;
    stage.ready_snapshot("prod")?;
    let mut standby = Standby::make(&stage)?;
    standby.catch_up(&stage.source)?;
    stage.engine.command(["dsource", "pause", "prod"])?;
    let (mut log_mb, mut staging, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..arguments.repeats {
        log_mb.push(write(&stage, arguments)?);
        if round % 2 == 0 {
            plain.push(standby.catch_up(&stage.source)?);
        }
        staging.push(catch_up_staging(&stage)?);
        if round % 2 == 1 {
            plain.push(standby.catch_up(&stage.source)?);
        }
    }
    let figures = &mut record.figures;
    // Whether a source that never stops writing like this would be followed.
    figures.at_least("staging_to_load", f64::from(arguments.seconds) / median(&staging), 1.0);
    figures.at_least("staging_to_standby", median(&plain) / median(&staging), 1.0);
    figures.note("log_mb", log_mb);
    figures.note("standby_seconds", plain);
    figures.note("staging_seconds", staging);
    Ok(record)
}

/// Writes to the source; megabytes of its log.
fn write(stage: &Stage, arguments: &Arguments) -> Result<f64> {
    let before = log_bytes(&stage.source)?;
    match arguments.data.pgbench {
        Some(_) => write_pgbench(stage, arguments.seconds)?,
        None => write_orders(stage, arguments)?,
    }
    Ok(megabytes(log_bytes(&stage.source)?.saturating_sub(before)))
}

fn write_pgbench(stage: &Stage, seconds: u32) -> Result<()> {
    let (clients, time) = (format!("--client={USERS}"), format!("--time={seconds}"));
    let spec = stage.source.pgbench(&["--no-vacuum", &clients, "--jobs=2", &time]);
    let output = process::run(&spec, Duration::from_secs(u64::from(seconds) + 60))?;
    ensure!(output.success(), "pgbench: {}", output.stderr_text());
    Ok(())
}

fn write_orders(stage: &Stage, arguments: &Arguments) -> Result<()> {
    let plan = LoadPlan::closed_loop(Mix::Write, USERS, arguments.seconds, arguments.setting.seed);
    let load = observe_blocking(&[stage.source.superuser_uri("postgres")], &plan)?.load;
    ensure!(load.errors == 0, "{} transactions of the source failed", load.errors);
    Ok(())
}

/// Seconds the dSource takes from standing still until a VDB of where the source is now has opened.
fn catch_up_staging(stage: &Stage) -> Result<f64> {
    let began = SystemClock.elapsed();
    stage.engine.command(["dsource", "resume", "prod"])?;
    let limit = Duration::from_secs(CATCH_UP_SECONDS_MAX);
    stage.engine.command_within(["dsource", "sync", "prod"], &[], limit)?;
    let latest = ["vdb", "provision", "latest", "--from", "prod", "--latest"];
    stage.engine.command_within(latest, &[], limit)?;
    let seconds = (SystemClock.elapsed() - began).as_secs_f64();
    stage.engine.command(["vdb", "delete", "latest"])?;
    stage.engine.command(["dsource", "pause", "prod"])?;
    Ok(seconds)
}
