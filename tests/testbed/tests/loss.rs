//! Acknowledged writes are lost, as the intent log that held them was damaged: who lost something is refused
//! and says so, all others go on, and whatever settles it does.

use anyhow::{Context, Result, ensure};
use offshoot_api::{DsourceState, Fault, Status, Vdb, VdbList, VdbState};
use offshoot_catalog::Catalog;
use offshoot_demo::{Database, SourceOptions, Writer, find_newest};
use offshoot_domain as domain;
use offshoot_testbed::{PATIENCE, Testbed, check_pages, check_refusal, damage_record, with_log};
use offshoot_types::ErrorKind;
use std::collections::BTreeMap;
use std::time::Duration;

/// VDBs that lose something, by what settles that.
const LOSERS: [&str; 4] = ["started", "refreshed", "rewound", "deleted"];
/// Records of a VDB behind the damaged one; most are acknowledged commits.
const BEHIND: usize = 8;
/// How often it is tried to damage what is not in a commit yet: there is one every few seconds.
const ROUNDS: u32 = 6;

fn testbed() -> Testbed {
    let options = SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] };
    Testbed::with(options).unwrap()
}

fn catalog(bed: &Testbed) -> Result<Catalog> {
    Ok(Catalog::open(&bed.engine.pool().join("catalog.db"))?)
}

fn faults(bed: &Testbed, object: &str) -> Result<Vec<Fault>> {
    let status: Status = bed.engine.ask(["status"])?;
    Ok(status.faults.into_iter().filter(|fault| fault.object == object).collect())
}

fn ticks(db: &Database) -> Result<i64> {
    let rows = db.rows("SELECT max(value), count(*), (SELECT value FROM tick_now) FROM ticks")?;
    let row = rows.first().context("one row")?;
    ensure!(row[0] == row[1] && row[0] == row[2], "torn: {row:?}");
    Ok(row[0].parse()?)
}

/// A snapshot of a VDB, and how many rows it has.
struct Kept {
    id: String,
    rows: i64,
}

/// What a VDB had when it was last well.
struct Before {
    snapshot: Kept,
    acknowledged: i64,
}

/// Has all of [`LOSERS`] lose acknowledged commits.
fn lose(bed: &mut Testbed) -> Result<BTreeMap<&'static str, Before>> {
    let mut before = BTreeMap::new();
    for name in LOSERS {
        let db = bed.open(name)?;
        db.execute("INSERT INTO ticks VALUES (1); UPDATE tick_now SET value = 1")?;
        let id = bed.snapshot(name)?.id.to_string();
        before.insert(name, Before { snapshot: Kept { id, rows: 1 }, acknowledged: 1 });
        db.execute(Writer::EMPTY)?;
    }
    for _ in 0..ROUNDS {
        let mut writers = Vec::new();
        for name in LOSERS {
            if bed.vdb(name)?.state == VdbState::Running {
                bed.open(name)?.execute(Writer::EMPTY)?;
                writers.push((name, Writer::start(bed.vdb(name)?.uri, Duration::ZERO)));
            }
        }
        if writers.is_empty() {
            return Ok(before);
        }
        for (name, writer) in &writers {
            ensure!(writer.wait_for(40, PATIENCE), "{name} takes no writes");
        }
        bed.kill_all()?;
        for (name, writer) in writers {
            before.get_mut(name).context("known")?.acknowledged = writer.stop().last_value();
            let vdb: Option<domain::Vdb> = catalog(bed)?.find_named(name)?;
            let dataset = vdb.and_then(|vdb| vdb.dataset).context("a dataset")?;
            damage_record(bed.engine.pool(), dataset, BEHIND)?;
        }
        bed.engine.restart()?;
    }
    anyhow::bail!("what was damaged was always in commits")
}

/// What status, list and show say of a VDB that lost something, and what is refused.
fn is_refused(bed: &Testbed, name: &str) -> Result<()> {
    let said = format!("'{name}' lacks acknowledged writes");
    let start = format!("offshoot vdb start {name}");
    let told = faults(bed, name)?;
    ensure!(told.len() == 1, "{told:?}");
    ensure!(told[0].message.contains(&said) && told[0].hint.contains(&start), "{told:?}");
    let list: VdbList = bed.engine.ask(["vdb", "list"])?;
    let listed = list.vdbs.into_iter().find(|vdb| vdb.name == name).context("listed")?;
    for vdb in [listed, bed.vdb(name)?] {
        let error = vdb.error.as_ref().with_context(|| format!("no error: {vdb:?}"))?;
        ensure!(vdb.state == VdbState::Failed && error.code == ErrorKind::DataDamaged, "{vdb:?}");
        ensure!(error.message.contains(&said) && error.hint.contains(&start), "{error:?}");
    }
    for arguments in [
        &["snapshot", "take", name][..],
        &["bookmark", "create", "mark", "--on", name],
        &["vdb", "provision", "branch", "--from", name],
        &["vdb", "stop", name],
    ] {
        let refused = check_refusal(bed.engine.command(arguments));
        ensure!(refused.code == "data_damaged", "{refused}");
        ensure!(refused.message.contains(&said) && refused.hint.contains(&start), "{refused}");
    }
    Ok(())
}

