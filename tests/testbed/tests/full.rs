//! A pool that runs full: by its own VDBs up to the reserve, and by others to the last byte of its file
//! system, in each phase of each workflow. What may be refused is refused and says how to fix it, nothing
//! acknowledged is lost, and everything continues once there is room.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{JobList, PoolStatus, Snapshot, Status};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;
use offshoot_testbed::{SmallDisk, Testbed, wait_until, with_log};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// How long a workflow is left with a full file system.
const REFUSED_AFTER: Duration = Duration::from_secs(20);
const MIB: u64 = 1 << 20;

/// A table of rows that do not compress well, 1 MiB for each 128 of them.
const TABLE: &str = "CREATE TABLE own (n serial, filler text);
                     ALTER TABLE own ALTER filler SET STORAGE EXTERNAL";

/// Adds rows until the database refuses; returns how many were acknowledged, and the refusal.
fn insert_until_refused(db: &Database, batches_max: u32) -> Result<(i64, Option<String>)> {
    let mut rows = 0;
    for _ in 0..batches_max {
        let insert = "INSERT INTO own (filler)
            SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 128 * 256) n GROUP BY n % 128";
        match db.execute(insert) {
            Ok(()) => rows += 128,
            Err(error) => return Ok((rows, Some(format!("{error:#}")))),
        }
    }
    Ok((rows, None))
}

fn own(db: &Database) -> Result<i64> {
    db.number("SELECT count(*) FROM own WHERE length(filler) = 8192")
}

fn started_at(db: &Database) -> Result<String> {
    db.text("SELECT pg_postmaster_start_time()")
}

/// The fault of a full pool, if there is one.
fn room_fault(bed: &Testbed) -> Result<Option<String>> {
    let status: Status = bed.engine.ask(["status"])?;
    let fault = status.faults.into_iter().find(|fault| fault.object == "pool");
    Ok(fault.map(|fault| format!("{}: {}", fault.message, fault.hint)))
}

/// Commits on the source and waits until the engine has it.
fn sync_goes_on(bed: &Testbed, note: &str) -> Result<()> {
    let source = bed.source.connect("postgres")?;
    source.execute(&format!("INSERT INTO notes VALUES ('{note}')"))?;
    let end = source.text("SELECT pg_current_wal_flush_lsn()")?;
    wait_until(&format!("the log is received: {note}"), LIMIT, || {
        let synced = bed.dsource("prod")?.synced_to.context("a position")?;
        Ok(source.text(&format!("SELECT '{}'::pg_lsn >= '{end}'", synced.lsn))? == "t")
    })
}

fn refused_for_room(bed: &Testbed, arguments: &[&str]) {
    let error = bed.refused(arguments);
    assert_eq!(error.code, "pool_full", "{arguments:?}: {error}");
    assert!(error.hint.contains("delete"), "{arguments:?}: {error}");
}

fn wait_well(bed: &Testbed) -> Result<()> {
    wait_until("no fault is left", LIMIT, || {
        let status: Status = bed.engine.ask(["status"])?;
        ensure!(status.faults.is_empty(), "{:?}", status.faults);
        Ok(true)
    })
}

/// A linked source with a table `notes`, and a VDB `base` with a table of its own.
fn linked(disk: &SmallDisk) -> Result<Testbed> {
    let bed = Testbed::on(&disk.root())?;
    bed.source.connect("postgres")?.execute("CREATE TABLE notes (note text)")?;
    let prepared = bed.link("prod").and_then(|_| {
        bed.provision("base", "prod", &[])?;
        let base = bed.open("base")?;
        base.execute(TABLE)?;
        base.execute("CREATE TABLE counter AS SELECT 0 AS n")
    });
    with_log(&bed.engine, prepared)?;
    Ok(bed)
}

mod needs_loop_devices {
    use super::*;

