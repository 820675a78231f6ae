//! How long a VDB takes from the request to its first answered query.

use super::engine_options;
use crate::figures::millis;
use crate::host::proportional_bytes;
use crate::record::{Chart, Line, Record};
use crate::setting::Setting;
use crate::stage::{Stage, source_options};
use crate::statistics::{interleaved, median, quantile};
use anyhow::{Context, Result, ensure};
use offshoot_os::process::Child;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Source;
use std::time::Duration;

/// How long to wait for memory to settle.
const REST_SECONDS: u32 = 30;

/// Measure the time from a request to the first answered query of the VDB
///
/// At two sizes of the source, idle and under a steady write load, of a ready snapshot and of a moment
/// after it, which is replayed; one at a time and several together.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench provision --repeats 20 --at-once 12")]
pub struct Arguments {
    /// VDBs made of each source, idle and under load
    #[arg(long, value_name = "N", default_value_t = 20)]
    repeats: u32,
    /// pgbench scale of the small source: 67 is about 1 GB
    #[arg(long, value_name = "N", default_value_t = 67)]
    small_scale: u32,
    /// pgbench scale of the large source: 670 is about 10 GB
    #[arg(long, value_name = "N", default_value_t = 670)]
    large_scale: u32,
    /// VDBs requested together
    #[arg(long, value_name = "N", default_value_t = 12)]
    at_once: u32,
    /// How often that is done
    #[arg(long, value_name = "N", default_value_t = 3)]
    at_once_repeats: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Milliseconds of one source in one condition: measured from outside, and as the engine reports.
#[derive(Debug, Default)]
struct Samples {
    wall: Vec<f64>,
    engine: Vec<f64>,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let stage = Stage::start(&engine_options(&arguments.setting)?, arguments.small_scale, &[])?;
    let mut record = Record::begin("provision", arguments, stage.scratch.path())?;
    let options = source_options(arguments.large_scale, &[])?;
    let large = Source::start(&stage.scratch, options)?;
    stage.link("small")?;
    stage.link_source("large", &large)?;
    let ready = [ready_id(&stage, "small")?, ready_id(&stage, "large")?];

