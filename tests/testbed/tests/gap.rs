//! A dSource whose slot was lost: its log cannot continue, and a sync copies the source again.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{Dsource, DsourceState, Job, JobList, Snapshot, Status, TimeflowList, VdbState};
use offshoot_os::unused_port;
use offshoot_rig::{Database, SourceOptions, find_newest};
use offshoot_testbed::{
    Outcome, PATIENCE, Testbed, check_refusal, final_job, wait_until, with_log,
};

/// A linked dSource `prod` with a ready snapshot of one row, whose slot was lost while it was paused.
struct Gap {
    bed: Testbed,
    old: Snapshot,
}

fn gap() -> Result<Gap> {
    let settings = [("max_slot_wal_keep_size", "64MB"), ("wal_keep_size", "0")];
    let settings = settings.map(|(key, value)| (key.into(), value.into())).to_vec();
    let bed = Testbed::with(SourceOptions { bin_dir: find_newest()?, scale: 0, settings })?;
    let source = bed.source.connect("postgres")?;
    source.execute("CREATE TABLE rows AS SELECT 1 AS n")?;
    bed.link("prod")?;
    let old = bed.snapshot("prod")?;
    bed.wait_ready(&old)?;
    // A port that no engine of another test takes while this one is down.
    let port = unused_port().context("a port")?.to_string();
    bed.provision("kept", "prod", &["--latest", "--port", &port])?;
    bed.engine.command(["dsource", "pause", "prod"])?;
    source.execute("INSERT INTO rows VALUES (2)")?;
    wait_until("the slot is lost", PATIENCE, || {
        source.execute(
            "CREATE TABLE filler AS SELECT repeat('x', 500) FROM generate_series(1, 4000)",
        )?;
        source.execute("DROP TABLE filler")?;
        source.execute("SELECT pg_switch_wal()")?;
        source.execute("CHECKPOINT")?;
        Ok(source.number("SELECT count(*) FROM pg_replication_slots WHERE wal_status = 'lost'")?
            == 1)
    })?;
    bed.engine.command(["dsource", "resume", "prod"])?;
    Ok(Gap { bed, old })
}

fn wait_broken(bed: &Testbed) -> Result<Dsource> {
    wait_until("the gap is noticed", PATIENCE, || {
        let status: Status = bed.engine.ask(["status"])?;
        let said = status.faults.iter().find(|fault| fault.object == "prod");
        let failed = bed.dsource("prod")?.state == DsourceState::Failed;
        Ok(failed && said.is_some_and(|fault| fault.hint.contains("offshoot dsource sync")))
    })?;
    bed.dsource("prod")
}

fn rows(uri: &str) -> Result<i64> {
    Database::connect(uri)?.number("SELECT count(*) FROM rows")
}

fn opens_with(bed: &Testbed, moment: &[&str], expected: i64) -> Result<()> {
    let vdb = bed.provision("proof", "prod", moment)?;
    let found = rows(&vdb.uri)?;
    ensure!(found == expected, "{moment:?} has {found} rows, not {expected}");
    bed.engine.command(["vdb", "delete", "proof"])?;
    Ok(())
}

/// All that must hold after a sync has fixed the gap.
fn is_mended(bed: &Testbed, old: &Snapshot) -> Result<()> {
    let prod = bed.dsource("prod")?;
    ensure!(prod.state == DsourceState::Active && prod.error.is_none(), "{prod:?}");
    ensure!(prod.snapshots.len() >= 2, "old and new snapshots: {:?}", prod.snapshots);
    wait_until("no fault is left", PATIENCE, || {
        let status: Status = bed.engine.ask(["status"])?;
        ensure!(status.faults.is_empty(), "{:?}", status.faults);
        Ok(true)
    })?;
    let old = old.id.to_string();
    opens_with(bed, &["--latest"], 2)?;
    opens_with(bed, &["--snapshot", &old], 1)?;

    // The log continues, and new snapshots are proved.
    let source = bed.source.connect("postgres")?;
    source.execute("INSERT INTO rows VALUES (3)")?;
    opens_with(bed, &["--latest"], 3)?;
    let lsn = source.text("SELECT pg_current_wal_flush_lsn()")?;
    source.execute("INSERT INTO rows VALUES (4)")?;
    opens_with(bed, &["--lsn", &lsn], 3)?;
    let new = bed.snapshot("prod")?;
    bed.wait_ready(&new)?;
    opens_with(bed, &["--snapshot", &new.id.to_string()], 4)?;
    ensure!(bed.source_slots()? == 1, "the lost slot is gone, one stream runs");

    keeps_the_time_before(bed, &old)
}

/// Moments before the gap open as they did, those in the gap do not, and all is told.
fn keeps_the_time_before(bed: &Testbed, old: &str) -> Result<()> {
    opens_with(bed, &["--at", &old_time(bed, old)?], 1)?;
    let history: TimeflowList = bed.engine.ask(["timeflow", "show", "prod"])?;
    let before = history.timeflows.iter().find(|one| !one.current).context("the old timeflow")?;
    let present = history.timeflows.iter().find(|one| one.current).context("the present one")?;
    let last = before.ranges.last().with_context(|| format!("it opens: {history:?}"))?;
    opens_with(bed, &["--at", &last.to.time.to_string()], 1)?;
    opens_with(bed, &["--lsn", &last.to.lsn], 1)?;
    let gap = present.gaps.first().with_context(|| format!("a gap: {history:?}"))?;
    ensure!(gap.from == last.to && gap.to == present.ranges[0].from, "{history:?}");
    let within = gap.from.time + gap.to.time.duration_since(gap.from.time) / 2;
    let at = within.to_string();
    let refused = bed.refused(&["vdb", "provision", "no", "--from", "prod", "--at", &at]);
    ensure!(refused.code == "moment_unavailable" && refused.message.contains("gap"), "{refused}");
    let jobs: JobList = bed.engine.ask(["job", "list"])?;
    let resync = jobs.jobs.iter().find(|job| job.kind == "dsource_resync" && job.error.is_none());
    let resync = resync.context("the job")?;
    ensure!(resync.notes.iter().any(|note| note.contains("has a gap from")), "{resync:?}");
    Ok(())
}