fn others_go_on(bed: &Testbed) -> Result<()> {
    ensure!(ticks(&bed.open("other")?)? == 3, "who lost nothing has everything");
    ensure!(bed.dsource("prod")?.state == DsourceState::Active, "{:?}", bed.dsource("prod")?);
    ensure!(faults(bed, "prod")?.is_empty() && faults(bed, "other")?.is_empty());
    let pool = faults(bed, "pool")?;
    ensure!(pool.iter().any(|fault| fault.message.contains("of the intent log")), "{pool:?}");
    Ok(())
}

fn runs(bed: &Testbed, vdb: &Vdb) -> Result<Database> {
    ensure!(vdb.state == VdbState::Running && vdb.error.is_none(), "{vdb:?}");
    ensure!(faults(bed, &vdb.name)?.is_empty(), "{:?}", faults(bed, &vdb.name)?);
    Database::connect(&vdb.uri)
}

/// The state before what was lost is whole and can be written to.
fn has_older_state(bed: &Testbed, vdb: &Vdb, before: &Before) -> Result<()> {
    let db = runs(bed, vdb)?;
    let held = ticks(&db)?;
    ensure!(held < before.acknowledged, "{held} of {} are there", before.acknowledged);
    check_pages(bed, &vdb.uri)?;
    db.execute(&format!(
        "INSERT INTO ticks VALUES ({0}); UPDATE tick_now SET value = {0}",
        held + 1
    ))
}

fn settle(bed: &Testbed, before: &BTreeMap<&str, Before>) -> Result<()> {
    let vdb: Vdb = bed.engine.ask(["vdb", "start", "started"])?;
    has_older_state(bed, &vdb, &before["started"])?;

    // A snapshot of before is as it was, also for others.
    let Kept { id, rows } = &before["rewound"].snapshot;
    let branch = bed.provision("branch", "rewound", &["--snapshot", id])?;
    ensure!(ticks(&runs(bed, &branch)?)? == *rows, "the branch has the snapshot's rows");
    let vdb: Vdb = bed.engine.ask(["vdb", "rewind", "rewound", "--snapshot", id])?;
    ensure!(ticks(&runs(bed, &vdb)?)? == *rows, "it is where the snapshot was");

    let vdb: Vdb = bed.engine.ask(["vdb", "refresh", "refreshed"])?;
    ensure!(runs(bed, &vdb)?.number("SELECT count(*) FROM ticks")? == 0, "as its parent is");
    let vdb: Vdb = bed.engine.ask(["vdb", "rewind", "refreshed", "--undo"])?;
    has_older_state(bed, &vdb, &before["refreshed"])?;

    bed.engine.command(["vdb", "delete", "deleted"])?;
    bed.engine.command(["pool", "scrub"])?;
    let status: Status = bed.engine.ask(["status"])?;
    ensure!(status.faults.is_empty(), "{:?}", status.faults);
    Ok(())
}

#[test]
fn vdbs_that_lost_commits_are_refused_until_somebody_decides() {
    let mut bed = testbed();
    let course = |bed: &mut Testbed| -> Result<()> {
        bed.link("prod")?;
        for name in LOSERS.iter().chain(&["other"]) {
            bed.provision(name, "prod", &[])?;
        }
        bed.open("other")?.execute(
            "INSERT INTO ticks SELECT generate_series(1, 3); UPDATE tick_now SET value = 3",
        )?;
        let before = lose(bed)?;
        for name in LOSERS {
            is_refused(bed, name)?;
        }
        others_go_on(bed)?;
        // Another engine does not accept it either, and knows what it is about.
        bed.kill_all()?;
        bed.engine.restart()?;
        is_refused(bed, "started")?;
        settle(bed, &before)
    };
    let result = course(&mut bed);
    with_log(&bed.engine, result).unwrap();
}
