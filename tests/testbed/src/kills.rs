//! `kill -9` of the engine while a VDB is under load: what was acknowledged must be there.

use crate::testbed::{PATIENCE, Testbed, wait_until};
use anyhow::{Context, Result, ensure};
use offshoot_api::Status;
use offshoot_os::{Clock, SystemClock, process};
use offshoot_rig::{Database, Writer};
use std::time::Duration;

/// What a run of kills saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kills {
    /// Commits acknowledged to the writer, all found again.
    pub commits: i64,
    /// From the start of each new engine until the VDB answered, in milliseconds.
    pub back_after_ms: Vec<u64>,
}

/// Kills the engine `kills` times under pgbench and a recording writer in a VDB. After each, every
/// acknowledged commit must be there; at the end `pg_amcheck` must be clean and no block damaged.
///
/// # Errors
/// What did not hold.
pub fn kill_under_load(bed: &mut Testbed, vdb: &str, kills: u32) -> Result<Kills> {
    let clock = SystemClock;
    bed.open(vdb)?.execute(Writer::EMPTY)?;
    let uri = bed.vdb(vdb)?.uri;
    let writer = Writer::start(uri.clone(), Duration::ZERO);
    let mut back_after_ms = Vec::new();
    for round in 1..=kills {
        let before = writer.history().last_value();
        ensure!(
            writer.wait_for(before + 20, PATIENCE),
            "round {round}: the VDB takes no writes; the engine's log:\n{}",
            bed.engine.log_end(10)
        );
        // Without --no-vacuum each run would empty pgbench_history, and the books would not
        // balance.
        let load = bed.source.pgbench_on(&uri, &["--no-vacuum", "--client=4", "--time=60"]);
        let mut load = load.die_with_parent(true).spawn()?;
        // Another moment of the load each time.
        clock.sleep(Duration::from_millis(700 + 130 * u64::from(round % 7)));
        bed.engine.kill()?;
        let began = clock.elapsed();
        let restarted = bed.engine.restart();
        load.kill_group();
        restarted.with_context(|| format!("round {round}"))?;
        wait_until("the VDB runs again", PATIENCE, || Ok(bed.open(vdb).is_ok()))
            .with_context(|| format!("round {round}"))?;
        back_after_ms.push((clock.elapsed() - began).as_millis() as u64);
        verify_writes(bed, vdb, &writer).with_context(|| format!("round {round}"))?;
    }
    // A commit whose acknowledgement went with the last kill counts once the writer has looked.
    let before = writer.history().last_value();
    ensure!(writer.wait_for(before + 2, PATIENCE), "the VDB takes no writes after the last kill");
    let commits = writer.stop().last_value();
    let held = bed.open(vdb)?.number("SELECT count(*) FROM ticks")?;
    ensure!(held == commits, "{commits} commits acknowledged, {held} there");
    check_pages(bed, &uri)?;
    let status: Status = bed.engine.ask(["status"])?;
    ensure!(status.faults.is_empty(), "faults: {:?}", status.faults);
    Ok(Kills { commits, back_after_ms })
}

/// Every value acknowledged before this call is there, each once, and nothing is torn.
fn verify_writes(bed: &Testbed, vdb: &str, writer: &Writer) -> Result<()> {
    let acknowledged = writer.history().last_value();
    let db = bed.open(vdb)?;
    let rows = db.rows("SELECT max(value), count(*), (SELECT value FROM tick_now) FROM ticks")?;
    let row = rows.first().context("one row")?;
    ensure!(row[0] == row[1] && row[0] == row[2], "torn: {row:?}");
    let held: i64 = row[0].parse()?;
    ensure!(held >= acknowledged, "{acknowledged} commits acknowledged, {held} there");
    let balanced = "SELECT (SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts)
        = (SELECT coalesce(sum(delta), 0) FROM pgbench_history)";
    ensure!(db.text(balanced)? == "t", "pgbench's books do not balance");
    Ok(())
}

/// `pg_amcheck` over every database of the VDB, as the engine: it takes a superuser.
///
/// # Errors
/// What it found.
pub fn check_pages(bed: &Testbed, uri: &str) -> Result<()> {
    let vdb = Database::connect(uri)?;
    let (socket, port) = (vdb.text("SHOW unix_socket_directories")?, vdb.text("SHOW port")?);
    let program = bed.source.program("pg_amcheck").user(None);
    let spec = program
        .args(["--all", "--install-missing", "--maintenance-db=postgres", "-U", "offshoot_engine"])
        .args(["-h", socket.trim_matches('"'), "-p", &port]);
    let output = process::run(&spec, Duration::from_secs(300))?;
    ensure!(output.success(), "pg_amcheck: {} {}", output.stdout_text(), output.stderr_text());
    Ok(())
}
