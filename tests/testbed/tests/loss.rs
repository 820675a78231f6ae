//! Acknowledged writes are lost because the intent log that held them was damaged. Objects that lost
//! something are refused and say so, all others continue, and every way to settle it works.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{DsourceState, Fault, JobState, Status, Vdb, VdbList, VdbState};
use offshoot_domain as domain;
use offshoot_postgres::Lsn;
use offshoot_rig::{Database, SourceOptions, Writer, find_newest};
use offshoot_testbed::{
    Outcome, PATIENCE, Testbed, check_pages, check_refusal, damage_record, final_job,
    logged_records, wait_until, with_log,
};
use offshoot_types::{DatasetId, ErrorKind};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

/// VDBs that lose something, by what settles that.
const LOSERS: [&str; 4] = ["started", "refreshed", "rewound", "deleted"];
/// Records of a VDB after the damaged one; most are acknowledged commits.
const BEHIND: usize = 8;
/// How often to try to damage what is not in a commit yet: there is one every few seconds.
const ROUNDS: u32 = 6;

fn testbed() -> Testbed {
    let options = SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] };
    Testbed::with(options).unwrap()
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

/// Makes all of [`LOSERS`] lose acknowledged commits.
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
            let vdb: Option<domain::Vdb> = bed.catalog()?.find_named(name)?;
            let dataset = vdb.and_then(|vdb| vdb.dataset).context("a dataset")?;
            damage_record(bed.engine.pool(), dataset, BEHIND)?;
        }
        bed.engine.restart()?;
    }
    anyhow::bail!("what was damaged was always in commits")
}

/// What status, list and show say about a VDB that lost something, and what is refused.
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
    bed.check_pool()
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

/// The received log of `prod` and its staging.
fn datasets(bed: &Testbed) -> Result<[DatasetId; 2]> {
    let prod: domain::Dsource = bed.catalog()?.find_named("prod")?.context("a dSource")?;
    Ok([prod.log_dataset.context("a log")?, prod.staging_dataset.context("staging")?])
}

/// Damages the log of `prod` while it is written, and staging with it unless it rests: then it is a copy of a recovery point.
/// Returns how many commits the source acknowledged. `end` ends the engine.
fn lose_log(
    bed: &mut Testbed,
    number: u32,
    end: impl FnOnce(&mut Testbed) -> Result<()>,
) -> Result<i64> {
    let source = bed.source.connect("postgres")?;
    source.execute(Writer::EMPTY)?;
    let ids = datasets(bed)?;
    let logged = |bed: &Testbed, id| logged_records(bed.engine.pool(), id);
    let before = [logged(bed, ids[0])?, logged(bed, ids[1])?];
    let writer = bed.source.start_writes(Duration::ZERO);
    // Staging makes little of that durable on its own; this happens immediately, once it has the log: it gets whole files.
    source.execute(&format!("CREATE DATABASE copy{number} STRATEGY file_copy"))?;
    source.execute("SELECT pg_switch_wal()")?;
    let staging_is_written =
        |bed: &Testbed| Ok::<_, anyhow::Error>(logged(bed, ids[1])? > before[1]);
    wait_until("log and staging are written", PATIENCE, || {
        let enough = logged(bed, ids[0])? > before[0] + 2 * BEHIND;
        Ok(enough && (bed.replaying("prod").is_err() || staging_is_written(bed)?))
    })?;
    ensure!(writer.wait_for(40, PATIENCE), "the source takes no writes");
    end(bed)?;
    let acknowledged = writer.stop().last_value();
    damage_record(bed.engine.pool(), ids[0], BEHIND)?;
    if staging_is_written(bed)? {
        damage_record(bed.engine.pool(), ids[1], 0)?;
    }
    bed.engine.restart()?;
    Ok(acknowledged)
}

/// Writes log until a recovery point of it is staging.
fn wait_for_rest(bed: &Testbed) -> Result<()> {
    let source = bed.source.connect("postgres")?;
    wait_until("staging rests", PATIENCE, || {
        source.execute("SELECT pg_logical_emit_message(false, 'test', repeat('x', 3000000))")?;
        Ok(bed.replaying("prod").is_err())
    })
}

