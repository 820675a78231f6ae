//! What cells cost: an engine whose servers are confined beside one whose servers are plain processes.

use super::engine_options;
use crate::pair::{Pair, Runs};
use crate::record::Record;
use crate::setting::Setting;
use crate::statistics::{interleaved, median};
use anyhow::Result;

/// Measure what the confinement of servers costs
///
/// Two engines, one of which runs with --unconfined, provision VDBs of the same source in turn, and clients work in one
/// VDB of each.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench confinement --scale 10 --seconds 5")]
pub struct Arguments {
    /// pgbench scale of the source
    #[arg(long, value_name = "N", default_value_t = 10)]
    scale: u32,
    /// VDBs made by each engine
    #[arg(long, value_name = "N", default_value_t = 20)]
    provisions: u32,
    /// Clients
    #[arg(long, value_name = "N", default_value_t = 4)]
    clients: u32,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u32,
    /// Counted runs of each, in turn, after one that warms up
    #[arg(long, value_name = "N", default_value_t = 9)]
    repeats: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let options = engine_options(&arguments.setting)?;
    let sides: [(_, &[&str]); 2] = [("unconfined", &["--unconfined"]), ("confined", &[])];
    let mut pair = Pair::start(&options, sides, arguments.scale)?;
    let mut record = Record::begin("confinement", arguments, pair.stage(0).scratch.path())?;
    let mut took = [Vec::new(), Vec::new()];
    for (round, index) in interleaved(2, arguments.provisions + 1) {
        let stage = pair.stage(index);
        let snapshot = stage.ready_snapshot("prod")?.id.to_string();
        let (_, ms) = stage.provision_and_ask("timed", "prod", &["--snapshot", &snapshot])?;
        stage.engine.command(["vdb", "delete", "timed"])?;
        if round > 0 {
            took[index].push(ms);
        }
    }
    let costs = median(&took[1]) - median(&took[0]);
    for ((name, _), samples) in sides.iter().zip(took) {
        record.figures.note(format!("provision_{name}_ms"), samples);
    }
    record.figures.at_most("provision_costs_ms", costs, 40.0);
    for index in 0..2 {
        pair.stage(index).provision("dev", "prod", &[])?;
    }
    let Arguments { clients, seconds, repeats, .. } = *arguments;
    let runs = Runs { clients, seconds, repeats, goal: 0.98 };
    pair.compare("dev", runs, "", &mut record)?;
    Ok(record)
}
