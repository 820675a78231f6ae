//! What a gateway costs its clients, and how long they wait for a VDB that is woken or refreshed.

use super::engine_options;
use crate::record::Record;
use crate::setting::Setting;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::{interleaved, median, paired_ratio};
use anyhow::Result;
use offshoot_api::{Vdb, VdbState};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, wait_until};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a VDB may take to fall asleep.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Measure what a gateway costs, and how long clients wait for a VDB that is woken or refreshed
///
/// Clients work in two VDBs of one source in turn, one of which has a gateway.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench gateway --scale 10 --seconds 5")]
pub struct Arguments {
    /// pgbench scale of the source
    #[arg(long, value_name = "N", default_value_t = 10)]
    scale: u32,
    /// Clients
    #[arg(long, value_name = "N", default_value_t = 8)]
    clients: u32,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u32,
    /// Counted runs of each, in turn, after one that warms up
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: u32,
    /// How often a VDB is woken, and refreshed
    #[arg(long, value_name = "N", default_value_t = 10)]
    waits: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let options = engine_options(&arguments.setting)?;
    let stage = Stage::start(&options, arguments.scale, &CHECKPOINTS)?;
    let mut record = Record::begin("gateway", arguments, stage.scratch.path())?;
    stage.link("prod")?;
    stage.ready_snapshot("prod")?;
    stage.engine.command(["dsource", "pause", "prod"])?;
    let uris = [
        stage.provision("direct", "prod", &[])?.uri,
        stage.provision("held", "prod", &["--gateway"])?.uri,
    ];
    for (mix, flags) in [("select_only", &["--select-only"][..]), ("tpcb_like", &[][..])] {
        let mut tps = [Vec::new(), Vec::new()];
        for (round, place) in interleaved(2, arguments.repeats + 1) {
            let rate = stage.pgbench(&uris[place], arguments.clients, arguments.seconds, flags)?;
            if round > 0 {
                tps[place].push(rate);
            }
        }
        let ratio = paired_ratio(&tps[1], &tps[0]);
        record.figures.note(format!("{mix}_gateway_to_direct"), ratio);
        for (name, samples) in ["direct", "gateway"].iter().zip(tps) {
            record.figures.note(format!("{mix}_{name}_tps"), samples);
        }
    }
    let mut waits = Vec::new();
    for _ in 0..arguments.waits {
        waits.push(longest_wait(&stage, &uris[1])?);
    }
    record.figures.note("wait_of_a_client_beside_a_refresh_ms", waits);
    let woken = wake_times(&stage, arguments.waits)?;
    record.figures.at_most("woken_first_answer_ms", median(&woken), 1000.0);
    record.figures.note("woken_first_answer_each_ms", woken);
    Ok(record)
}

/// The longest that a client waits for an answer while its VDB is refreshed.
fn longest_wait(stage: &Stage, uri: &str) -> Result<f64> {
    let client = Database::connect(uri)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                let begun = SystemClock.elapsed();
                client.execute("SELECT 1")?;
                longest = longest.max(SystemClock.elapsed() - begun);
                SystemClock.sleep(Duration::from_millis(2));
            }
            Ok(longest.as_secs_f64() * 1000.0)
        });
        let refreshed = stage.engine.command(["vdb", "refresh", "held"]);
        done.store(true, Ordering::Relaxed);
        refreshed?;
        asks.join().map_err(|_| anyhow::anyhow!("the client panicked"))?
    })
}

/// From connecting to a VDB that is asleep to its first answer.
fn wake_times(stage: &Stage, times: u32) -> Result<Vec<f64>> {
    let uri = stage.provision("nap", "prod", &["--stop-when-idle", "1s"])?.uri;
    let mut all = Vec::new();
    for _ in 0..times {
        wait_until("nobody uses it", PATIENCE, LOOK, || {
            let vdb: Vdb = stage.engine.ask(["vdb", "show", "nap"])?;
            Ok(vdb.state == VdbState::Stopped)
        })?;
        let begun = SystemClock.elapsed();
        Database::connect(&uri)?.execute("SELECT 1")?;
        all.push((SystemClock.elapsed() - begun).as_secs_f64() * 1000.0);
    }
    Ok(all)
}