/// What the engine says about a dSource whose received log is lost.
const RECEIVED: &str = "'prod' lacks log that was received";

/// How often the engine has said so.
fn said(bed: &Testbed) -> Result<usize> {
    Ok(std::fs::read_to_string(bed.engine.log())?.matches(RECEIVED).count())
}

/// Repeats it until the engine says that received log was lost; if it was not, `undo` undoes what `end` did.
fn lose_log_surely(
    bed: &mut Testbed,
    first: u32,
    end: impl Fn(&mut Testbed) -> Result<()>,
    undo: impl Fn(&mut Testbed) -> Result<()>,
) -> Result<i64> {
    for number in first..first + ROUNDS {
        let told = said(bed)?;
        let acknowledged = lose_log(bed, number, &end)?;
        if said(bed)? > told {
            return Ok(acknowledged);
        }
        undo(bed)?;
        has_all(bed, acknowledged)?;
    }
    anyhow::bail!("what was damaged was always in commits")
}

/// The dSource again has everything of its source and reports nothing more.
fn has_all(bed: &Testbed, acknowledged: i64) -> Result<()> {
    wait_until("no fault is left", PATIENCE, || {
        let left = faults(bed, "prod")?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(bed.dsource("prod")?.state == DsourceState::Active)
    })?;
    let taken = bed.snapshot("prod")?;
    bed.wait_ready(&taken)?;
    for moment in [&["--snapshot", &taken.id.to_string()][..], &["--latest"]] {
        let vdb = bed.provision("proof", "prod", moment)?;
        let held = ticks(&Database::connect(&vdb.uri)?)?;
        ensure!(held == acknowledged, "{moment:?}: {held} of {acknowledged} are there");
        check_pages(bed, &vdb.uri)?;
        bed.engine.command(["vdb", "delete", "proof"])?;
    }
    Ok(())
}

fn synced_to(bed: &Testbed) -> Result<Lsn> {
    Ok(bed.dsource("prod")?.synced_to.context("a position")?.lsn.parse()?)
}

/// What the catalog would say had the dSource been paused just before: it has all up to there.
fn pause_offline(bed: &Testbed) -> Result<Lsn> {
    let source = bed.source.connect("postgres")?;
    let lsn: Lsn = source.text("SELECT pg_current_wal_flush_lsn()")?.parse()?;
    let catalog = bed.catalog()?;
    let prod: domain::Dsource = catalog.find_named("prod")?.context("a dSource")?;
    catalog.update::<domain::Dsource>(prod.id, |prod| {
        prod.state = domain::DsourceState::Paused;
        prod.synced_to = Some(domain::Position { log: lsn.into(), time: jiff::Timestamp::now() });
    })?;
    Ok(lsn)
}

/// A paused dSource is as far as its log goes, not as far as it went, up to `before`.
fn promises_no_more(bed: &Testbed, before: Lsn, acknowledged: i64) -> Result<()> {
    let told = faults(bed, "prod")?;
    let loss = told.iter().find(|fault| fault.message.contains(RECEIVED));
    let loss = loss.with_context(|| format!("not told: {told:?}"))?;
    ensure!(loss.hint.contains("offshoot dsource sync prod"), "{loss:?}");
    let now = synced_to(bed)?;
    ensure!(now < before, "it goes up to {now}, not {before}");
    let lost = before.to_string();
    let refused = bed.refused(&["vdb", "provision", "no", "--from", "prod", "--lsn", &lost]);
    ensure!(refused.code == "moment_unavailable", "{refused}");
    let vdb = bed.provision("early", "prod", &["--latest"])?;
    let held = ticks(&Database::connect(&vdb.uri)?)?;
    ensure!(held < acknowledged, "{held} of {acknowledged} are there");
    bed.engine.command(["vdb", "delete", "early"])?;
    Ok(())
}

/// The source gives up all log that it was not told to keep, and the slot with it.
fn give_up_log(bed: &mut Testbed) -> Result<()> {
    let source = bed.source.connect("postgres")?;
    source.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")?;
    for _ in 0..3 {
        source.execute("CREATE TABLE filler (); DROP TABLE filler")?;
        source.execute("SELECT pg_switch_wal()")?;
        source.execute("CHECKPOINT")?;
    }
    Ok(())
}

