//! What following a source and replay in a clone cost, against a plain standby of the same source.

use super::Arguments;
use super::openings::load_up;
use crate::figures::megabytes;
use crate::processor_time::processor_seconds;
use crate::record::Record;
use crate::stage::{CHECKPOINTS, Stage, log_bytes};
use crate::standby::{KEPT_LOG, Standby};
use crate::statistics::paired_ratio;
use anyhow::{Result, ensure};
use offshoot_api::{ProvisionTimings, TimeflowList};
use offshoot_os::{Clock, SystemClock};
use std::time::Duration;

/// Rounds of replay.
const ROUNDS: u32 = 3;
/// Longest load of a round: the log of longer ones would have a recovery point in it whatever the policy says.
const ROUND_MAX: Duration = Duration::from_secs(30);
/// Longest that the engine may take to make it, or to come to rest.
const WAIT_SECONDS_MAX: u64 = 300;
/// What the engine's processor time is looked at for, and what of it is rest.
const REST: (Duration, f64) = (Duration::from_secs(2), 0.1);
/// Processor time of the engine over the standby's, at most.
const PROCESSOR_GOAL: f64 = 2.5;
/// Megabytes a second that a clone replays over the standby's, at least.
const REPLAY_GOAL: f64 = 0.8;

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let settings = [&CHECKPOINTS[..], &[KEPT_LOG]].concat();
    let (stage, mut record) = arguments.stage(&settings)?;
    stage.link("prod")?;
    stage.ready_snapshot("prod")?;
    // To check that snapshots open is no part of following.
    stage.engine.command(["policy", "set", "prod", "--snapshot-every", "never"])?;
    let mut standby = Standby::make(&stage)?;
    standby.start(&stage.source)?;
    compare_processor_time(&stage, &standby, arguments, &mut record)?;
    standby.stop()?;
    compare_replay(&stage, &mut standby, arguments, &mut record)?;
    Ok(record)
}

/// Both follow the same load.
fn compare_processor_time(
    stage: &Stage,
    standby: &Standby,
    arguments: &Arguments,
    record: &mut Record,
) -> Result<()> {
    let engine = || processor_seconds(stage.engine_processes().iter().map(|one| one.pid));
    let plain = || processor_seconds(standby.pid());
    wait_for_rest(&engine)?;
    let before = (engine(), plain());
    let arguments = Arguments { latest: 0, ..arguments.clone() };
    let loaded = load_up(stage, ("prod", &stage.source), &arguments, record)?;
    let position = stage.source.connect("postgres")?.text("SELECT pg_current_wal_flush_lsn()")?;
    standby.wait_for(&position)?;
    stage.wait_received("prod")?;
    wait_for_rest(&engine)?;
    let [engine, plain] = [engine() - before.0, plain() - before.1];
    let figures = &mut record.figures;
    figures.note("load_minutes", arguments.minutes);
    figures.note("log_mb", loaded.log_mb);
    figures.at_most("processor_engine_to_standby", engine / plain, PROCESSOR_GOAL);
    figures.note("processor_engine_seconds", engine);
    figures.note("processor_standby_seconds", plain);
    Ok(())
}

/// Waits until the engine is done with what it received.
fn wait_for_rest(engine: &impl Fn() -> f64) -> Result<()> {
    let deadline = SystemClock.elapsed() + Duration::from_secs(WAIT_SECONDS_MAX);
    let (pause, share) = REST;
    let mut before = engine();
    loop {
        SystemClock.sleep(pause);
        let now = engine();
        if now - before < share * pause.as_secs_f64() {
            return Ok(());
        }
        ensure!(SystemClock.elapsed() < deadline, "the engine does not come to rest");
        before = now;
    }
}

