//! What encryption costs: a VDB of an encrypted pool beside one of another.

use super::engine_options;
use crate::pair::{Pair, Runs};
use crate::record::Record;
use crate::setting::Setting;
use anyhow::Result;

/// Measure what encryption of the pool costs
///
/// Two engines, one with an encrypted pool, have a VDB of the same source each, and clients work in one after the other:
/// with a cache that holds everything, and with one that holds little, so that most reads open what they read.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench encryption --scale 30 --seconds 10")]
pub struct Arguments {
    /// pgbench scale of the source
    #[arg(long, value_name = "N", default_value_t = 30)]
    scale: u32,
    /// Clients
    #[arg(long, value_name = "N", default_value_t = 8)]
    clients: u32,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u32,
    /// Counted runs of each, in turn, after one that warms up
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: u32,
    /// The cache that holds little
    #[arg(long, value_name = "SIZE", default_value = "32MiB")]
    small_cache: String,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let options = engine_options(&arguments.setting)?;
    let sides: [(_, &[&str]); 2] = [("plain", &[]), ("encrypted", &["--encrypt"])];
    let mut pair = Pair::start(&options, sides, arguments.scale)?;
    let mut record = Record::begin("encryption", arguments, pair.stage(0).scratch.path())?;
    for index in 0..2 {
        // Little of its own: what is read is read of the pool.
        pair.stage(index).provision("dev", "prod", &["--set=shared_buffers=16MB"])?;
    }
    let Arguments { clients, seconds, repeats, .. } = *arguments;
    let runs = Runs { clients, seconds, repeats, goal: 0.9 };
    pair.compare("dev", runs, "cached_", &mut record)?;
    for index in 0..2 {
        let engine = &mut pair.stage(index).engine;
        engine.options.cache_size.clone_from(&arguments.small_cache);
        engine.stop()?;
        engine.restart()?;
    }
    pair.compare("dev", runs, "missing_", &mut record)?;
    let ratio = pair.stage(0).pool()?.cache.hit_ratio;
    record.figures.note("missing_cache_hit_ratio", ratio);
    Ok(record)
}