#[test]
fn a_dsource_that_lost_log_receives_it_again() {
    let mut bed = testbed();
    let course = |bed: &mut Testbed| -> Result<()> {
        bed.link("prod")?;
        // The source has it still, and nothing else happens there.
        let acknowledged = lose_log_surely(bed, 0, Testbed::kill_all, |_| Ok(()))?;
        has_all(bed, acknowledged)?;

        // It is not asked for it at first. What staging goes on from may be later than what is left of the log.
        wait_for_rest(bed)?;
        let before = Cell::new(Lsn(0));
        let pause = |bed: &mut Testbed| {
            bed.kill_all()?;
            before.set(pause_offline(bed)?);
            Ok(())
        };
        let resume =
            |bed: &mut Testbed| Ok(bed.engine.command(["dsource", "resume", "prod"]).map(drop)?);
        let acknowledged = lose_log_surely(bed, ROUNDS, pause, resume)?;
        promises_no_more(bed, before.get(), acknowledged)?;
        resume(bed)?;
        has_all(bed, acknowledged)?;

        // The source has it no longer.
        let acknowledged = lose_log(bed, 2 * ROUNDS, |bed| {
            bed.kill_all()?;
            give_up_log(bed)
        })?;
        wait_until("the gap is noticed", PATIENCE, || {
            Ok(bed.dsource("prod")?.state == DsourceState::Failed)
        })?;
        let error = bed.dsource("prod")?.error.context("an error")?;
        ensure!(error.hint.contains("offshoot dsource sync"), "{error:?}");
        bed.engine.command(["dsource", "sync", "prod"])?;
        has_all(bed, acknowledged)
    };
    let result = course(&mut bed);
    with_log(&bed.engine, result).unwrap();
}

/// Ends the engine in the middle of a refresh of `dev`, which is written, and damages what it wrote.
fn lose_in_refresh(bed: &mut Testbed) -> Result<i64> {
    let point = "vdb_refresh/close_old:after".to_owned();
    bed.engine.options.env = vec![("OFFSHOOT_CRASH_AT".into(), point)];
    bed.engine.restart()?;
    wait_until("the VDB runs", PATIENCE, || Ok(bed.open("dev").is_ok()))?;
    bed.open("dev")?.execute(Writer::EMPTY)?;
    let writer = Writer::start(bed.vdb("dev")?.uri, Duration::ZERO);
    ensure!(writer.wait_for(40, PATIENCE), "the VDB takes no writes");
    let asked = bed.engine.command(["vdb", "refresh", "dev", "--detach"]);
    ensure!(bed.engine.wait_end(PATIENCE), "the engine never came there: {asked:?}");
    bed.kill_all()?;
    let acknowledged = writer.stop().last_value();
    let vdb: domain::Vdb = bed.catalog()?.find_named("dev")?.context("a VDB")?;
    damage_record(bed.engine.pool(), vdb.dataset.context("a dataset")?, BEHIND)?;
    bed.engine.options.env.clear();
    bed.engine.restart()?;
    Ok(acknowledged)
}

#[test]
fn an_interrupted_refresh_of_what_lost_commits_is_undone() {
    let mut bed = testbed();
    let course = |bed: &mut Testbed| -> Result<()> {
        bed.link("prod")?;
        bed.provision("dev", "prod", &[])?;
        for _ in 0..ROUNDS {
            bed.engine.stop()?;
            let acknowledged = lose_in_refresh(bed)?;
            let (job, outcome) = final_job(&bed.engine, "vdb_refresh", "dev", PATIENCE)?;
            ensure!(outcome == Outcome::Undone && job.state == JobState::Failed, "{job:?}");
            if bed.vdb("dev")?.state == VdbState::Failed {
                is_refused(bed, "dev")?;
                let vdb: Vdb = bed.engine.ask(["vdb", "start", "dev"])?;
                let held = ticks(&runs(bed, &vdb)?)?;
                // Its last records are those of a clean stop.
                ensure!(held <= acknowledged + 1, "{held} of {acknowledged} are there");
                return Ok(());
            }
        }
        anyhow::bail!("what was damaged was always in commits")
    };
    let result = course(&mut bed);
    with_log(&bed.engine, result).unwrap();
}
