//! Damage on the device: found by a scrub that survives the engine, named with the files that hold it,
//! known until it is healed.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{DamagedBlock, Job, JobState, LedgerKind, PoolCheck, ScrubReport, Status};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{Database, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, flip, wait_until, with_log};
use std::time::Duration;

/// A VDB `dev` of `prod`, whose table `payload` has a row a page that does not compress.
struct Made {
    /// Bytes of a page of the table, as the pool stores them.
    bytes: Vec<u8>,
    /// The table's file in a dataset.
    path: String,
    /// What reading that page gives.
    row: String,
}

const ROW: &str = "SELECT md5(data) FROM payload WHERE n = 30";

fn make(bed: &Testbed) -> Result<Made> {
    let source = bed.source.connect("postgres")?;
    source.execute("CREATE TABLE payload (n int, data bytea)")?;
    source.execute("ALTER TABLE payload ALTER data SET STORAGE PLAIN")?;
    source.execute(
        "INSERT INTO payload SELECT n, (SELECT decode(string_agg(md5(n || '-' || i), ''), 'hex')
         FROM generate_series(1, 480) i) FROM generate_series(1, 60) n",
    )?;
    // Nothing changes its pages any more: a later copy brings the same blocks.
    source.execute("VACUUM FREEZE payload")?;
    source.execute("CHECKPOINT")?;
    let hex =
        source.text("SELECT encode(substr(data, 1000, 24), 'hex') FROM payload WHERE n = 30")?;
    let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16);
    let bytes = (0..24).map(byte).collect::<std::result::Result<_, _>>()?;
    let path = format!("data/{}", source.text("SELECT pg_relation_filepath('payload')")?);
    let row = source.text(ROW)?;
    bed.link("prod")?;
    let snapshot = bed.snapshot("prod")?;
    bed.wait_ready(&snapshot)?;
    bed.provision("dev", "prod", &["--snapshot", &snapshot.id.to_string()])?;
    Ok(Made { bytes, path, row })
}

fn last(bed: &Testbed) -> Result<ScrubReport> {
    bed.engine.ask(["pool", "scrub", "--last"])
}

fn done_bytes(bed: &Testbed) -> Result<u64> {
    Ok(last(bed)?.scrub.context("a scrub")?.done_bytes)
}

/// Kills the engine in the middle of a scrub: it continues, until it is cancelled. The cache is cold
/// then.
fn goes_on(bed: &mut Testbed) -> Result<()> {
    bed.engine.command(["pool", "scrub", "--rate", "256KiB", "--detach"])?;
    let scrub = last(bed)?.scrub.context("a scrub")?;
    bed.refused(&["pool", "scrub"]);
    wait_until("the scrub begins", PATIENCE, || Ok(done_bytes(bed)? > 0))?;
    // After the first second, its progress is stored at each step but the newest.
    SystemClock.sleep(Duration::from_millis(1500));
    for _ in 0..3 {
        let before = done_bytes(bed)?;
        wait_until("the scrub comes along", PATIENCE, || Ok(done_bytes(bed)? > before))?;
    }
    bed.engine.kill()?;
    bed.engine.restart()?;
    let now = last(bed)?.scrub.context("the scrub")?;
    ensure!(now.job == scrub.job && now.started_at == scrub.started_at, "{now:?}");
    ensure!(now.state == JobState::Running && now.ended_at.is_none(), "{now:?}");
    wait_until("it goes on where it was", PATIENCE, || {
        Ok(std::fs::read_to_string(bed.engine.log())?.contains("the scrub goes on"))
    })?;
    let id = now.job.to_string();
    let shown: Job = bed.engine.ask(["job", "show", &id])?;
    ensure!(shown.progress.unit == "bytes" && shown.progress.total.is_some(), "{shown:?}");
    bed.engine.command(["job", "cancel", &id])?;
    wait_until("it is cancelled", PATIENCE, || {
        let scrub = last(bed)?.scrub.context("the scrub")?;
        Ok(scrub.state == JobState::Cancelled && scrub.ended_at.is_some())
    })
}

