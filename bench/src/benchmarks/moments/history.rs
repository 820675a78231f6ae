//! Random moments of a whole week, made small.
//!
//! What decides how long a moment takes is the log between it and the image before it: what retention left of recovery
//! points and snapshots. So the week is as short as the load allows, and the policy's durations are in the same ratio; log
//! is written as fast as the source does. Snapshots are as far apart in the log as with 10 minutes in a week of 200 GB,
//! at some 10 MB a second. The first snapshot of each hour, which a real week keeps, is not: hours cannot be made shorter.

use super::Arguments;
use super::openings::{Loaded, load_up, open_random};
use crate::record::Record;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::quantile;
use anyhow::{Context, Result};
use jiff::Timestamp;
use offshoot_api::TimeflowList;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::History;
use std::time::Duration;

/// What is kept of the load: the part before it is cut off, as what is older than a week is.
const KEPT: (u32, u32) = (4, 5);
/// Days for which log is kept; all snapshots are kept for one.
const DAYS: u32 = 7;
/// Pause between snapshots.
const SNAPSHOTS: Duration = Duration::from_secs(20);
/// What any moment may take: 95 of 100, in milliseconds.
const P95_MS_GOAL: f64 = 5_000.0;

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let (stage, mut record) = arguments.stage(&CHECKPOINTS)?;
    stage.link("prod")?;
    let week = arguments.time() * KEPT.0 / KEPT.1;
    set_policy(&stage, week, week / DAYS)?;
    let arguments = Arguments { latest: 0, ..arguments.clone() };
    let loaded = load_up(&stage, ("prod", &stage.source), &arguments, &mut record)?;
    // From now on nothing grows older.
    let days = |count: u32| Duration::from_secs(86_400) * count;
    set_policy(&stage, days(DAYS), days(DAYS))?;
    let now = Timestamp::try_from(SystemClock.now()).context("this host's clock")?;
    let loaded = Loaded { history: since(&loaded.history, now - week), ..loaded };
    let opened = open_random(&stage, &[&loaded], arguments.moments).pop().unwrap_or_default();
    add_kept(&stage, &mut record)?;
    let figures = &mut record.figures;
    figures.note("load_minutes", arguments.minutes);
    figures.note("log_mb", loaded.log_mb);
    let asked = opened.took_ms.len() as f64;
    figures.at_least("opened_and_right", f64::from(opened.right), asked);
    figures.note("open_p50_ms", quantile(&opened.took_ms, 0.5));
    figures.at_most("open_p95_ms", quantile(&opened.took_ms, 0.95), P95_MS_GOAL);
    figures.note("open_ms", opened.took_ms);
    Ok(record)
}

/// Keeps all snapshots for a day and log for a week.
fn set_policy(stage: &Stage, week: Duration, day: Duration) -> Result<()> {
    let seconds = |time: Duration| format!("{}s", time.as_secs().max(1));
    let (week, day, every) = (seconds(week), seconds(day), seconds(SNAPSHOTS));
    let keep = ["--log", &week, "--keep-all", &day, "--snapshot-every", &every];
    let firsts = ["--hourly", "none", "--daily", "none", "--weekly", "none"];
    stage.engine.command(["policy", "set", "prod"].iter().chain(&keep).chain(&firsts))?;
    Ok(())
}

/// The writes after a moment.
fn since(all: &History, begin: Timestamp) -> History {
    let mut history = History::default();
    all.ticks().iter().filter(|tick| tick.before > begin).for_each(|tick| history.push(*tick));
    history
}

/// What retention left, and what the engine expects of it.
fn add_kept(stage: &Stage, record: &mut Record) -> Result<()> {
    let list: TimeflowList = stage.engine.ask(["timeflow", "show", "prod"])?;
    let current = list.timeflows.into_iter().find(|one| one.current);
    let current = current.context("a dSource has a timeflow that continues")?;
    let figures = &mut record.figures;
    figures.note("recovery_points_kept", current.recovery_points.len() as f64);
    figures.note("snapshots_kept", current.snapshots.len() as f64);
    if let Some(longest) = current.ranges.last().and_then(|range| range.longest_open_ms) {
        figures.note("longest_expected_ms", longest as f64);
    }
    Ok(())
}