    #[test]
    #[ignore = "needs root and loop devices"]
    fn vdbs_that_fill_the_pool_are_refused_survive_and_go_on_after_a_deletion() {
        let disk = SmallDisk::new(1 << 30).unwrap();
        let bed = linked(&disk).unwrap();
        with_log(&bed.engine, fill_by_vdbs(&bed, &disk)).unwrap();
    }

    #[test]
    #[ignore = "needs root and loop devices"]
    fn a_file_system_that_others_fill_to_the_last_byte_is_survived() {
        let disk = SmallDisk::new(1 << 30).unwrap();
        let mut bed = linked(&disk).unwrap();
        let filled = fill_by_others(&mut bed, &disk);
        with_log(&bed.engine, filled).unwrap();
    }
}

fn fill_by_vdbs(bed: &Testbed, disk: &SmallDisk) -> Result<()> {
    bed.provision("hog", "prod", &[])?;
    let (base, hog) = (bed.open("base")?, bed.open("hog")?);
    hog.execute(TABLE)?;
    let (mut kept, refusal) = insert_until_refused(&base, 4)?;
    ensure!(refusal.is_none(), "{refusal:?}");
    let snapshot = bed.snapshot("base")?;
    let started = [started_at(&base)?, started_at(&hog)?];
    disk.fill(60 * MIB)?;
    let (acknowledged, refusal) = insert_until_refused(&hog, 400)?;
    let refusal = refusal.context("the pool never fills")?;
    ensure!(refusal.contains("No space left on device"), "{refusal}");
    // No server ended, nothing is lost, and the rest of the reserve is for those who need it.
    ensure!(own(&hog)? == acknowledged, "{} rows of {acknowledged}", own(&hog)?);
    let (more, refusal) = insert_until_refused(&base, 20)?;
    kept += more;
    ensure!(refusal.is_some(), "it is full for all");
    for _ in 0..20 {
        base.execute("UPDATE counter SET n = n + 1")?;
    }
    ensure!(own(&base)? == kept, "{} rows of {kept}", own(&base)?);
    let fault = room_fault(bed)?.context("a fault")?;
    ensure!(fault.contains("offshoot vdb delete"), "{fault}");
    let pool: PoolStatus = bed.pool()?;
    ensure!(pool.free_bytes < 16 * MIB, "{pool:?}");
    sync_goes_on(bed, "while the pool is full")?;
    for arguments in [
        &["snapshot", "take", "base"][..],
        &["snapshot", "take", "prod"],
        &["dsource", "sync", "prod"],
        &["vdb", "provision", "more", "--from", "prod"],
        &["vdb", "refresh", "base"],
        &["vdb", "rewind", "base", "--snapshot", &snapshot.id.to_string()],
    ] {
        refused_for_room(bed, arguments);
    }
    ensure!(started == [started_at(&base)?, started_at(&hog)?], "a server was restarted");
    bed.engine.command(["vdb", "delete", "hog"])?;
    wait_until("there is room to grow", LIMIT, || Ok(bed.pool()?.free_bytes > 8 * MIB))?;
    let (more, refusal) = insert_until_refused(&base, 2)?;
    ensure!(refusal.is_none(), "{refusal:?}");
    ensure!(own(&base)? == kept + more, "{} rows of {}", own(&base)?, kept + more);
    ensure!(started[0] == started_at(&base)?, "it was restarted");
    disk.empty()?;
    wait_well(bed)?;
    bed.snapshot("base")?;
    let later = bed.provision("later", "prod", &[])?;
    let notes = Database::connect(&later.uri)?.number("SELECT count(*) FROM notes")?;
    ensure!(notes == 1, "{notes} notes");
    quota_holds(bed, &Database::connect(&later.uri)?)
}

