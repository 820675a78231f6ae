//! Any moment opens from a recovery point near it, however long ago the source made its last checkpoint.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{JobList, JobState};
use offshoot_catalog::Subject;
use offshoot_domain::{Dsource, Snapshot, SnapshotKind};
use offshoot_os::process::{Signal, Sink};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, flip, wait_until, with_log};
use offshoot_types::LogPosition;
use std::collections::HashSet;
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
    let taken = bed.snapshot("prod").unwrap();
    let ready = bed.wait_ready(&taken);
    with_log(&bed.engine, ready).unwrap();
    let counted = count_points(&mut bed, false);
    with_log(&bed.engine, counted).unwrap();
    let (replayed, since_link) = replayed_before(&bed, &taken).unwrap();
    assert!(replayed < since_link / 2, "{replayed} bytes of {since_link}");
    let (points, copies) = copies_of_points(&bed).unwrap();
    assert!(copies < points, "{points} points were made in {copies} copies");
}

/// How many points were made, and in how many copies: a round goes on in that of the last one.
fn copies_of_points(bed: &Testbed) -> Result<(usize, usize)> {
    let jobs = bed.catalog()?.jobs(1000)?;
    let made = jobs.iter().filter(|job| job.bag.get("point").is_some_and(|one| one.is_object()));
    let copies: Vec<String> = made.map(|job| job.bag["dataset"].to_string()).collect();
    Ok((copies.len(), copies.iter().collect::<HashSet<_>>().len()))
}

