//! What tests of two engines ask and do alike.

use crate::testbed::{PATIENCE, Testbed, wait_until};
use anyhow::{Result, ensure};
use offshoot_api::Dsource;
use offshoot_rig::{Database, Engine};
use std::time::Duration;

/// What the accounts of pgbench hold.
///
/// # Errors
/// The server's.
pub fn sums(database: &Database) -> Result<String> {
    database.text(
        "SELECT concat(count(*), ' ', sum(abalance), ' ', md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid))) \
         FROM pgbench_accounts",
    )
}

/// Changes accounts of the source.
///
/// # Errors
/// What pgbench says.
pub fn load(bed: &Testbed) -> Result<()> {
    let spec = bed.source.pgbench(&["--transactions", "500", "--client", "2"]);
    let run = offshoot_os::process::run(&spec, Duration::from_secs(60))?;
    ensure!(run.status.success(), "{run:?}");
    Ok(())
}

/// The time of a moment after all that was written to the source; the engine may not have its log yet.
///
/// # Errors
/// The server's.
pub fn moment(bed: &Testbed) -> Result<String> {
    let database = bed.source.connect("postgres")?;
    let time = database.text(
        "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00'",
    )?;
    database.execute("SELECT pg_sleep(0.3)")?;
    Ok(time)
}

/// Waits until the dSource `shop` has the log of a moment.
///
/// # Errors
/// When it does not in time.
pub fn wait_synced(bed: &Testbed, time: &str) -> Result<()> {
    wait_until("the log is received", PATIENCE, || synced_after(&bed.dsource("shop")?, time))
}

/// Whether a dSource has the log of a moment.
///
/// # Errors
/// When the moment is none.
pub fn synced_after(dsource: &Dsource, time: &str) -> Result<bool> {
    let time: jiff::Timestamp = time.replace("+00", "Z").replace(' ', "T").parse()?;
    let synced = dsource.synced_to.as_ref().and_then(|synced| synced.time);
    Ok(synced.is_some_and(|synced| synced > time))
}

/// Stops an engine, and checks all that is in its pool.
///
/// # Errors
/// When it does not end well, or something is wrong in the pool.
pub fn stop_and_check(engine: &mut Engine) -> Result<()> {
    ensure!(engine.stop()? == 0, "the engine did not end well");
    let key = engine.pool().with_extension("key");
    let key = key.to_str().expect("a path of the test's");
    let checked = engine.command(["pool", "check", "--secret-key", key])?;
    ensure!(checked["findings"] == serde_json::json!([]), "{checked}");
    Ok(())
}
