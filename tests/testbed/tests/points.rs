//! Any moment opens from a recovery point near it, however long ago the source made its last checkpoint.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{JobList, JobState};
use offshoot_domain::{Dsource, Snapshot, SnapshotKind};
use offshoot_os::process::Sink;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, flip, wait_until, with_log};
use std::time::Duration;

/// Marks at least: some before the first point, some between points.
const MARKS_MIN: usize = 20;

/// How far before itself a point's replay begins, at most: a record, and the checkpoint before it.
const BEFORE_POINT_MAX: u64 = 1 << 20;

/// The source's settings: no checkpoint while the test runs.
fn options() -> SourceOptions {
    let settings = [("checkpoint_timeout", "1h"), ("max_wal_size", "16GB")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    SourceOptions { bin_dir: find_newest().unwrap(), scale: 20, settings }
}

#[test]
fn moments_open_from_points_that_the_source_did_not_make() {
    let mut bed = Testbed::with(options()).unwrap();
    let opened = open_moments(&mut bed, 0);
    with_log(&bed.engine, opened).unwrap();
    let counted = count_points(&mut bed, false);
    with_log(&bed.engine, counted).unwrap();
}

#[test]
fn an_engine_that_is_killed_while_it_makes_points_makes_others() {
    let mut bed = Testbed::with(options()).unwrap();
    let opened = open_moments(&mut bed, 3);
    with_log(&bed.engine, opened).unwrap();
    let counted = count_points(&mut bed, true);
    with_log(&bed.engine, counted).unwrap();
    bed.engine.restart().unwrap();
    // That a host which is busy with other tests misses the promise is a fault, and right.
    bed.engine.command(["policy", "set", "prod", "--open-within", "1min"]).unwrap();
    wait_until("no fault", PATIENCE, || Ok(!faults(&bed).contains("opens in about"))).unwrap();
    let checked = bed.check_pool();
    with_log(&bed.engine, checked).unwrap();
    bed.engine.command(["dsource", "unlink", "prod"]).unwrap();
    bed.assert_no_trace().unwrap();
}

/// Longest load: how fast the source writes depends on the machine.
const LOAD_MAX: Duration = Duration::from_secs(240);

/// Marks, and the position after each of them, while the source works at full speed and until enough points were
/// made; the engine is killed so many times while one is made.
fn marks_under_load(bed: &mut Testbed, mut kills: u32) -> Result<Vec<String>> {
    let source = bed.source.connect("postgres")?;
    source.execute("CREATE TABLE marks (n int)")?;
    let least = least(kills > 0);
    let time = format!("--time={}", LOAD_MAX.as_secs());
    let load = ["--client=4", "--jobs=2", &time, "--no-vacuum"];
    let mut load = bed.source.pgbench(&load).stdout(Sink::Null).stderr(Sink::Null).spawn()?;
    let mut marks = Vec::new();
    while marks.len() < MARKS_MIN || kills > 0 || points(bed, JobState::Done)? < least {
        ensure!(load.try_wait()?.is_none(), "{kills} kills left after {} marks", marks.len());
        source.execute(&format!("INSERT INTO marks VALUES ({})", marks.len() + 1))?;
        marks.push(source.text("SELECT pg_current_wal_insert_lsn()")?);
        SystemClock.sleep(Duration::from_millis(500));
        if kills > 0 && points(bed, JobState::Running)? > 0 {
            // Anywhere in the round.
            SystemClock.sleep(Duration::from_millis(u64::from(kills) * 150));
            kills -= 1;
            bed.engine.kill_and_restart()?;
        }
    }
    load.kill_group();
    Ok(marks)
}

/// How many points there are at least.
fn least(killed: bool) -> usize {
    if killed { 1 } else { 3 }
}

/// How many jobs that make points are in a state.
fn points(bed: &Testbed, state: JobState) -> Result<usize> {
    let jobs: JobList = bed.engine.ask(["job", "list"])?;
    let counts = |job: &&offshoot_api::Job| job.kind == "snapshot_point" && job.state == state;
    Ok(jobs.jobs.iter().filter(counts).count())
}

fn open_moments(bed: &mut Testbed, kills: u32) -> Result<()> {
    bed.link("prod")?;
    // Points for shorter openings come sooner.
    let policy = ["policy", "set", "prod", "--snapshot-every", "1d", "--open-within", "1s"];
    bed.engine.command(policy)?;
    let marks = marks_under_load(bed, kills)?;
    for number in [marks.len() / 2, marks.len() * 3 / 4, marks.len()] {
        let began = SystemClock.elapsed();
        bed.provision("copy", "prod", &["--lsn", &marks[number - 1]])?;
        println!("mark {number} opened in {:?}", SystemClock.elapsed() - began);
        let copy = bed.open("copy")?;
        ensure!(copy.number("SELECT max(n) FROM marks")? == i64::try_from(number)?);
        let sums = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = sum(delta) \
             AND (SELECT sum(tbalance) FROM pgbench_tellers) = sum(delta) \
             AND (SELECT sum(bbalance) FROM pgbench_branches) = sum(delta) FROM pgbench_history";
        ensure!(copy.text(sums)? == "t", "not one moment of pgbench");
        bed.engine.command(["vdb", "delete", "copy"])?;
    }
    Ok(())
}

/// Points, not snapshots of staging: replay from those would begin where the source's checkpoint is.
fn count_points(bed: &mut Testbed, killed: bool) -> Result<()> {
    bed.engine.stop()?;
    let catalog = bed.catalog()?;
    let prod: Dsource = catalog.find_named("prod")?.context("a dSource")?;
    let snapshots: Vec<Snapshot> = catalog.list_of(prod.id)?;
    let of_kind = snapshots.iter().filter(|one| one.kind == SnapshotKind::RecoveryPoint);
    let before: Vec<u64> =
        of_kind.map(|one| one.position.log.bytes_since(one.replay_from)).collect();
    let near = before.iter().filter(|bytes| **bytes < BEFORE_POINT_MAX).count();
    // A round that was cut off is not repeated: a snapshot of staging is taken instead.
    ensure!(near >= least(killed) && (killed || near == before.len()), "{before:?}");
    Ok(())
}

/// Makes a table that no snapshot but a recovery point has, and changes its first row after that. Returns a position
/// before the table, one after the change, and some bytes of its first page that are nowhere in the log: where one row
/// ends and another begins.
fn only_in_a_point(bed: &Testbed) -> Result<(String, String, Vec<u8>)> {
    let source = bed.source.connect("postgres")?;
    let position = || source.text("SELECT pg_current_wal_insert_lsn()");
    source.execute("CREATE TABLE payload (n int, data bytea)")?;
    source.execute("ALTER TABLE payload ALTER data SET STORAGE plain")?;
    let before = position()?;
    source.execute(
        "INSERT INTO payload SELECT n, (SELECT decode(string_agg(md5(n || '-' || i), ''), 'hex') \
         FROM generate_series(1, 240) i) FROM generate_series(1, 20) n",
    )?;
    wait_until("a recovery point", PATIENCE, || {
        source.execute("SELECT pg_logical_emit_message(false, 'test', repeat('x', 3000000))")?;
        Ok(points(bed, JobState::Done)? > 0)
    })?;
    source.execute("UPDATE payload SET n = 0 WHERE n = 1")?;
    let after = position()?;
    source.execute("CHECKPOINT")?;
    let file = "pg_read_binary_file(pg_relation_filepath('payload'), 0, 8192)";
    let page = source.text(&format!("SELECT encode({file}, 'hex')"))?;
    let byte = |at: usize| u8::from_str_radix(&page[2 * at..2 * at + 2], 16);
    // Rows are stored from the end of a page on; each begins with the transaction that made it.
    let row = usize::from(u16::from_le_bytes([byte(24)?, byte(25)?]) & 0x7FFF);
    let bytes = (row - 16..row + 4).map(byte).collect::<std::result::Result<_, _>>()?;
    Ok((before, after, bytes))
}

fn open_from_a_damaged_point(bed: &mut Testbed) -> Result<()> {
    bed.link("prod")?;
    bed.engine.command(["policy", "set", "prod", "--snapshot-every", "1d"])?;
    let (before, after, bytes) = only_in_a_point(bed)?;
    bed.provision("sound", "prod", &["--lsn", &after])?;
    let rows = "SELECT count(*) FROM payload WHERE n >= 0 AND length(data) = 3840";
    ensure!(bed.open("sound")?.number(rows)? == 20);
    bed.engine.command(["vdb", "delete", "sound"])?;
    // A block in memory is right whatever the disk says.
    bed.engine.stop()?;
    let flipped = flip(&bed.engine.pool().join("segments"), &bytes)?;
    ensure!(flipped > 0, "the page is stored as it is");
    bed.engine.restart()?;
    let refusal = bed.refused(&["vdb", "provision", "damaged", "--from", "prod", "--lsn", &after]);
    println!("refused: {refusal}");
    ensure!(bed.engine.command(["vdb", "show", "damaged"]).is_err(), "nothing of it stays");
    wait_until("a fault", PATIENCE, || Ok(faults(bed).contains("damaged")))?;
    bed.provision("early", "prod", &["--lsn", &before])?;
    ensure!(bed.open("early")?.number("SELECT count(*) FROM payload")? == 0);
    Ok(())
}

#[test]
fn a_flipped_bit_in_a_point_is_found_when_a_moment_is_opened_from_it() {
    let mut bed = Testbed::with(SourceOptions { scale: 0, ..options() }).unwrap();
    let opened = open_from_a_damaged_point(&mut bed);
    with_log(&bed.engine, opened).unwrap();
}

/// The faults of the engine, as users see them.
fn faults(bed: &Testbed) -> String {
    bed.engine.command(["status"]).unwrap()["faults"].to_string()
}

#[test]
fn a_promise_that_is_missed_is_a_fault_until_it_is_kept() {
    let bed = Testbed::start().unwrap();
    bed.link("prod").unwrap();
    let set = |within: &str| bed.engine.command(["policy", "set", "prod", "--open-within", within]);
    assert_eq!(set("10ms").unwrap_err().code, "invalid_input");
    assert_eq!(set("1s").unwrap()["open_within_ms"], 1000);
    // Less than lies between two points at least, but too much for a second.
    let source = bed.source.connect("postgres").unwrap();
    source.execute("SELECT pg_logical_emit_message(false, 'test', repeat('x', 7900000))").unwrap();
    wait_until("a fault", PATIENCE, || Ok(faults(&bed).contains("opens in about"))).unwrap();
    let range = bed.engine.command(["timeflow", "show", "prod"]).unwrap();
    let range = &range["timeflows"][0]["ranges"][0];
    let [typical, longest] = ["typical_open_ms", "longest_open_ms"].map(|it| range[it].as_u64());
    assert!(typical.unwrap() > 500 && longest.unwrap() > 1000, "{range}");
    assert!(typical <= longest, "{range}");
    set("10s").unwrap();
    wait_until("no fault", PATIENCE, || Ok(!faults(&bed).contains("opens in about"))).unwrap();
    bed.engine.command(["dsource", "unlink", "prod"]).unwrap();
    bed.assert_no_trace().unwrap();
}
