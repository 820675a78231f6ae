//! Small promises of the command line, on one dSource and one VDB.
#![allow(clippy::unwrap_used)]

use anyhow::{Result, ensure};
use offshoot_api::{Status, Vdb, VdbState};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{EngineOptions, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, binary, wait_until};
use std::time::Duration;

fn bed() -> Testbed {
    let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
    let bed = Testbed::with(source).unwrap();
    bed.link("prod").unwrap();
    bed
}

fn fault_of(bed: &Testbed, object: &str) -> Result<Option<String>> {
    let status: Status = bed.engine.ask(["status"])?;
    Ok(status.faults.into_iter().find(|fault| fault.object == object).map(|fault| fault.message))
}

#[test]
fn starting_what_runs_changes_nothing() {
    let bed = bed();
    bed.provision("dev", "prod", &[]).unwrap();
    let db = bed.open("dev").unwrap();
    let vdb: Vdb = bed.engine.ask(["vdb", "start", "dev"]).unwrap();
    assert_eq!(vdb.state, VdbState::Running);
    assert_eq!(db.number("SELECT 1").unwrap(), 1, "its sessions go on");
    bed.engine.command(["vdb", "stop", "dev"]).unwrap();
    let vdb: Vdb = bed.engine.ask(["vdb", "start", "dev"]).unwrap();
    assert_eq!(vdb.state, VdbState::Running);
}

#[test]
fn the_fault_of_a_quota_goes_with_the_quota() -> Result<()> {
    let bed = bed();
    bed.provision("dev", "prod", &[])?;
    let db = bed.open("dev")?;
    db.execute("CREATE TABLE noise AS SELECT md5(i::text) FROM generate_series(1, 100000) i")?;
    // The engine has looked at it while it had no quota.
    SystemClock.sleep(Duration::from_secs(6));
    bed.engine.command(["policy", "set", "dev", "--quota", "1MiB"])?;
    let _ = db.execute("INSERT INTO noise SELECT md5(i::text) FROM generate_series(1, 100000) i");
    wait_until("the quota is a fault", PATIENCE, || Ok(fault_of(&bed, "dev")?.is_some()))?;
    let fault = fault_of(&bed, "dev")?.unwrap_or_default();
    ensure!(fault.contains("quota"), "{fault}");
    bed.engine.command(["policy", "set", "dev", "--quota", "none"])?;
    wait_until("the fault is gone", PATIENCE, || Ok(fault_of(&bed, "dev")?.is_none()))
}

#[test]
fn a_vdb_has_the_least_memory_that_works_or_none() {
    let bed = bed();
    let error = bed.refused(&["vdb", "provision", "dev", "--from", "prod", "--memory", "1KB"]);
    assert_eq!(error.code, "invalid_input", "{error}");
    let least = error.hint.rsplit_once("at least ").unwrap().1.replace(' ', "");
    bed.provision("dev", "prod", &["--memory", &least]).unwrap();
    let db = bed.open("dev").unwrap();
    assert_eq!(db.number("SELECT count(*) FROM generate_series(1, 100000)").unwrap(), 100_000);
}

#[test]
fn what_should_be_known_is_shown_and_not_only_logged() {
    let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
    let mut options = EngineOptions::new(binary());
    options.arguments = vec!["--unconfined".into()];
    let bed = Testbed::with_engine(source, options).unwrap();
    bed.link("prod").unwrap();
    let shown = bed.dsource("prod").unwrap().warnings;
    assert!(shown.iter().any(|one| one.message.contains("max_slot_wal_keep_size")), "{shown:?}");
    let all = bed.engine.ask::<Status, _>(["status"]).unwrap().warnings;
    assert!(shown.iter().all(|one| all.contains(one)), "{all:?}");
    let engine = all.iter().find(|one| one.object == "engine").unwrap();
    assert!(engine.message.contains("not confined"), "{engine:?}");
}
