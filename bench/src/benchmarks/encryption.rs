//! What encryption costs: a VDB of an encrypted pool beside one of another.

use super::engine_options;
use crate::record::Record;
use crate::setting::Setting;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::{interleaved, median};
use anyhow::Result;
use offshoot_api::Vdb;
use offshoot_rig::Engine;
use std::time::Duration;

/// The longest link.
const LINK_MAX: Duration = Duration::from_secs(1800);
/// What is measured in turn.
const POOLS: [&str; 2] = ["plain", "encrypted"];

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
    let mut options = engine_options(&arguments.setting)?;
    let stage = Stage::start(&options, arguments.scale, &CHECKPOINTS)?;
    let mut record = Record::begin("encryption", arguments, stage.scratch.path())?;
    options.arguments.push("--encrypt".to_owned());
    let Stage { engine: plain, source, scratch } = &stage;
    let mut encrypted = Engine::prepare(scratch.path().join("encrypted"), options);
    encrypted.restart()?;
    let mut vdbs = Vec::new();
    for engine in [plain, &encrypted] {
        let (uri, password) = (source.link_uri(), [("PGPASSWORD", source.link_password())]);
        let link = ["dsource", "link", "prod", "--connector", "postgres", "--source", &uri];
        engine.command_within(link, &password, LINK_MAX)?;
        // Little of its own: what is read is read of the pool.
        let set = "--set=shared_buffers=16MB";
        let vdb: Vdb = engine.ask(["vdb", "provision", "dev", "--from", "prod", set])?;
        engine.command(["dsource", "pause", "prod"])?;
        vdbs.push(vdb);
    }
    measure(&stage, &vdbs, "cached", arguments, &mut record)?;
    let Stage { engine: mut plain, source, scratch } = stage;
    for engine in [&mut plain, &mut encrypted] {
        engine.options.cache_size.clone_from(&arguments.small_cache);
        engine.stop()?;
        engine.restart()?;
    }
    let vdbs = [plain.ask(["vdb", "show", "dev"])?, encrypted.ask(["vdb", "show", "dev"])?];
    let stage = Stage { engine: plain, source, scratch };
    measure(&stage, &vdbs, "missing", arguments, &mut record)?;
    let ratio = stage.pool()?.cache.hit_ratio;
    record.figures.note("missing_cache_hit_ratio", ratio);
    encrypted.stop()?;
    Ok(record)
}

fn measure(
    stage: &Stage,
    vdbs: &[Vdb],
    cache: &str,
    arguments: &Arguments,
    record: &mut Record,
) -> Result<()> {
    for (mix, flags) in [("select_only", &["--select-only"][..]), ("tpcb_like", &[][..])] {
        let mut tps = [Vec::new(), Vec::new()];
        for (round, pool) in interleaved(POOLS.len(), arguments.repeats + 1) {
            let uri = &vdbs[pool].uri;
            let rate = stage.pgbench(uri, arguments.clients, arguments.seconds, flags)?;
            if round > 0 {
                tps[pool].push(rate);
            }
        }
        let [plain, encrypted] = tps.each_ref().map(|samples| median(samples));
        for (pool, samples) in POOLS.iter().zip(tps) {
            record.figures.note(format!("{cache}_{mix}_{pool}_tps"), samples);
        }
        record.figures.at_least(
            format!("{cache}_{mix}_encrypted_to_plain"),
            encrypted / plain,
            0.9,
        );
    }
    Ok(())
}