/// A VDB `later` with a quota is refused, alone, and continues without it.
fn quota_holds(bed: &Testbed, later: &Database) -> Result<()> {
    later.execute(TABLE)?;
    bed.engine.command(["policy", "set", "later", "--quota", "16MiB"])?;
    // It counts what is stored: zeros that a server writes first, and rows that it still has in memory, are nothing yet.
    let (rows, refusal) = insert_until_refused(later, 400)?;
    let refusal = refusal.context("its quota does not hold")?;
    ensure!(refusal.contains("Disk quota exceeded"), "{refusal}");
    ensure!(own(later)? == rows, "{} rows of {rows}", own(later)?);
    bed.snapshot("base")?;
    bed.engine.command(["policy", "set", "later", "--quota", "none"])?;
    let (_, refusal) = insert_until_refused(later, 2)?;
    ensure!(refusal.is_none(), "{refusal:?}");
    wait_well(bed)
}

/// A VDB's commits: each is acknowledged, and none may be lost.
struct Commits {
    acknowledged: i64,
}

impl Commits {
    fn go_on(&mut self, bed: &Testbed) -> Result<()> {
        let base = bed.open("base")?;
        for _ in 0..10 {
            base.execute(&format!("INSERT INTO acknowledged VALUES ({})", self.acknowledged + 1))?;
            self.acknowledged += 1;
        }
        self.check(bed)
    }

    fn check(&self, bed: &Testbed) -> Result<()> {
        let found = bed.open("base")?.number("SELECT count(*) FROM acknowledged WHERE n > 0")?;
        ensure!(found == self.acknowledged, "{found} of {} rows", self.acknowledged);
        Ok(())
    }
}

/// Room as it was before others took it: their file is gone, and the pool holds its ballast again.
fn give_room_back(bed: &Testbed, disk: &SmallDisk) -> Result<()> {
    disk.empty()?;
    wait_well(bed)?;
    let ballast = disk.root().join("pool/ballast");
    wait_until("the ballast is held again", LIMIT, || {
        Ok(std::fs::metadata(&ballast).is_ok_and(|file| file.blocks() * 512 >= 64 * MIB))
    })
}

fn fill_by_others(bed: &mut Testbed, disk: &SmallDisk) -> Result<()> {
    // The row before makes the page for all that follow.
    bed.open("base")?.execute("CREATE TABLE acknowledged AS SELECT 0 AS n")?;
    let mut commits = Commits { acknowledged: 0 };
    let snapshot = bed.snapshot("base")?;
    bed.wait_ready(&snapshot)?;
    let id = snapshot.id.to_string();
    let started = started_at(&bed.open("base")?)?;
    disk.fill(0)?;
    for (phase, arguments) in [
        ("link", &["dsource", "link", "more", "--source", "postgresql://u@127.0.0.1:1/d"][..]),
        ("snapshot", &["snapshot", "take", "base"]),
        ("sync", &["dsource", "sync", "prod"]),
        ("provision", &["vdb", "provision", "more", "--from", "prod"]),
        ("refresh", &["vdb", "refresh", "base"]),
        ("rewind", &["vdb", "rewind", "base", "--snapshot", &id]),
    ] {
        refused_for_room(bed, arguments);
        commits.go_on(bed).context(phase)?;
        sync_goes_on(bed, phase).context(phase)?;
    }
    ensure!(room_fault(bed)?.is_some(), "a fault");
    ensure!(started == started_at(&bed.open("base")?)?, "it was restarted");
    give_room_back(bed, disk)?;
    filled_in_the_middle(bed, disk)?;
    deletes_work(bed, disk, &snapshot)?;
    commits.check(bed)?;
    // Stopped, started, and killed on a full file system.
    disk.fill(0)?;
    ensure!(bed.engine.stop()? == 0, "it did not stop cleanly");
    bed.engine.restart()?;
    commits.go_on(bed).context("after a restart")?;
    bed.engine.kill()?;
    bed.engine.restart()?;
    wait_until("the VDB answers", LIMIT, || Ok(bed.open("base").is_ok()))?;
    commits.go_on(bed).context("after a kill")?;
    give_room_back(bed, disk)?;
    sync_goes_on(bed, "last")?;
    commits.go_on(bed)
}