    let (mut medians, mut lines) = (Vec::new(), Vec::new());
    for condition in ["idle", "under_load"] {
        let mut loads = Vec::new();
        if condition == "under_load" {
            loads = vec![start_load(&stage.source)?, start_load(&large)?];
        }
        let mut samples = [Samples::default(), Samples::default()];
        for (_, index) in interleaved(2, arguments.repeats) {
            one(&stage, ["small", "large"][index], &ready[index], &mut samples[index])?;
        }
        for mut load in loads {
            load.kill_group();
        }
        for (name, samples) in ["small", "large"].into_iter().zip(samples) {
            medians.push(median(&samples.wall));
            lines.push(Line::counted(format!("{name} {condition}"), samples.wall.clone()));
            let (high, figures) = (quantile(&samples.wall, 0.99), &mut record.figures);
            figures.at_most(format!("{name}_{condition}_ms"), samples.wall, 400.0);
            figures.at_most(format!("{name}_{condition}_p99_ms"), high, 1_000.0);
            figures.note(format!("{name}_{condition}_engine_ms"), samples.engine);
        }
    }
    let replayed = after_snapshot(&stage, arguments.repeats)?;
    lines.push(Line::counted("small, a commit replayed".to_owned(), replayed.wall.clone()));
    record.figures.note("small_replayed_ms", replayed.wall);
    record.figures.note("small_replayed_engine_ms", replayed.engine);
    record.figures.at_most("large_to_small_idle", medians[1] / medians[0], 1.1);
    record.figures.at_most("large_to_small_under_load", medians[3] / medians[2], 1.1);
    record.figures.at_most("small_under_load_to_idle", medians[2] / medians[0], 1.1);
    record.charts.push(Chart {
        title: "Request to first answer, one at a time".into(),
        x: "run".into(),
        y: "ms".into(),
        lines,
    });
    let (mut all, mut each, mut idle_mb) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.at_once_repeats {
        let before = memory_at_rest(&stage);
        let together = at_once(&stage, "small", &ready[0], arguments.at_once)?;
        all.push(together.total_ms);
        each.extend(together.each_ms);
        let grown = together.memory_bytes.saturating_sub(before);
        idle_mb.push(grown as f64 / 1e6 / f64::from(arguments.at_once));
    }
    let count = arguments.at_once;
    let figures = &mut record.figures;
    figures.at_most(format!("{count}_at_once_ms"), all, 4_000.0);
    figures.note(format!("{count}_at_once_each_ms"), each);
    figures.at_most(format!("memory of each of {count} idle VDBs, mb"), idle_mb, 8.0);
    Ok(record)
}

fn ready_id(stage: &Stage, dsource: &str) -> Result<String> {
    Ok(stage.ready_snapshot(dsource)?.id.to_string())
}

fn one(stage: &Stage, from: &str, snapshot: &str, samples: &mut Samples) -> Result<()> {
    let (vdb, wall) = stage.provision_and_ask("timed", from, &["--snapshot", snapshot])?;
    samples.wall.push(wall);
    samples.engine.push(vdb.timings.total_ms as f64);
    stage.engine.command(["vdb", "delete", "timed"])?;
    Ok(())
}

/// Provisions the moment of a commit after the newest snapshot, while nothing else writes.
fn after_snapshot(stage: &Stage, repeats: u32) -> Result<Samples> {
    let mut samples = Samples::default();
    let db = stage.source.connect("postgres")?;
    for _ in 0..repeats {
        db.execute("UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1")?;
        let (vdb, wall) = stage.provision_and_ask("timed", "small", &["--latest"])?;
        ensure!(vdb.timings.recover_ms > 0, "nothing was replayed");
        samples.wall.push(wall);
        samples.engine.push(vdb.timings.total_ms as f64);
        stage.engine.command(["vdb", "delete", "timed"])?;
    }
    Ok(samples)
}

/// VDBs that were requested together.
#[derive(Debug)]
pub struct Together {
    /// From the first request to the last answer.
    pub total_ms: f64,
    /// From the request to the answer of each.
    pub each_ms: Vec<f64>,
    /// Memory of the engine and of everything it started, while all of them idle and at rest.
    memory_bytes: u64,
}

/// Provisions several VDBs together, each until it answers, and deletes them.
pub fn at_once(stage: &Stage, from: &str, snapshot: &str, count: u32) -> Result<Together> {
    let names: Vec<String> = (1..=count).map(|number| format!("at-once-{number}")).collect();
    let began = SystemClock.elapsed();
    let results: Vec<Result<f64>> = std::thread::scope(|scope| {
        let ask = |name| stage.provision_and_ask(name, from, &["--snapshot", snapshot]);
        let asked: Vec<_> =
            names.iter().map(|name| scope.spawn(move || ask(name).map(|(_, ms)| ms))).collect();
        let joined = asked.into_iter().map(|thread| thread.join());
        joined.map(|one| one.unwrap_or_else(|_| anyhow::bail!("a thread panicked"))).collect()
    });
    let total_ms = millis(SystemClock.elapsed() - began);
    let each_ms: Vec<f64> = results.into_iter().collect::<Result<_>>().context("all at once")?;
    let memory_bytes = memory_at_rest(stage);
    for name in &names {
        stage.engine.command(["vdb", "delete", name])?;
    }
    ensure!(each_ms.len() == names.len(), "some VDBs were not provisioned");
    Ok(Together { total_ms, each_ms, memory_bytes })
}

/// Memory of the engine and of all processes of its pool; shared memory counts once.
fn memory_of_engine(stage: &Stage) -> u64 {
    // One that has just ended takes nothing.
    stage.engine_processes().iter().map(|one| proportional_bytes(one.pid).unwrap_or(0)).sum()
}

/// The same once it no longer falls: memory that starting servers took for a moment has been freed.
pub fn memory_at_rest(stage: &Stage) -> u64 {
    let mut memory = memory_of_engine(stage);
    for _ in 0..REST_SECONDS {
        SystemClock.sleep(Duration::from_secs(1));
        let before = std::mem::replace(&mut memory, memory_of_engine(stage));
        if memory as f64 > before as f64 * 0.995 {
            break;
        }
    }
    memory
}

/// Steady writes by pgbench until the child is killed.
pub fn start_load(source: &Source) -> Result<Child> {
    let spec = source.pgbench(&["--client=2", "--rate=100", "--time=100000", "--no-vacuum"]);
    Ok(spec.die_with_parent(true).spawn()?)
}
