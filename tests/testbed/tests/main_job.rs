//! The main job, on every major version at hand: link, open moments, branch, rewind, refresh, stop,
//! delete, unlink, until the pool is as empty as it was.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use offshoot_api::{VdbList, VdbState};
use offshoot_rig::{Database, SourceOptions, Writer, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, in_database, other_server, wait_until, with_log};
use std::path::PathBuf;
use std::time::Duration;

#[test]
fn main_job_on_the_distributions_server() {
    main_job(find_newest().unwrap()).unwrap();
}

mod needs_postgres_16 {
    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL 16 in OFFSHOOT_TEST_PG_BINS"]
    fn main_job_on_16() {
        main_job(other_server(16)).unwrap();
    }
}

mod needs_postgres_18 {
    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL 18 in OFFSHOOT_TEST_PG_BINS"]
    fn main_job_on_18() {
        main_job(other_server(18)).unwrap();
    }
}

fn main_job(bin_dir: PathBuf) -> Result<()> {
    let bed = Testbed::with(SourceOptions { bin_dir, scale: 2, settings: vec![] })?;
    prepare_source(&bed)?;
    let dsource = bed.link("prod")?;
    ensure!(dsource.synced_to.is_some(), "a linked dSource is synced to something: {dsource:?}");
    ensure!(!dsource.snapshots.is_empty(), "a link ends in a snapshot");
    ensure!(dsource.logical_bytes > dsource.stored_bytes, "{dsource:?}");
    ensure!(bed.source_slots()? == 1, "exactly one stream from the source");
    let writer = bed.source.start_writes(Duration::from_millis(20));
    ensure!(writer.wait_for(30, PATIENCE), "the source takes writes");

    with_log(&bed.engine, use_vdbs(&bed, &writer))?;
    let bed = restart(bed)?;
    with_log(&bed.engine, survives_the_engine(&bed, writer))
}

fn use_vdbs(bed: &Testbed, writer: &Writer) -> Result<()> {
    opens_moments(bed, writer)?;
    is_cut_off(bed)?;
    branches_rewinds_and_refreshes(bed, writer)?;
    stops_and_starts(bed)
}

/// Roles, a tablespace, a second database and a subscription: all that a VDB must keep or cut.
fn prepare_source(bed: &Testbed) -> Result<()> {
    let db = bed.source.connect("postgres")?;
    let space = bed.source.make_directory("space")?;
    db.execute("CREATE ROLE app LOGIN PASSWORD 'app'")?;
    db.execute("CREATE ROLE readers; GRANT readers TO app")?;
    db.execute(&format!("CREATE TABLESPACE space LOCATION '{}'", space.display()))?;
    db.execute("CREATE TABLE in_space (n int) TABLESPACE space")?;
    db.execute("INSERT INTO in_space SELECT generate_series(1, 1000)")?;
    db.execute("CREATE DATABASE second")?;
    bed.source.connect("second")?.execute("CREATE TABLE here AS SELECT 42 AS n")?;
    db.execute(
        "CREATE SUBSCRIPTION outward CONNECTION 'host=127.0.0.1 port=1 dbname=postgres' \
         PUBLICATION p WITH (connect = false)",
    )?;
    db.execute("ALTER SUBSCRIPTION outward ENABLE")
}

fn value(database: &Database) -> Result<i64> {
    let rows = database.rows(
        "SELECT coalesce(max(value), 0), count(*), (SELECT value FROM tick_now) FROM ticks",
    )?;
    ensure!(rows[0][0] == rows[0][1] && rows[0][0] == rows[0][2], "torn: {rows:?}");
    Ok(rows[0][0].parse()?)
}

