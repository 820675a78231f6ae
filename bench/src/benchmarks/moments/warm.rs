//! VDBs that run before anybody asks.

use super::Arguments;
use super::openings::TICK;
use crate::record::Record;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::quantile;
use anyhow::{Result, ensure};
use jiff::Timestamp;
use offshoot_api::{JobList, JobState, ProvisionTimings, Vdb};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;
use std::time::Duration;

/// Copies that are kept.
const COPIES: usize = 2;
/// The engine has seen by then that one is missing.
const NOTICED: Duration = Duration::from_secs(2);
/// Longest that all copies may take to be made.
const READY_SECONDS_MAX: u64 = 300;
/// What half of them may take, in milliseconds.
const P50_MS_GOAL: f64 = 100.0;

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let (stage, mut record) = arguments.stage(&CHECKPOINTS)?;
    stage.link("prod")?;
    let writer = stage.source.start_writes(TICK);
    let load = arguments.load.start(&stage.source, arguments.time(), arguments.setting.seed)?;
    stage.engine.command(["policy", "set", "prod", "--warm", &COPIES.to_string()])?;
    let end = SystemClock.elapsed() + arguments.time();
    let (mut took_ms, mut age_seconds, mut opened) = (Vec::new(), Vec::new(), 0);
    while took_ms.len() < arguments.moments as usize && SystemClock.elapsed() < end {
        wait_for_copies(&stage)?;
        let (vdb, took) = stage.provision_and_ask("taken", "prod", &["--warm"])?;
        check(&vdb)?;
        // What had to be opened first was not waiting.
        if vdb.timings
            == (ProvisionTimings { total_ms: vdb.timings.total_ms, ..Default::default() })
        {
            took_ms.push(took);
            age_seconds.push(age(&vdb));
        } else {
            opened += 1;
        }
        stage.engine.command(["vdb", "delete", "taken"])?;
    }
    load.abort();
    writer.stop();
    let figures = &mut record.figures;
    figures.at_most("warm_p50_ms", quantile(&took_ms, 0.5), P50_MS_GOAL);
    figures.note("warm_p95_ms", quantile(&took_ms, 0.95));
    figures.note("warm_ms", took_ms);
    figures.note("age_seconds", age_seconds);
    figures.note("not_waiting", f64::from(opened));
    Ok(record)
}

/// Waits until no copy is missing or being made.
fn wait_for_copies(stage: &Stage) -> Result<()> {
    let deadline = SystemClock.elapsed() + Duration::from_secs(READY_SECONDS_MAX);
    SystemClock.sleep(NOTICED);
    loop {
        let list: JobList = stage.engine.ask(["job", "list"])?;
        let copies = list.jobs.iter().filter(|job| job.object.starts_with("warm-"));
        let made: Vec<JobState> = copies.map(|job| job.state).collect();
        let done = made.iter().filter(|state| **state == JobState::Done).count();
        if done >= COPIES && made.iter().all(|state| state.is_final()) {
            return Ok(());
        }
        ensure!(SystemClock.elapsed() < deadline, "the warm copies are not made in time");
        SystemClock.sleep(Duration::from_millis(200));
    }
}

/// What it holds fits together.
fn check(vdb: &Vdb) -> Result<()> {
    let db = Database::connect(&vdb.uri)?;
    let held = db.number("SELECT value FROM tick_now")?;
    let rows = db.number("SELECT count(*) FROM ticks")?;
    ensure!(rows == held, "a warm copy has {rows} rows of {held} writes");
    Ok(())
}

/// How long ago its moment was, in seconds.
fn age(vdb: &Vdb) -> f64 {
    let now = Timestamp::try_from(SystemClock.now()).unwrap_or(Timestamp::UNIX_EPOCH);
    vdb.moment.time.map_or(0.0, |moment| now.duration_since(moment).as_secs_f64())
}
