//! A source that is a standby.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_os::process::{Child, Sink, Spec, run};
use offshoot_os::{Clock, SystemClock, unused_port};
use offshoot_rig::{Database, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, wait_until, with_log};
use std::time::Duration;

/// A standby of the bed's source; it ends with this value.
struct Standby {
    port: u16,
    server: Child,
}

impl Drop for Standby {
    fn drop(&mut self) {
        self.server.kill_group();
    }
}

fn succeed(spec: &Spec) -> Result<()> {
    let output = run(spec, PATIENCE)?;
    ensure!(output.success(), "{}", output.stderr_text());
    Ok(())
}

fn standby(bed: &Testbed) -> Result<Standby> {
    let port = unused_port().context("a port")?;
    let place = bed.source.make_directory("standby")?;
    let data = place.join("data");
    let copy = bed
        .source
        .program("pg_basebackup")
        .args(["--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--dbname"])
        .arg(bed.source.superuser_uri("postgres"))
        .arg("--pgdata")
        .arg(&data);
    succeed(&copy)?;
    let spec = bed
        .source
        .program("postgres")
        .arg("-D")
        .arg(&data)
        .args(["-c", &format!("port={port}")])
        .stderr(Sink::File(place.join("log")))
        .die_with_parent(true);
    let standby = Standby { port, server: spec.spawn()? };
    let uri = bed.source.superuser_uri("postgres");
    let uri = uri.replace(&bed.source.port().to_string(), &port.to_string());
    wait_until("the standby answers", PATIENCE, || Ok(Database::connect(&uri).is_ok()))?;
    Ok(standby)
}

#[test]
fn a_standby_whose_primary_writes_nothing_can_be_linked() {
    let options = SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] };
    let bed = Testbed::with(options).unwrap();
    with_log(&bed.engine, link_standby(&bed)).unwrap();
}

fn link_standby(bed: &Testbed) -> Result<()> {
    let primary = bed.source.connect("postgres")?;
    primary.execute("CREATE TABLE rows AS SELECT 1 AS n")?;
    let standby = standby(bed)?;
    let began = SystemClock.elapsed();
    let uri = format!("postgresql://offshoot_link@127.0.0.1:{}/postgres", standby.port);
    bed.link_as("prod", &uri, bed.source.link_password())?;
    let took = SystemClock.elapsed() - began;
    println!("linked in {} ms", took.as_millis());
    ensure!(took < Duration::from_secs(60), "a link of an idle standby took {took:?}");
    let vdb = bed.provision("dev", "prod", &[])?;
    let rows = |uri: &str| Database::connect(uri)?.number("SELECT count(*) FROM rows");
    ensure!(rows(&vdb.uri)? == 1);

    // What the primary writes then arrives as ever.
    primary.execute("INSERT INTO rows VALUES (2)")?;
    wait_until("the standby has it and so has a refresh", PATIENCE, || {
        bed.engine.command(["vdb", "refresh", "dev"])?;
        Ok(rows(&bed.vdb("dev")?.uri)? == 2)
    })?;
    bed.engine.command(["vdb", "delete", "dev"])?;
    bed.engine.command(["dsource", "unlink", "prod"])?;
    Ok(())
}