fn opens_moments(bed: &Testbed, writer: &Writer) -> Result<()> {
    let before = writer.history().last_value();
    let latest = bed.provision("latest", "prod", &["--latest"])?;
    ensure!(latest.state == VdbState::Running, "{latest:?}");
    ensure!(latest.timings.total_ms > 0, "{latest:?}");
    let held = value(&Database::connect(&latest.uri)?)?;
    // The log may have been received a little further than the time it is known to be complete to.
    let time = latest.moment.time.context("the latest moment has a time")?;
    if let Some(expected) = writer.history().value_at(time) {
        ensure!(held >= expected, "{expected} at {time}, held {held}");
    }
    println!("latest holds {held}, asked at {before}");

    // A time: the state of that very moment, and the same state when asked again.
    ensure!(writer.wait_for(before + 60, PATIENCE), "the source takes writes");
    let history = writer.history();
    let (moment, expected): (Timestamp, i64) = (before + 20..before + 50)
        .find_map(|value| Some((history.moment_of(value)?, value)))
        .context("a moment between two writes")?;
    for name in ["at_one", "at_two"] {
        let vdb = bed.provision(name, "prod", &["--at", &moment.to_string()])?;
        let held = value(&Database::connect(&vdb.uri)?)?;
        ensure!(held == expected, "{name} holds {held}, not {expected}, at {moment}");
    }

    // A position: everything up to it and nothing after.
    let source = bed.source.connect("postgres")?;
    source.execute("CREATE TABLE marks (n int); INSERT INTO marks VALUES (1)")?;
    let lsn = source.text("SELECT pg_current_wal_flush_lsn()")?;
    source.execute("INSERT INTO marks VALUES (2)")?;
    bed.provision("at_lsn", "prod", &["--lsn", &lsn])?;
    let marks = bed.open("at_lsn")?.text("SELECT string_agg(n::text, ',') FROM marks")?;
    ensure!(marks == "1", "at {lsn} the marks are {marks}");

    // A snapshot.
    let snapshot = bed.snapshot("prod")?;
    source.execute("INSERT INTO marks VALUES (3)")?;
    bed.wait_ready(&snapshot)?;
    let vdb = bed.provision("at_snapshot", "prod", &["--snapshot", &snapshot.id.to_string()])?;
    ensure!(vdb.moment.snapshot == Some(snapshot.id), "{vdb:?}");
    let marks = bed.open("at_snapshot")?.text("SELECT string_agg(n::text, ',') FROM marks")?;
    ensure!(marks == "1,2", "in the snapshot the marks are {marks}");
    for name in ["at_one", "at_two", "at_lsn", "at_snapshot"] {
        bed.engine.command(["vdb", "delete", name])?;
    }
    Ok(())
}

/// What a VDB inherits, and what it must not: a VDB never talks to production.
fn is_cut_off(bed: &Testbed) -> Result<()> {
    let vdb = bed.vdb("latest")?;
    let db = bed.open("latest")?;
    ensure!(db.number("SELECT count(*) FROM in_space")? == 1000, "the tablespace came along");
    let member = "SELECT pg_has_role('app', 'readers', 'member')";
    ensure!(db.text(member)? == "t", "roles and memberships are kept");
    let logins =
        "SELECT count(*) FROM pg_roles WHERE rolcanlogin AND rolname IN ('app', 'offshoot_link')";
    ensure!(db.number(logins)? == 0, "the source's logins are off");
    let other = in_database(&vdb.uri, "second");
    ensure!(Database::connect(&other)?.number("SELECT n FROM here")? == 42, "every database came");
    ensure!(
        db.number("SELECT count(*) FROM pg_subscription WHERE subenabled")? == 0,
        "subscriptions"
    );
    ensure!(db.number("SELECT count(*) FROM pg_replication_slots")? == 0, "slots");
    ensure!(db.text("SHOW primary_conninfo")?.is_empty(), "no connection to the primary");
    ensure!(db.text("SELECT pg_is_in_recovery()")? == "f", "it is writable");
    ensure!(db.text("SHOW full_page_writes")? == "off", "pages are atomic without");
    let uid = std::fs::metadata(format!("/proc/{}", server_pid(&db)?))?;
    use std::os::unix::fs::MetadataExt;
    ensure!(uid.uid() != 0, "PostgreSQL never runs as root");
    // The tablespace is in the VDB, not where the source keeps its own.
    let location =
        db.text("SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = 'space'")?;
    let source_side = bed.source.data_dir();
    let source_side = source_side.parent().context("a parent")?.display().to_string();
    ensure!(!location.starts_with(&source_side), "the tablespace is at {location}");
    Ok(())
}

fn server_pid(db: &Database) -> Result<i64> {
    db.number("SELECT pg_backend_pid()")
}