/// Whether some damage is named as page of the table, in the VDB, the dSource and a snapshot.
fn is_named(damage: &[DamagedBlock], made: &Made) -> bool {
    let of = |kind, object: &str| {
        damage.iter().flat_map(|block| block.holders.iter().flatten()).any(|holder| {
            holder.kind == Some(kind)
                && (holder.object == object || holder.of.as_deref() == Some(object))
                && holder.path.as_deref() == Some(&made.path)
                && holder.offset.is_some_and(|offset| offset % 8192 == 0)
                && holder.len == Some(8192)
        })
    };
    of(LedgerKind::Vdb, "dev")
        && of(LedgerKind::Dsource, "prod")
        && of(LedgerKind::Snapshot, "prod")
}

fn faults(bed: &Testbed) -> Result<Vec<String>> {
    let status: Status = bed.engine.ask(["status"])?;
    let of_pool = status.faults.into_iter().filter(|fault| fault.object == "pool");
    Ok(of_pool.map(|fault| fault.message).collect())
}

fn says_who(bed: &Testbed, made: &Made) -> Result<()> {
    wait_until("the fault names the file", PATIENCE, || {
        let all = faults(bed)?;
        Ok(all.iter().any(|fault| fault.contains(&format!("VDB dev, {} at byte", made.path))))
    })
}

fn finds_and_names(bed: &mut Testbed, made: &Made) -> Result<()> {
    ensure!(flip(&bed.engine.pool().join("segments"), &made.bytes)? > 0, "the page is stored");
    let refused = bed.engine.command(["pool", "scrub", "--rate", "1GiB"]).err();
    ensure!(refused.context("damage decides the exit code")?.exit_code == 1);
    let report = last(bed)?;
    let scrub = report.scrub.context("the scrub")?;
    ensure!(scrub.state == JobState::Done && scrub.damaged_blocks > 0, "{scrub:?}");
    ensure!(scrub.done_bytes == scrub.total_bytes && scrub.ended_at.is_some(), "{scrub:?}");
    ensure!(is_named(&report.damage, made), "{:?}", report.damage);
    let status: Status = bed.engine.ask(["status"])?;
    ensure!(status.last_scrub.as_ref() == Some(&scrub), "{:?}", status.last_scrub);
    says_who(bed, made)?;
    ensure!(bed.open("dev")?.text(ROW).is_err(), "wrong data is never given");
    // Without an engine the check names them, too.
    bed.engine.kill()?;
    let found = bed.engine.command(["pool", "check"]).err().context("the check finds it")?;
    let document = found.message.strip_prefix("stdout: ").context("a document")?;
    let mut document = serde_json::Deserializer::from_str(document).into_iter::<PoolCheck>();
    let check = document.next().context("a document")??;
    ensure!(is_named(&check.damage, made), "{check:?}");
    // The next engine knows it, before anyone reads it.
    bed.engine.restart()?;
    ensure!(!last(bed)?.damage.is_empty(), "known");
    says_who(bed, made)
}

/// The same source copied again brings the same blocks.
fn is_healed(bed: &Testbed, made: &Made) -> Result<()> {
    bed.link("again")?;
    wait_until("nothing is damaged any more", PATIENCE, || {
        Ok(last(bed)?.damage.is_empty() && faults(bed)?.is_empty())
    })?;
    let report: ScrubReport = bed.engine.ask(["pool", "scrub", "--rate", "1GiB"])?;
    let scrub = report.scrub.context("the scrub")?;
    ensure!((scrub.damaged_blocks, scrub.healed_blocks) == (0, 0), "{scrub:?}");
    let dev: Database = bed.open("dev")?;
    ensure!(dev.text(ROW)? == made.row, "the VDB reads it again");
    Ok(())
}

#[test]
fn damage_is_found_named_known_and_healed() {
    let options = SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] };
    let mut bed = Testbed::with(options).unwrap();
    let course = |bed: &mut Testbed| -> Result<()> {
        let made = make(bed)?;
        goes_on(bed)?;
        finds_and_names(bed, &made)?;
        is_healed(bed, &made)
    };
    let result = course(&mut bed);
    with_log(&bed.engine, result).unwrap();
}