/// How much log was replayed to make a snapshot ready, and how much is between the link's and it; the engine has been
/// stopped.
fn replayed_before(bed: &Testbed, snapshot: &offshoot_api::Snapshot) -> Result<(u64, u64)> {
    let catalog = bed.catalog()?;
    let jobs = catalog.jobs(1000)?;
    let job = jobs.iter().find(|job| job.object == Subject::Snapshot(snapshot.id));
    let resolved = job.and_then(|job| job.bag.get("resolved")).context("the job that did it")?;
    let from: LogPosition = serde_json::from_value(resolved["replay_from"].clone())?;
    let all = catalog.all::<Snapshot>()?;
    let link = all.iter().find(|one| one.kind == SnapshotKind::Link).context("the link's")?;
    let at = catalog.get::<Snapshot>(snapshot.id)?.position.log;
    Ok((at.bytes_since(from), at.bytes_since(link.replay_from)))
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

/// The next engine finishes the job before it follows anything.
#[test]
fn a_point_is_published_by_the_engine_after_the_one_that_made_it() {
    let mut bed = Testbed::start().unwrap();
    bed.link("prod").unwrap();
    let published = killed_before_publishing(&mut bed);
    with_log(&bed.engine, published).unwrap();
}

fn killed_before_publishing(bed: &mut Testbed) -> Result<()> {
    bed.engine.options.env =
        vec![("OFFSHOOT_CRASH_AT".into(), "snapshot_point/publish:before".into())];
    bed.engine.kill_and_restart()?;
    bed.engine.command(["policy", "set", "prod", "--open-within", "1s"])?;
    let source = bed.source.connect("postgres")?;
    wait_until("the engine comes there", PATIENCE, || {
        source.execute("SELECT pg_logical_emit_message(false, 'test', repeat('x', 3000000))")?;
        Ok(bed.engine.wait_end(Duration::from_millis(100)))
    })?;
    bed.engine.options.env.clear();
    bed.engine.restart()?;
    ensure!(points(bed, JobState::Done)? == 1, "the point is lost");
    ensure!(!faults(bed).contains("could not be finished"), "{}", faults(bed));
    bed.provision("copy", "prod", &["--latest"]).map(drop)
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
    jobs_in(bed, "snapshot_point", state)
}

/// How many that take other snapshots are.
fn snapshots_in(bed: &Testbed, state: JobState) -> Result<usize> {
    jobs_in(bed, "snapshot_take", state)
}

fn jobs_in(bed: &Testbed, kind: &str, state: JobState) -> Result<usize> {
    let jobs: JobList = bed.engine.ask(["job", "list"])?;
    let counts = |job: &&offshoot_api::Job| job.kind == kind && job.state == state;
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
/// before the table, one after the change, and some bytes of its first page.
fn only_in_a_point(bed: &Testbed) -> Result<(String, String, Vec<u8>)> {
    let source = bed.source.connect("postgres")?;
    let position = || source.text("SELECT pg_current_wal_insert_lsn()");
    create_payload(&source)?;
    let before = position()?;
    fill_payload(&source)?;
    wait_for_point(bed, &source)?;
    source.execute("UPDATE payload SET n = 0 WHERE n = 1")?;
    let after = position()?;
    Ok((before, after, bytes_of_payload(&source)?))
}

fn create_payload(source: &Database) -> Result<()> {
    source.execute("CREATE TABLE payload (n int, data bytea)")?;
    source.execute("ALTER TABLE payload ALTER data SET STORAGE plain")
}

fn fill_payload(source: &Database) -> Result<()> {
    source.execute(
        "INSERT INTO payload SELECT n, (SELECT decode(string_agg(md5(n || '-' || i), ''), 'hex') \
         FROM generate_series(1, 240) i) FROM generate_series(1, 20) n",
    )
}

/// Writes log until another point is made.
fn wait_for_point(bed: &Testbed, source: &Database) -> Result<()> {
    let before = points(bed, JobState::Done)?;
    wait_until("a recovery point", PATIENCE, || {
        source.execute("SELECT pg_logical_emit_message(false, 'test', repeat('x', 3000000))")?;
        Ok(points(bed, JobState::Done)? > before)
    })
}

/// Some bytes of its first page that are nowhere in the log: where one row ends and another begins.
fn bytes_of_payload(source: &Database) -> Result<Vec<u8>> {
    source.execute("CHECKPOINT")?;
    let file = "pg_read_binary_file(pg_relation_filepath('payload'), 0, 8192)";
    let page = source.text(&format!("SELECT encode({file}, 'hex')"))?;
    let byte = |at: usize| u8::from_str_radix(&page[2 * at..2 * at + 2], 16);
    // Rows are stored from the end of a page on; each begins with the transaction that made it.
    let row = usize::from(u16::from_le_bytes([byte(24)?, byte(25)?]) & 0x7FFF);
    Ok((row - 16..row + 4).map(byte).collect::<std::result::Result<_, _>>()?)
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

/// A table that is dropped after a point is damaged there alone. Its page is changed in between, so that whoever replays
/// from the point has to read it; a snapshot after the drop does not show it.
fn a_snapshot_after_a_damaged_point(bed: &mut Testbed) -> Result<offshoot_api::Snapshot> {
    bed.link("prod")?;
    bed.engine.command(["policy", "set", "prod", "--snapshot-every", "1d"])?;
    let source = bed.source.connect("postgres")?;
    create_payload(&source)?;
    fill_payload(&source)?;
    let bytes = bytes_of_payload(&source)?;
    wait_for_point(bed, &source)?;
    source.execute("UPDATE payload SET n = 0 WHERE n = 1")?;
    source.execute("DROP TABLE payload")?;
    bed.engine.stop()?;
    let flipped = flip(&bed.engine.pool().join("segments"), &bytes)?;
    ensure!(flipped > 0, "the page is stored as it is");
    bed.engine.restart()?;
    let taken = bed.snapshot("prod")?;
    bed.wait_ready(&taken)?;
    ensure!(faults(bed).contains("damaged"), "the point was not tried");
    bed.provision("later", "prod", &["--snapshot", &taken.id.to_string()])?;
    ensure!(bed.open("later")?.text("SELECT to_regclass('payload') IS NULL")? == "t");
    // The next point does not go on from there, either.
    wait_for_point(bed, &source)?;
    bed.provision("latest", "prod", &["--latest"])?;
    ensure!(bed.open("latest")?.text("SELECT to_regclass('payload') IS NULL")? == "t");
    bed.engine.stop()?;
    Ok(taken)
}

#[test]
fn a_snapshot_is_made_ready_from_an_earlier_image_where_the_nearest_is_damaged() {
    // A page that is written as a whole would be read by nobody.
    let mut options = SourceOptions { scale: 0, ..options() };
    options.settings.push(("full_page_writes".to_owned(), "off".to_owned()));
    let mut bed = Testbed::with(options).unwrap();
    let taken = a_snapshot_after_a_damaged_point(&mut bed);
    let taken = with_log(&bed.engine, taken).unwrap();
    let (replayed, since_link) = replayed_before(&bed, &taken).unwrap();
    assert_eq!(replayed, since_link);
}

/// The faults of the engine, as users see them.
fn faults(bed: &Testbed) -> String {
    bed.engine.command(["status"]).unwrap()["faults"].to_string()
}

#[test]
fn snapshots_and_points_wait_for_no_standby() {
    let mut bed = Testbed::start().unwrap();
    bed.link("prod").unwrap();
    // It replays nothing from here on.
    bed.replaying("prod").unwrap().signal(Signal::Stop).unwrap();
    let made = without_a_standby(&mut bed);
    with_log(&bed.engine, made).unwrap();
}

fn without_a_standby(bed: &mut Testbed) -> Result<()> {
    bed.engine.command(["policy", "set", "prod", "--snapshot-every", "2s"])?;
    let source = bed.source.connect("postgres")?;
    source.execute("CREATE TABLE later (n int)")?;
    wait_until("a snapshot by policy", PATIENCE, || Ok(snapshots_in(bed, JobState::Done)? > 0))?;
    wait_for_point(bed, &source)?;
    // Nor does it run any more.
    wait_until("it rests", PATIENCE, || Ok(bed.replaying("prod").is_err()))?;
    source.execute("INSERT INTO later VALUES (1)")?;
    let taken = bed.snapshot("prod")?;
    bed.wait_ready(&taken)?;
    bed.provision("copy", "prod", &["--snapshot", &taken.id.to_string()])?;
    ensure!(bed.open("copy")?.number("SELECT n FROM later")? == 1);
    // The next engine leaves it at rest.
    bed.engine.kill_and_restart()?;
    wait_for_point(bed, &source)?;
    ensure!(bed.replaying("prod").is_err(), "the standby was started again");
    Ok(())
}

/// A source that was promoted writes another timeline, on which no round goes on: a standby does, from the last point.
#[test]
fn staging_wakes_where_no_point_can_be_made() {
    let mut bed = Testbed::start().unwrap();
    bed.link("prod").unwrap();
    let opened = after_a_promotion(&mut bed);
    with_log(&bed.engine, opened).unwrap();
}

fn after_a_promotion(bed: &mut Testbed) -> Result<()> {
    bed.engine.command([
        "policy",
        "set",
        "prod",
        "--snapshot-every",
        "1d",
        "--open-within",
        "1s",
    ])?;
    let source = bed.source.connect("postgres")?;
    source.execute("CREATE TABLE later (n int)")?;
    wait_for_point(bed, &source)?;
    wait_until("it rests", PATIENCE, || Ok(bed.replaying("prod").is_err()))?;
    source.execute("INSERT INTO later VALUES (1)")?;
    drop(source);
    bed.source.stop_server()?;
    std::fs::write(bed.source.data_dir().join("standby.signal"), "")?;
    bed.source.start_server()?;
    let source = bed.source.connect("postgres")?;
    source.execute("SELECT pg_promote(true, 60)")?;
    source.execute("INSERT INTO later VALUES (2)")?;
    wait_until("a standby goes on", PATIENCE, || {
        wait_for_point(bed, &source)?;
        Ok(bed.replaying("prod").is_ok())
    })?;
    bed.engine.kill_and_restart()?;
    source.execute("INSERT INTO later VALUES (3)")?;
    bed.provision("copy", "prod", &["--latest"])?;
    ensure!(bed.open("copy")?.number("SELECT count(*) FROM later")? == 3);
    // Where it has a restart point on the new timeline, points are made of it again.
    wait_until("it rests again", PATIENCE, || {
        source.execute("CHECKPOINT")?;
        wait_for_point(bed, &source)?;
        Ok(bed.replaying("prod").is_err())
    })?;
    bed.provision("later", "prod", &["--latest"])?;
    ensure!(bed.open("later")?.number("SELECT count(*) FROM later")? == 3);
    Ok(())
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