/// The running jobs, with the step each is at.
fn running_jobs(bed: &Testbed) -> Result<Vec<String>> {
    let list: JobList = bed.engine.ask(["job", "list"])?;
    let mut running = list.jobs;
    running.retain(|job| !job.state.is_final());
    Ok(running.iter().map(|job| format!("{job:?}")).collect())
}

/// The file system is filled while each workflow is running, at one moment, or with
/// `OFFSHOOT_TEST_FULL=all` at many: it is done or undone, and possible once there is room.
fn filled_in_the_middle(bed: &Testbed, disk: &SmallDisk) -> Result<()> {
    let all = std::env::var("OFFSHOOT_TEST_FULL").is_ok_and(|text| text == "all");
    let delays_ms: &[u64] = if all { &[0, 30, 100, 200, 400, 800, 1600] } else { &[200] };
    let uri = bed.source.link_uri();
    bed.provision("other", "prod", &[])?;
    let snapshot = bed.snapshot("other")?.id.to_string();
    let commands: [&[&str]; 5] = [
        &["dsource", "link", "second", "--source", &uri],
        &["vdb", "provision", "more", "--from", "prod"],
        &["vdb", "refresh", "other"],
        &["snapshot", "take", "prod"],
        &["vdb", "rewind", "other", "--snapshot", &snapshot],
    ];
    for (command, delay_ms) in
        commands.iter().flat_map(|command| delays_ms.iter().map(move |delay| (command, *delay)))
    {
        let what = format!("{command:?} filled after {delay_ms} ms");
        let run = || {
            let password = [("PGPASSWORD", bed.source.link_password())];
            bed.engine.command_within(*command, &password, 2 * LIMIT)
        };
        let (ran, room) = std::thread::scope(|scope| {
            let running = scope.spawn(run);
            SystemClock.sleep(Duration::from_millis(delay_ms));
            let filled = disk.fill(0);
            // What waits longer, a server that stops for example, must continue with room.
            let ends = || Ok(running.is_finished());
            if wait_until("it ends", REFUSED_AFTER, ends).is_err() {
                println!("{what}: it waits: {:?}", running_jobs(bed));
            }
            let room = filled.and_then(|()| give_room_back(bed, disk));
            (running.join(), room)
        });
        room.context(what.clone())?;
        let ran = ran.map_err(|_| anyhow::anyhow!("{what}: the command panicked"))?;
        println!("{what}: {}", ran.as_ref().map_or_else(ToString::to_string, |_| "done".into()));
        if ran.is_err() {
            run().with_context(|| format!("{what}, and again with room"))?;
        }
        match command[2] {
            "second" => drop(bed.engine.command(["dsource", "unlink", "second"])?),
            "more" => drop(bed.engine.command(["vdb", "delete", "more"])?),
            _ => {}
        }
    }
    bed.engine.command(["vdb", "delete", "other"])?;
    Ok(())
}

/// On a file system without a free byte, what is deleted is deleted, and gives room back.
fn deletes_work(bed: &Testbed, disk: &SmallDisk, snapshot: &Snapshot) -> Result<()> {
    bed.provision("hog", "prod", &[])?;
    let before = bed.pool()?.live_bytes;
    let hog = bed.open("hog")?;
    hog.execute(TABLE)?;
    let (_, refusal) = insert_until_refused(&hog, 20)?;
    ensure!(refusal.is_none(), "{refusal:?}");
    drop(hog);
    // What only the log holds takes no room that a deletion could free.
    wait_until("it is in segments", LIMIT, || Ok(bed.pool()?.live_bytes > before + 8 * MIB))?;
    disk.fill(0)?;
    bed.engine.command(["vdb", "delete", "hog"])?;
    bed.engine.command(["snapshot", "delete", &snapshot.id.to_string()])?;
    wait_until("the deletion gives room back", LIMIT, || Ok(bed.pool()?.free_bytes > 4 * MIB))?;
    give_room_back(bed, disk)
}