fn branches_rewinds_and_refreshes(bed: &Testbed, writer: &Writer) -> Result<()> {
    let latest = bed.vdb("latest")?;
    let db = bed.open("latest")?;
    db.execute("CREATE TABLE kept AS SELECT 1 AS n")?;
    let snapshot = bed.snapshot("latest")?;
    let branch = bed.provision("branch", "latest", &[])?;
    ensure!(branch.parent == "latest", "{branch:?}");
    let branch_db = Database::connect(&branch.uri)?;
    ensure!(branch_db.number("SELECT n FROM kept")? == 1, "the branch has the parent's changes");
    branch_db.execute("UPDATE kept SET n = 2")?;
    ensure!(db.number("SELECT n FROM kept")? == 1, "the parent does not see the branch's");

    // Rewind to a snapshot of its own, and back.
    db.execute("UPDATE kept SET n = 3")?;
    drop(db);
    let id = snapshot.id.to_string();
    bed.engine.command(["vdb", "rewind", "latest", "--snapshot", &id])?;
    let rewound = bed.vdb("latest")?;
    ensure!(rewound.uri == latest.uri, "name, port and credentials stay");
    ensure!(bed.open("latest")?.number("SELECT n FROM kept")? == 1, "rewound");
    bed.engine.command(["vdb", "rewind", "latest", "--undo"])?;
    ensure!(bed.open("latest")?.number("SELECT n FROM kept")? == 3, "the rewind is undone");

    // Refresh: the source's latest under the same name.
    let before = writer.history().last_value();
    ensure!(writer.wait_for(before + 5, PATIENCE), "the source takes writes");
    bed.engine.command(["dsource", "sync", "prod"])?;
    bed.engine.command(["vdb", "refresh", "latest"])?;
    ensure!(bed.vdb("latest")?.uri == latest.uri, "name, port and credentials stay");
    let db = bed.open("latest")?;
    ensure!(db.text("SELECT to_regclass('kept') IS NULL")? == "t", "own changes are gone");
    let held = value(&db)?;
    ensure!(held >= before, "refreshed to {held}, synced when it was {before}");
    drop(db);
    bed.engine.command(["vdb", "rewind", "latest", "--undo"])?;
    ensure!(bed.open("latest")?.number("SELECT n FROM kept")? == 3, "the refresh is undone");
    ensure!(branch_db.number("SELECT n FROM kept")? == 2, "the branch saw nothing of it");
    Ok(())
}

fn stops_and_starts(bed: &Testbed) -> Result<()> {
    let uri = bed.vdb("branch")?.uri;
    bed.engine.command(["vdb", "stop", "branch"])?;
    ensure!(bed.vdb("branch")?.state == VdbState::Stopped, "stopped");
    ensure!(Database::connect(&uri).is_err(), "a stopped VDB takes no connections");
    bed.engine.command(["vdb", "start", "branch"])?;
    ensure!(bed.vdb("branch")?.uri == uri, "the same address");
    ensure!(bed.open("branch")?.number("SELECT n FROM kept")? == 2, "with its data");
    Ok(())
}

/// Stops the engine as SIGTERM does and starts it again.
fn restart(mut bed: Testbed) -> Result<Testbed> {
    let code = bed.engine.stop()?;
    ensure!(code == 0, "the engine ended with {code}");
    ensure!(bed.scratch.mounts().is_empty(), "left mounted: {:?}", bed.scratch.mounts());
    ensure!(bed.servers().is_empty(), "left running: {:?}", bed.servers());
    bed.engine.restart()?;
    Ok(bed)
}

fn survives_the_engine(bed: &Testbed, writer: Writer) -> Result<()> {
    wait_until("the VDBs run again", PATIENCE, || {
        let list: VdbList = bed.engine.ask(["vdb", "list"])?;
        Ok(list.vdbs.len() == 2 && list.vdbs.iter().all(|vdb| vdb.state == VdbState::Running))
    })?;
    ensure!(bed.open("branch")?.number("SELECT n FROM kept")? == 2, "data is there");
    let before = writer.history().last_value();
    ensure!(writer.wait_for(before + 5, PATIENCE), "the source takes writes");
    let after = writer.history().ticks().last().map(|tick| tick.after);
    wait_until("the dSource follows again", PATIENCE, || {
        Ok(bed.dsource("prod")?.synced_to.and_then(|to| to.time) >= after)
    })?;
    writer.stop();

    // Delete in an awkward order: the parent first.
    bed.engine.command(["vdb", "delete", "latest"])?;
    ensure!(bed.open("branch")?.number("SELECT n FROM kept")? == 2, "the branch needs no parent");
    bed.engine.command(["dsource", "unlink", "prod"])?;
    ensure!(bed.source_slots()? == 0, "the slot is gone");
    ensure!(bed.open("branch")?.number("SELECT n FROM kept")? == 2, "nor a dSource");
    bed.engine.command(["vdb", "delete", "branch"])?;
    bed.assert_no_trace()?;
    wait_until("the pool is near empty again", PATIENCE, || {
        // Reclaim is also done in the background; on request it is done immediately.
        bed.engine.command(["pool", "reclaim"])?;
        let taken = bed.taken_bytes()?;
        ensure!(
            taken < bed.empty_bytes + (16 << 20),
            "the pool takes {taken} bytes, {} when it was empty",
            bed.empty_bytes
        );
        Ok(true)
    })
}
