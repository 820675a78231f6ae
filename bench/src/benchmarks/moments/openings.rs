//! Random moments of a load, and the latest one beside it.

use super::{Arguments, RARE_CHECKPOINTS};
use crate::figures::{Figures, megabytes, millis};
use crate::record::Record;
use crate::stage::{CHECKPOINTS, Stage, log_bytes};
use crate::statistics::{interleaved, quantile};
use anyhow::{Context, Result, ensure};
use offshoot_api::ProvisionTimings;
use offshoot_os::{Clock, SystemClock, random_bytes};
use offshoot_rig::{Database, History, Source, Writer};
use std::time::Duration;

/// Pause between two writes whose values tell moments apart.
pub const TICK: Duration = Duration::from_millis(100);
/// What the latest moment may take beside the load, in milliseconds.
const LATEST_MS_GOAL: f64 = 3_000.0;
/// What any moment may take: half of them, and 95 of 100.
const OPEN_P50_MS_GOAL: f64 = 1_500.0;
const OPEN_P95_MS_GOAL: f64 = 3_000.0;

/// A dSource after its source was loaded.
#[derive(Debug)]
pub struct Loaded {
    /// Its name.
    pub dsource: &'static str,
    /// What it held when.
    pub history: History,
    /// Log written meanwhile, in units of 1,000,000 bytes.
    pub log_mb: f64,
    /// Milliseconds that the latest moment took beside the load, each time.
    pub latest_ms: Vec<f64>,
}

/// Random moments that were opened.
#[derive(Debug, Default)]
pub struct Opened {
    /// How many opened and were right.
    pub right: u32,
    /// Milliseconds of each, those that failed included.
    pub took_ms: Vec<f64>,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let checkpoints = if arguments.rare_checkpoints { RARE_CHECKPOINTS } else { CHECKPOINTS };
    let (stage, mut record) = arguments.stage(&checkpoints)?;
    stage.link("prod")?;
    let loaded = load_up(&stage, ("prod", &stage.source), arguments, &mut record)?;
    let opened = open_random(&stage, &[&loaded], arguments.moments);
    record.figures.note("load_minutes", arguments.minutes);
    for opened in opened {
        add_figures(&mut record.figures, "", &loaded, opened);
    }
    Ok(record)
}

/// Loads a linked source, and opens its latest moment now and then meanwhile.
pub fn load_up(
    stage: &Stage,
    (dsource, source): (&'static str, &Source),
    arguments: &Arguments,
    record: &mut Record,
) -> Result<Loaded> {
    let before = log_bytes(source)?;
    let writer = source.start_writes(TICK);
    let load = arguments.load.start(source, arguments.time(), arguments.setting.seed)?;
    let latest = open_latest(stage, (dsource, &writer), arguments.latest, arguments.time());
    let history = writer.stop();
    load.end(record)?;
    let log_mb = megabytes(log_bytes(source)?.saturating_sub(before));
    Ok(Loaded { dsource, history, log_mb, latest_ms: latest? })
}

/// What the random moments of a dSource took, and its latest ones.
pub fn add_figures(figures: &mut Figures, prefix: &str, loaded: &Loaded, opened: Opened) {
    let Opened { right, took_ms } = opened;
    figures.note(format!("{prefix}log_mb"), loaded.log_mb);
    let asked = took_ms.len() as f64;
    figures.at_least(format!("{prefix}opened_and_right"), f64::from(right), asked);
    if !loaded.latest_ms.is_empty() {
        let p50 = quantile(&loaded.latest_ms, 0.5);
        figures.at_most(format!("{prefix}latest_p50_ms"), p50, LATEST_MS_GOAL);
        figures.note(format!("{prefix}latest_ms"), &loaded.latest_ms[..]);
    }
    let [p50, p95] = [0.5, 0.95].map(|share| quantile(&took_ms, share));
    figures.at_most(format!("{prefix}open_p50_ms"), p50, OPEN_P50_MS_GOAL);
    figures.at_most(format!("{prefix}open_p95_ms"), p95, OPEN_P95_MS_GOAL);
    figures.note(format!("{prefix}open_ms"), took_ms);
}

/// Opens the latest moment so many times, spread over `time`; milliseconds each took. Ends with `time`.
fn open_latest(
    stage: &Stage,
    (dsource, writer): (&str, &Writer),
    times: u32,
    time: Duration,
) -> Result<Vec<f64>> {
    let (begin, mut took_ms) = (SystemClock.elapsed(), Vec::new());
    let sleep_until =
        |due: Duration| SystemClock.sleep((begin + due).saturating_sub(SystemClock.elapsed()));
    for number in 1..=times {
        sleep_until(time * number / (times + 1));
        if SystemClock.elapsed() >= begin + time {
            break;
        }
        let acknowledged = writer.history().last_value();
        let began = SystemClock.elapsed();
        let vdb = stage.provision("now", dsource, &[])?;
        let took = millis(SystemClock.elapsed() - began);
        report("the latest", took, vdb.timings);
        took_ms.push(took);
        let held = Database::connect(&vdb.uri)?.number("SELECT value FROM tick_now")?;
        ensure!(held >= acknowledged, "the latest moment holds {held}, not {acknowledged}");
        stage.engine.command(["vdb", "delete", "now"])?;
    }
    sleep_until(time);
    Ok(took_ms)
}

/// Says what an opening took, and its parts.
fn report(what: &str, took: f64, timings: ProvisionTimings) {
    let ProvisionTimings { clone_ms, mount_ms, recover_ms, replay_ms, start_ms, .. } = timings;
    let log_mb = megabytes(timings.log_bytes);
    eprintln!(
        "  {what}: {took:.0} ms, clone {clone_ms}, mount {mount_ms}, recovery {recover_ms} ({replay_ms} of it the replay \
         of {log_mb:.1} MB), start {start_ms}"
    );
}

/// Opens so many random moments of each dSource, in turn.
pub fn open_random(stage: &Stage, all: &[&Loaded], times: u32) -> Vec<Opened> {
    let mut opened: Vec<Opened> = all.iter().map(|_| Opened::default()).collect();
    for (_, index) in interleaved(all.len(), times) {
        let began = SystemClock.elapsed();
        match open_one(stage, all[index]) {
            Ok(()) => opened[index].right += 1,
            Err(error) => eprintln!("  {error:#}"),
        }
        opened[index].took_ms.push(millis(SystemClock.elapsed() - began));
        // Already gone if it could not be made.
        let _ = stage.engine.command(["vdb", "delete", "then"]);
    }
    opened
}

/// Opens one random moment between two writes and asks it for its value.
fn open_one(stage: &Stage, Loaded { dsource, history, .. }: &Loaded) -> Result<()> {
    let count = history.ticks().len() as u64;
    ensure!(count > 2, "the source took no writes");
    let index = u64::from_le_bytes(random_bytes::<8>()) % (count - 2);
    let tick = history.ticks()[index as usize];
    let moment = history.moment_of(tick.value).context("a gap between two writes")?;
    let began = SystemClock.elapsed();
    let vdb = stage.provision("then", dsource, &["--at", &moment.to_string()])?;
    report("a moment", millis(SystemClock.elapsed() - began), vdb.timings);
    let db = Database::connect(&vdb.uri)?;
    let held = db.number("SELECT value FROM tick_now")?;
    ensure!(held == tick.value, "at {moment}: holds {held}, not {}", tick.value);
    let rows = db.number("SELECT count(*) FROM ticks")?;
    ensure!(rows == tick.value, "at {moment}: {rows} rows, not {}", tick.value);
    Ok(())
}
