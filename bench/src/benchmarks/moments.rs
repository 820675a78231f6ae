//! Whether any second of a stretch of load opens, holds what it should, how long that takes and what it costs.

mod bisect;
mod checkpoints;
mod diff;
mod history;
mod links;
mod load;
mod openings;
mod standby;
mod warm;

use super::engine_options;
use crate::record::Record;
use crate::setting::Setting;
use crate::stage::Stage;
use anyhow::Result;
use load::Load;
use std::time::Duration;

/// Ten times the log between checkpoints that the defaults allow.
const RARE_CHECKPOINTS: [(&str, &str); 2] =
    [("checkpoint_timeout", "1h"), ("max_wal_size", "16GB")];

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Measure {
    /// Random moments of the load, and the latest moment beside it
    Openings,
    /// The same of two sources, loaded one after the other: one with PostgreSQL's usual checkpoints, one with rare ones.
    /// Their random moments are opened in turn
    Checkpoints,
    /// Random moments of a week, made small: the policy keeps log for four fifths of --minutes (7 days) and all snapshots
    /// for a seventh of that (1 day), so that retention has thinned out and cut off what is older
    History,
    /// Processor time of the engine while it follows the load, and replay in a clone after it, against a plain standby of
    /// the same source in the same time
    Standby,
    /// Warm copies beside the load: handed out, to the first answer
    Warm,
    /// Links beside the load: a VDB of the link's own moment, from the link's end to the first answer
    Links,
    /// The search for a commit that changed an answer: of a table that nothing else writes, and of one that every
    /// transaction writes
    Bisect,
    /// The comparison of two moments between which one page in a hundred has changed
    Diff,
}

/// Open random seconds of a stretch of load: does each open, is it right, how long does it take
///
/// A moment must hold every commit that was acknowledged before it and none that was begun after it; the latest one
/// every commit that was acknowledged before it was asked for.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Examples:\n  offshoot bench moments --minutes 2 --moments 10\n  \
                        offshoot bench moments --load heavy --minutes 10 --scale 50\n  \
                        offshoot bench moments --load orders --minutes 10 --scale 50\n  \
                        offshoot bench moments --load heavy --measure checkpoints --minutes 10\n  \
                        offshoot bench moments --load heavy --measure history --minutes 60\n  \
                        offshoot bench moments --load heavy --measure standby --minutes 5\n  \
                        offshoot bench moments --load heavy --measure warm --minutes 5\n  \
                        offshoot bench moments --measure links --moments 5 --scale 670\n  \
                        offshoot bench moments --load heavy --measure bisect --minutes 10\n  \
                        offshoot bench moments --measure diff --scale 670")]
pub struct Arguments {
    /// What is measured
    #[arg(long, value_enum, default_value_t = Measure::Openings)]
    measure: Measure,
    /// What the source is loaded with
    #[arg(long, value_enum, default_value_t = Load::Steady)]
    load: Load,
    /// Have the source make a checkpoint an hour, or after 16 GB of log, instead of PostgreSQL's defaults (openings)
    #[arg(long)]
    rare_checkpoints: bool,
    /// Openings of the latest moment beside the load, spread over it (openings, checkpoints)
    #[arg(long, value_name = "N", default_value_t = 10)]
    latest: u32,

    /// Length of the load; warm copies and links end when --moments are done
    #[arg(long, value_name = "N", default_value_t = 15.0)]
    minutes: f64,
    /// Random moments opened, copies handed out, or links
    #[arg(long, value_name = "N", default_value_t = 50)]
    moments: u32,
    /// Size of the source: pgbench's scale, about 15 MB each, or as much of order entry
    #[arg(long, value_name = "N", default_value_t = 20)]
    scale: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    match arguments.measure {
        Measure::Openings => openings::run(arguments),
        Measure::Checkpoints => checkpoints::run(arguments),
        Measure::History => history::run(arguments),
        Measure::Standby => standby::run(arguments),
        Measure::Warm => warm::run(arguments),
        Measure::Links => links::run(arguments),
        Measure::Bisect => bisect::run(arguments),
        Measure::Diff => diff::run(arguments),
    }
}

impl Arguments {
    /// An engine, and a source with the data of the load.
    fn stage(&self, settings: &[(&str, &str)]) -> Result<(Stage, Record)> {
        let engine = engine_options(&self.setting)?;
        let stage = Stage::start(&engine, self.load.pgbench_scale(self.scale), settings)?;
        let record = Record::begin("moments", self, stage.scratch.path())?;
        self.load.fill(&stage.source, self.scale, self.setting.seed)?;
        Ok((stage, record))
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.minutes * 60.0)
    }
}