/// Retention takes the time before the gap, with its log.
fn gives_up_the_time_before(bed: &Testbed, old: &Snapshot) -> Result<()> {
    let id = old.id.to_string();
    let at = old_time(bed, &id)?;
    bed.engine.command(["policy", "set", "prod", "--log", "1s"])?;
    wait_until("retention takes the old log", PATIENCE, || {
        let history: TimeflowList = bed.engine.ask(["timeflow", "show", "prod"])?;
        Ok(history.timeflows.iter().all(|one| one.current || one.ranges.is_empty()))
    })?;
    let refused = bed.refused(&["vdb", "provision", "no", "--from", "prod", "--at", &at]);
    ensure!(refused.code == "moment_unavailable", "{refused}");
    opens_with(bed, &["--snapshot", &id], 1)
}

fn old_time(bed: &Testbed, id: &str) -> Result<String> {
    let old: Snapshot = bed.engine.ask(["snapshot", "show", id])?;
    Ok(old.time.to_string())
}

/// The VDB of before the gap follows the new copy, and everything can be removed.
fn takes_leave(bed: &Testbed) -> Result<()> {
    ensure!(bed.vdb("kept")?.state == VdbState::Running, "VDBs never notice");
    ensure!(rows(&bed.vdb("kept")?.uri)? == 1, "VDBs keep what they are");
    bed.engine.command(["vdb", "refresh", "kept"])?;
    ensure!(rows(&bed.vdb("kept")?.uri)? == 4, "a refresh opens the new copy");
    bed.engine.command(["vdb", "delete", "kept"])?;
    bed.engine.command(["dsource", "unlink", "prod"])?;
    bed.assert_no_trace()
}

#[test]
fn a_sync_mends_a_gap() {
    let Gap { mut bed, old } = gap().unwrap();
    let mended = (|| {
        let broken = wait_broken(&bed)?;
        ensure!(broken.error.is_some(), "{broken:?}");
        opens_with(&bed, &["--snapshot", &old.id.to_string()], 1)?;
        bed.engine.command(["dsource", "sync", "prod"])?;
        is_mended(&bed, &old)
    })();
    with_log(&bed.engine, mended).unwrap();
    assert_eq!(bed.engine.stop().unwrap(), 0);
    bed.engine.restart().unwrap();
    let after = opens_with(&bed, &["--latest"], 4)
        .and_then(|()| opens_with(&bed, &["--snapshot", &old.id.to_string()], 1))
        .and_then(|()| keeps_the_time_before(&bed, &old.id.to_string()))
        .and_then(|()| gives_up_the_time_before(&bed, &old))
        .and_then(|()| takes_leave(&bed));
    with_log(&bed.engine, after).unwrap();
}

#[test]
fn a_sync_that_fails_leaves_the_gap_as_it_was() {
    let Gap { mut bed, old } = gap().unwrap();
    with_log(&bed.engine, fails_and_is_undone(&bed, &old)).unwrap();
    for point in ["stage:after", "activate:before"] {
        crash_at(&mut bed, point, Outcome::Undone).unwrap();
        let undone = wait_broken(&bed)
            .and_then(|_| opens_with(&bed, &["--snapshot", &old.id.to_string()], 1));
        with_log(&bed.engine, undone).unwrap();
    }
    // Once the new copy is followed, the job is only ever finished.
    crash_at(&mut bed, "retire:after", Outcome::Done).unwrap();
    let done = is_mended(&bed, &old).and_then(|()| takes_leave(&bed));
    with_log(&bed.engine, done).unwrap();
}

fn fails_and_is_undone(bed: &Testbed, old: &Snapshot) -> Result<()> {
    let before = wait_broken(bed)?;
    let source = bed.source.connect("postgres")?;
    source.execute("ALTER ROLE offshoot_link NOREPLICATION")?;
    let error = check_refusal(bed.engine.command(["dsource", "sync", "prod"]));
    ensure!(error.hint.contains("REPLICATION"), "{error}");
    source.execute("ALTER ROLE offshoot_link REPLICATION")?;
    let after = wait_broken(bed)?;
    let ids = |one: &Dsource| one.snapshots.iter().map(|one| one.id).collect::<Vec<_>>();
    ensure!(ids(&after) == ids(&before), "{after:?}");
    ensure!(bed.source_slots()? == 1, "only the lost slot");
    opens_with(bed, &["--snapshot", &old.id.to_string()], 1)
}

fn crash_at(bed: &mut Testbed, point: &str, expected: Outcome) -> Result<()> {
    bed.engine.stop()?;
    bed.engine.options.env = vec![("OFFSHOOT_CRASH_AT".into(), format!("dsource_resync/{point}"))];
    bed.engine.restart()?;
    wait_broken(bed)?;
    let arguments = ["dsource", "sync", "prod", "--detach"];
    let asked = bed.engine.command_within(arguments, &[], PATIENCE);
    ensure!(bed.engine.wait_end(PATIENCE), "the engine never came to {point}: {asked:?}");
    bed.engine.options.env.clear();
    bed.engine.restart()?;
    let job: (Job, Outcome) = final_job(&bed.engine, "dsource_resync", "prod", PATIENCE)?;
    ensure!(job.1 == expected, "{point}: {:?}", job.0);
    Ok(())
}
