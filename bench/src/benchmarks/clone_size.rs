//! What a clone adds to the pool before it is written to.

use super::engine_options;
use crate::figures::megabytes;
use crate::record::Record;
use crate::setting::Setting;
use crate::stage::Stage;
use anyhow::Result;
use offshoot_os::{Clock, SystemClock};
use std::time::Duration;

/// Measure what a clone adds to the pool before it is written to
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench clone-size --clones 5")]
pub struct Arguments {
    /// pgbench scale of the source
    #[arg(long, value_name = "N", default_value_t = 20)]
    scale: u32,
    /// VDBs made
    #[arg(long, value_name = "N", default_value_t = 5)]
    clones: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let stage = Stage::start(&engine_options(&arguments.setting)?, arguments.scale, &[])?;
    let mut record = Record::begin("clone-size", arguments, stage.scratch.path())?;
    stage.link("prod")?;
    let id = stage.ready_snapshot("prod")?.id.to_string();
    stage.engine.command(["dsource", "pause", "prod"])?;
    let settled = || -> Result<u64> {
        // Several transaction groups, so that everything to be written has been.
        SystemClock.sleep(Duration::from_secs(15));
        Ok(stage.pool()?.used_bytes)
    };
    let before = settled()?;
    let mut unique_bytes = 0;
    for number in 1..=arguments.clones {
        let name = format!("clone{number}");
        unique_bytes = stage.provision(&name, "prod", &["--snapshot", &id])?.unique_bytes;
    }
    let after = settled()?;
    let each = megabytes(after.saturating_sub(before)) / f64::from(arguments.clones);
    let figures = &mut record.figures;
    figures.note("source_mb", megabytes(stage.source.data_bytes()));
    figures.note("pool_mb", megabytes(before));
    figures.at_most("clone_adds_mb", each, 10.0);
    figures.note("vdb_unique_mb", megabytes(unique_bytes));
    Ok(record)
}
