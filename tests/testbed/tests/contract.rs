//! Small promises of the command line, on one dSource and one VDB.
#![allow(clippy::unwrap_used)]

use anyhow::{Result, ensure};
use offshoot_api::{DsourceState, Status, Vdb, VdbState};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{EngineOptions, Scratch, Source, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, binary, check_refusal, wait_until};
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
fn a_server_s_log_is_in_the_quota() -> Result<()> {
    let bed = bed();
    bed.provision("dev", "prod", &[])?;
    bed.engine.command(["policy", "set", "dev", "--quota", "8MiB"])?;
    let db = bed.open("dev")?;
    db.execute("CREATE TABLE small AS SELECT 1")?;
    ensure!(fault_of(&bed, "dev")?.is_none(), "it has room of its own");
    let line = "RAISE LOG '%', repeat('x', 1000)";
    db.execute(&format!("DO $$ BEGIN FOR i IN 1..16000 LOOP {line}; END LOOP; END $$"))?;
    wait_until("its log takes the quota", PATIENCE, || Ok(fault_of(&bed, "dev")?.is_some()))
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

#[test]
fn a_rotated_password_and_another_address_are_no_dead_end() -> Result<()> {
    let bed = bed();
    bed.provision("dev", "prod", &[])?;
    let production = bed.source.connect("postgres")?;
    production.execute("ALTER ROLE offshoot_link PASSWORD 'rotated'")?;
    production.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_replication")?;
    let state = || -> Result<_> { Ok(bed.dsource("prod")?.state) };
    wait_until("it is disconnected", PATIENCE, || Ok(state()? == DsourceState::Disconnected))?;

    let set = |arguments: &[&str], password: &str| {
        let all = ["dsource", "set", "prod"].iter().chain(arguments);
        bed.engine.command_within(all, &[("PGPASSWORD", password)], PATIENCE)
    };
    let error = check_refusal(set(&[], "wrong"));
    ensure!(error.code == "source_refused", "{error}");
    ensure!(bed.dsource("prod")?.source == bed.source.link_uri(), "nothing has changed");
    let error = check_refusal(bed.engine.command(["dsource", "set", "prod"]));
    ensure!(error.code == "invalid_input", "{error}");

    set(&[], "rotated")?;
    wait_until("it is followed again", PATIENCE, || Ok(state()? == DsourceState::Active))?;
    // Another role; the password stays.
    production.execute("CREATE ROLE second REPLICATION LOGIN PASSWORD 'rotated'")?;
    production.execute("GRANT pg_read_all_settings, pg_monitor TO second")?;
    let uri = format!("postgresql://second@127.0.0.1:{}/postgres", bed.source.port());
    bed.engine.command(["dsource", "set", "prod", "--source", &uri])?;
    ensure!(bed.dsource("prod")?.source == uri);
    production.execute("CREATE TABLE later AS SELECT 1 AS n")?;
    bed.engine.command(["dsource", "sync", "prod"])?;
    bed.engine.command(["vdb", "refresh", "dev"])?;
    ensure!(bed.open("dev")?.number("SELECT n FROM later")? == 1);

    // Another database is refused, whatever the password.
    let scratch = Scratch::new("other")?;
    let options = SourceOptions { bin_dir: find_newest()?, scale: 0, settings: vec![] };
    let other = Source::start(&scratch, options)?;
    let error = check_refusal(set(&["--source", &other.link_uri()], other.link_password()));
    ensure!(error.message.contains("another database"), "{error}");
    wait_until("it is still followed", PATIENCE, || Ok(state()? == DsourceState::Active))?;
    let shown = bed.engine.command(["job", "list"])?.to_string();
    ensure!(!shown.contains("rotated"), "the password is not in what jobs show");
    Ok(())
}