/// Both replay the log of a round, one after the other, while nothing else runs: a clone of a recovery point before it,
/// and the standby from a checkpoint there.
fn compare_replay(
    stage: &Stage,
    standby: &mut Standby,
    arguments: &Arguments,
    record: &mut Record,
) -> Result<()> {
    let [mut clone, mut opened, mut plain, mut round_mb] = [const { Vec::new() }; 4];
    for round in 0..ROUNDS {
        let from = begin_round(stage, standby, arguments)?;
        load(stage, arguments, (arguments.time() / 10).min(ROUND_MAX), record)?;
        stage.wait_received("prod")?;
        stage.engine.command(["dsource", "pause", "prod"])?;
        let log_mb = megabytes(log_bytes(&stage.source)?.saturating_sub(from));
        round_mb.push(log_mb);
        let mut replay_plain = || -> Result<()> {
            plain.push(log_mb / standby.catch_up(&stage.source)?);
            Ok(())
        };
        if round % 2 == 0 {
            replay_plain()?;
        }
        let (replayed, own) = replay_in_clone(stage)?;
        clone.push(replayed);
        opened.push(own);
        if round % 2 == 1 {
            replay_plain()?;
        }
        stage.engine.command(["dsource", "resume", "prod"])?;
    }
    let figures = &mut record.figures;
    figures.at_least("replay_clone_to_standby", paired_ratio(&clone, &plain), REPLAY_GOAL);
    figures.note("replay_log_mb", round_mb);
    figures.note("replay_clone_mb_per_s", clone);
    figures.note("opened_clone_mb_per_s", opened);
    figures.note("replay_standby_mb_per_s", plain);
    Ok(())
}

/// Has the engine make a recovery point, and none after it; the standby begins at a checkpoint soon after that. Bytes of
/// log up to there.
fn begin_round(stage: &Stage, standby: &mut Standby, arguments: &Arguments) -> Result<u64> {
    stage.engine.command(["policy", "set", "prod", "--open-within", "1s"])?;
    let limit = Duration::from_secs(WAIT_SECONDS_MAX);
    let running = arguments.load.start(&stage.source, limit, arguments.setting.seed)?;
    let made = wait_for_point(stage);
    running.abort();
    made?;
    stage.engine.command(["policy", "set", "prod", "--open-within", "1h"])?;
    stage.source.connect("postgres")?.execute("CHECKPOINT")?;
    let from = log_bytes(&stage.source)?;
    standby.catch_up(&stage.source)?;
    Ok(from)
}

/// Waits until there is a recovery point after where the source is now.
fn wait_for_point(stage: &Stage) -> Result<()> {
    let source = stage.source.connect("postgres")?;
    let begin = source.text("SELECT pg_current_wal_lsn()")?;
    let deadline = SystemClock.elapsed() + Duration::from_secs(WAIT_SECONDS_MAX);
    loop {
        let list: TimeflowList = stage.engine.ask(["timeflow", "show", "prod"])?;
        let points = list.timeflows.into_iter().flat_map(|one| one.recovery_points);
        let newest = points.filter_map(|one| one.lsn).next_back();
        let newest = newest.unwrap_or_else(|| "0/0".to_owned());
        if source.number(&format!("SELECT ('{newest}'::pg_lsn > '{begin}')::int"))? == 1 {
            return Ok(());
        }
        ensure!(SystemClock.elapsed() < deadline, "the engine makes no recovery point");
        SystemClock.sleep(Duration::from_millis(200));
    }
}

/// Loads the source for a while.
fn load(stage: &Stage, arguments: &Arguments, time: Duration, record: &mut Record) -> Result<()> {
    let running = arguments.load.start(&stage.source, time, arguments.setting.seed)?;
    SystemClock.sleep(time);
    running.end(record)
}

/// Megabytes of log that a clone for the latest moment replays in a second, from the start of its server on; and until the
/// copy is the VDB's own.
fn replay_in_clone(stage: &Stage) -> Result<(f64, f64)> {
    let vdb = stage.provision("clone", "prod", &[])?;
    stage.engine.command(["vdb", "delete", "clone"])?;
    let ProvisionTimings { log_bytes, replay_ms, recover_ms, .. } = vdb.timings;
    ensure!(replay_ms > 0, "nothing was replayed");
    let log_mb = megabytes(log_bytes);
    eprintln!(
        "  a clone replays {log_mb:.0} MB in {replay_ms} ms, and is a VDB's own after {recover_ms} ms"
    );
    Ok((log_mb / (replay_ms as f64 / 1e3), log_mb / (recover_ms as f64 / 1e3)))
}
