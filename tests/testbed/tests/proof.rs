//! A snapshot is ready once it is checked. What an earlier check has seen is not checked again, and
//! damage in new data is found.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{Snapshot, SnapshotState, Status};
use offshoot_rig::{SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, wait_until, with_log};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const PAGE: u64 = 8192;

/// The bytes that each check so far has read, in order.
fn checked(bed: &Testbed) -> Result<Vec<u64>> {
    let log = std::fs::read_to_string(bed.engine.log())?;
    let lines = log.lines().filter(|line| line.contains("checked what no earlier check has seen"));
    let bytes = |line: &str| line.split_once("bytes=")?.1.split(' ').next()?.parse().ok();
    lines.map(|line| bytes(line).context("a check says how much it read")).collect()
}

/// Takes a snapshot; how many bytes its check read.
fn take(bed: &Testbed, object: &str) -> Result<u64> {
    let before = checked(bed)?.len();
    bed.wait_ready(&bed.snapshot(object)?)?;
    let all = checked(bed)?;
    ensure!(all.len() == before + 1, "one check more than {before}: {all:?}");
    all.last().copied().context("a check")
}

/// Two tables: one of 16 MB that stays, and one that changes, in a tablespace.
fn fill(bed: &Testbed) -> Result<()> {
    let source = bed.source.connect("postgres")?;
    let space = bed.source.make_directory("space")?;
    source.execute(&format!("CREATE TABLESPACE space LOCATION '{}'", space.display()))?;
    source.execute("CREATE TABLE stays AS SELECT i, repeat(md5(i::text), 30) t FROM generate_series(1, 16000) i")?;
    source.execute("CREATE INDEX stays_i ON stays (i)")?;
    source.execute(
        "CREATE TABLE moves (i int PRIMARY KEY, t text) WITH (fillfactor = 50) TABLESPACE space",
    )?;
    source.execute(
        "INSERT INTO moves SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 8000) i",
    )?;
    source.execute("VACUUM ANALYZE")
}

fn only_what_changed_is_checked(bed: &Testbed) -> Result<()> {
    let first = take(bed, "prod")?;
    let all = *checked(bed)?.first().context("the check of the link")?;
    ensure!(all > 24 << 20, "{all} bytes of all");
    ensure!(first < all / 4, "{first} bytes of {all} after nothing but VACUUM's leftovers");
    let source = bed.source.connect("postgres")?;
    source.execute("UPDATE moves SET t = t || '!' WHERE i IN (17, 4000, 7999)")?;
    let few = take(bed, "prod")?;
    // Three pages, with those around them, the index, and what catalogs and visibility need.
    ensure!((3 * PAGE..4 << 20).contains(&few), "{few} bytes of {all} for three rows");
    Ok(())
}

fn table_file(bed: &Testbed, vdb: &str, table: &str) -> Result<PathBuf> {
    let path = bed.open(vdb)?.text(&format!("SELECT pg_relation_filepath('{table}')"))?;
    let mounted = bed.scratch.mounts().into_iter().map(|mount| mount.join("data").join(&path));
    mounted.into_iter().find(|path| path.exists()).context("the table's file")
}

/// What has become of the check of a new snapshot.
fn checked_snapshot(bed: &Testbed, object: &str) -> Result<Snapshot> {
    let id = bed.snapshot(object)?.id.to_string();
    let shown = || -> Result<Snapshot> { bed.engine.ask(["snapshot", "show", &id]) };
    wait_until("the check ends", PATIENCE, || Ok(shown()?.state != SnapshotState::Pending))?;
    shown()
}

/// Damages a page of a new table of so many rows.
fn damage_is_found(bed: &Testbed, rows: u32, page: u64, said: &str) -> Result<()> {
    let dev = bed.open("dev")?;
    dev.execute(&format!(
        "CREATE TABLE fresh AS SELECT i, repeat('x', 500) t FROM generate_series(1, {rows}) i"
    ))?;
    dev.execute("CHECKPOINT")?;
    let file = std::fs::File::options().write(true).open(table_file(bed, "dev", "fresh")?)?;
    // Within a text: only the checksum shows it.
    file.write_all_at(b"not what PostgreSQL wrote", page * PAGE + 4000)?;
    file.sync_all()?;
    let failed = checked_snapshot(bed, "dev")?;
    ensure!(failed.state == SnapshotState::Failed, "{failed:?}");
    let error = failed.error.unwrap_or_default();
    ensure!(error.contains(said), "{error}");
    let (status, id): (Status, _) = (bed.engine.ask(["status"])?, failed.id.to_string());
    ensure!(status.faults.iter().any(|fault| fault.object == id), "{:?}", status.faults);
    bed.refused(&["vdb", "provision", "no", "--from", "dev", "--snapshot", &id]);
    // The next one is compared with the last that passed, not with this one.
    dev.execute("INSERT INTO fresh SELECT 1, 'more'")?;
    let next = checked_snapshot(bed, "dev")?;
    ensure!(next.state == SnapshotState::Failed, "the damage is still there: {next:?}");
    dev.execute("DROP TABLE fresh; CHECKPOINT")?;
    take(bed, "dev").map(drop)
}

fn damage_in_what_is_new_is_found(bed: &Testbed) -> Result<()> {
    bed.provision("dev", "prod", &[])?;
    let few = take(bed, "dev")?;
    ensure!(few < 4 << 20, "{few} bytes: a VDB's first snapshot begins with its parent's");
    // A small file is checked before a server is started, a large one by the server.
    damage_is_found(bed, 500, 3, "page 3: wrong checksum")?;
    damage_is_found(bed, 24_000, 1000, "invalid page in block 1000")
}

#[test]
fn a_check_reads_what_is_new_and_finds_its_damage() {
    let options = SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] };
    let bed = Testbed::with(options).unwrap();
    let course = || -> Result<()> {
        fill(&bed)?;
        bed.link("prod")?;
        wait_until("the link's snapshot is checked", PATIENCE, || Ok(!checked(&bed)?.is_empty()))?;
        only_what_changed_is_checked(&bed)?;
        damage_in_what_is_new_is_found(&bed)
    };
    let result = course();
    with_log(&bed.engine, result).unwrap();
}
