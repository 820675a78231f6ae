//! What grows with the number of VDBs: the time of each operation, and memory.

use super::engine_options;
use super::provision::memory_at_rest;
use crate::figures::{megabytes, millis};
use crate::host::{proportional_bytes, resident_bytes};
use crate::record::{Chart, Line, Record};
use crate::setting::Setting;
use crate::stage::Stage;
use crate::statistics::median;
use anyhow::{Context, Result, ensure};
use offshoot_api::{Vdb, VdbList, VdbState};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;

/// Measure the time of each operation and the memory of idle VDBs as their number grows
///
/// VDBs are provisioned one after another; the first of them keep running and the others are stopped. All
/// operations are timed repeatedly on the way.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench many --defined 1000 --running 100")]
pub struct Arguments {
    /// VDBs defined in the end
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(20..))]
    defined: u32,
    /// How many of them run at the same time
    #[arg(long, value_name = "N", default_value_t = 12)]
    running: u32,
    /// pgbench scale of the source
    #[arg(long, value_name = "N", default_value_t = 5)]
    scale: u32,
    /// shared_buffers of the source and of each VDB
    #[arg(long, value_name = "SIZE", default_value = "1MB")]
    shared_buffers: String,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Milliseconds of each operation, in the order of the number of VDBs.
#[derive(Debug, Default)]
struct Operations {
    provision: Vec<f64>,
    query: Vec<f64>,
    show: Vec<f64>,
    list: Vec<f64>,
    stop: Vec<f64>,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let sizes = [("shared_buffers", arguments.shared_buffers.as_str()), ("max_connections", "20")];
    let stage = Stage::start(&engine_options(&arguments.setting)?, arguments.scale, &sizes)?;
    let mut record = Record::begin("many", arguments, stage.scratch.path())?;
    stage.link("prod")?;
    let snapshot = stage.ready_snapshot("prod")?.id.to_string();
    stage.engine.command(["dsource", "pause", "prod"])?;
    let mut operations = Operations::default();
    let (none, engine_none) = (memory_at_rest(&stage), memory_of_process(&stage));
    let mut all = none;
    for number in 1..=arguments.defined {
        let runs = number <= arguments.running;
        one(&stage, arguments, &snapshot, number, runs, &mut operations)
            .with_context(|| format!("VDB {number}"))?;
        if number == arguments.running {
            all = memory_at_rest(&stage);
            let servers = f64::from(arguments.running);
            let engine = memory_of_process(&stage).saturating_sub(engine_none);
            let figures = &mut record.figures;
            figures.at_most("memory of each idle VDB, mb", megabytes(all - none) / servers, 8.0);
            figures.note("of that, the engine's, mb", megabytes(engine) / servers);
        }
        if number % 50 == 0 {
            eprintln!(
                "{number} VDBs, provision {:.0} ms",
                operations.provision.last().unwrap_or(&0.0)
            );
        }
    }
    all_answer(&stage, arguments.running)?;
    let grown = memory_at_rest(&stage).saturating_sub(all);
    let stopped = f64::from((arguments.defined - arguments.running).max(1));
    record.figures.note("memory of each stopped VDB, mb", megabytes(grown) / stopped);
    report(&mut record, operations);
    Ok(record)
}

/// Provisions a VDB, asks it something, shows it, lists all, and stops it unless it is to run.
fn one(
    stage: &Stage,
    arguments: &Arguments,
    snapshot: &str,
    number: u32,
    runs: bool,
    operations: &mut Operations,
) -> Result<()> {
    let name = format!("many-{number}");
    let buffers = format!("shared_buffers={}", arguments.shared_buffers);
    let more = ["--snapshot", snapshot, "--set", &buffers];
    let (vdb, ms) = stage.provision_and_ask(&name, "prod", &more)?;
    operations.provision.push(ms);
    operations.query.push(timed(|| answer(&vdb))?);
    operations.show.push(timed(|| stage.engine.ask::<Vdb, _>(["vdb", "show", &name]).map(drop))?);
    operations.list.push(timed(|| {
        let list: VdbList = stage.engine.ask(["vdb", "list"])?;
        ensure!(list.vdbs.len() as u32 == number, "{} VDBs are listed", list.vdbs.len());
        Ok(())
    })?);
    if !runs {
        operations
            .stop
            .push(timed(|| Ok(stage.engine.command(["vdb", "stop", &name]).map(drop)?))?);
    }
    Ok(())
}

/// Asks every running VDB something.
fn all_answer(stage: &Stage, running: u32) -> Result<()> {
    let list: VdbList = stage.engine.ask(["vdb", "list"])?;
    let runs = |vdb: &Vdb| vdb.state == VdbState::Running;
    let names: Vec<String> = list.vdbs.into_iter().filter(runs).map(|vdb| vdb.name).collect();
    ensure!(names.len() as u32 == running, "{} of {running} VDBs run", names.len());
    names.iter().try_for_each(|name| {
        // A list has no passwords.
        answer(&stage.engine.ask(["vdb", "show", name])?).with_context(|| name.clone())
    })
}

fn answer(vdb: &Vdb) -> Result<()> {
    let rows = Database::connect(&vdb.uri)?.number("SELECT count(*) FROM pgbench_branches")?;
    ensure!(rows > 0, "the source's rows are there");
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let began = SystemClock.elapsed();
    work()?;
    Ok(millis(SystemClock.elapsed() - began))
}

/// Memory of the engine's own process.
fn memory_of_process(stage: &Stage) -> u64 {
    let pid = stage.engine.pid();
    pid.and_then(|pid| proportional_bytes(pid).or_else(|| resident_bytes(pid))).unwrap_or(0)
}

fn report(record: &mut Record, operations: Operations) {
    let Operations { provision, query, show, list, stop } = operations;
    let mut lines = Vec::new();
    for (name, samples) in
        [("provision", provision), ("query", query), ("show", show), ("list", list), ("stop", stop)]
    {
        // The first ones find nothing in any cache.
        let tenth = (samples.len() / 10).max(3).min(samples.len());
        let first = median(&samples[tenth.min(samples.len() - tenth)..][..tenth]);
        let last = median(&samples[samples.len() - tenth..]);
        lines.push(Line::counted(name, samples));
        record.figures.note(format!("{name}_ms with few"), first);
        match name {
            // Listing all of them may grow with their number, but must stay below a hundred
            // milliseconds.
            "list" => record.figures.at_most(format!("{name}_ms with all"), last, 100.0),
            _ => record.figures.note(format!("{name}_ms with all"), last),
        }
    }
    record.charts.push(Chart {
        title: "Operations by the number of VDBs".into(),
        x: "VDB".into(),
        y: "ms".into(),
        lines,
    });
}
