//! How long servers wait for their files, as `/metrics` of a real engine says it.
#![allow(clippy::unwrap_used)]

use offshoot_os::process;
use offshoot_testbed::{PATIENCE, Testbed, sample, wait_until};

fn metrics(bed: &Testbed, token: Option<&str>) -> String {
    offshoot_testbed::metrics(bed, token).unwrap()
}

/// How many reads, writes and syncs the server of a VDB or a staging has waited for.
fn requests(text: &str, owner: &str) -> Option<[f64; 3]> {
    let count = |operation: &str| {
        let labels = format!("{owner},operation=\"{operation}\"");
        sample(text, &format!("offshoot_file_operation_seconds_count{{{labels}}}"))
    };
    Some([count("read")?, count("write")?, count("sync")?])
}

const DEV: &str = r#"vdb="dev""#;
const FLUSHES: &str = "offshoot_log_flush_seconds";

#[test]
fn load_on_a_vdb_shows_in_its_latencies_alone() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    let dev = bed.provision("dev", "shop", &[]).unwrap();
    bed.provision("idle", "shop", &[]).unwrap();

    let before = metrics(&bed, None);
    let [reads, writes, syncs] = requests(&before, DEV).unwrap();
    let flushes = sample(&before, &format!("{FLUSHES}_count")).unwrap();
    let load = ["--client=2", "--transactions=300", "--no-vacuum"];
    let load = bed.source.pgbench_on(&dev.uri, &load);
    assert!(process::run(&load, PATIENCE).unwrap().status.success());
    let database = bed.open("dev").unwrap();
    database.number("SELECT sum(abalance) FROM pgbench_accounts").unwrap();
    database.execute("VACUUM FULL pgbench_accounts").unwrap();

    let grown = || {
        let now = metrics(&bed, None);
        let [now_reads, now_writes, now_syncs] = requests(&now, DEV).unwrap();
        println!("{reads} {writes} {syncs} → {now_reads} {now_writes} {now_syncs}");
        Ok(now_reads > reads && now_writes > writes && now_syncs > syncs)
    };
    wait_until("reads, writes and syncs were counted", PATIENCE, grown).unwrap();
    let after = metrics(&bed, None);
    let now = sample(&after, &format!("{FLUSHES}_count")).unwrap();
    assert!(now > flushes, "{flushes} → {now}");
    assert!(sample(&after, &format!("{FLUSHES}_sum")).unwrap() > 0.0);
    assert!(sample(&after, "offshoot_commit_seconds_count").unwrap() > 0.0);
    assert!(sample(&after, "offshoot_pool_read_seconds_count").is_some());
    assert!(requests(&after, r#"dsource="shop""#).unwrap()[0] > 0.0, "staging has read its files");

    // What does not run waits for nothing, and begins anew.
    assert!(requests(&after, r#"vdb="idle""#).is_some());
    bed.engine.command(["vdb", "stop", "idle"]).unwrap();
    assert!(requests(&metrics(&bed, None), r#"vdb="idle""#).is_none());
}

#[test]
fn a_developer_sees_the_latencies_of_its_own_vdbs() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("dev", "shop", &[]).unwrap();
    bed.engine.command(["user", "add", "eve", "--role", "developer", "--parent", "shop"]).unwrap();
    let made = bed.engine.command(["token", "create", "--user", "eve"]).unwrap();
    let token = made["token"].as_str().unwrap();
    let file = bed.scratch.path().join("eve");
    std::fs::write(&file, token).unwrap();
    let own = ["vdb", "provision", "own", "--from", "shop", "--token-file"];
    let own = own.map(std::ffi::OsStr::new).into_iter().chain([file.as_os_str()]);
    bed.engine.command(own).unwrap();

    let (hers, all) = (metrics(&bed, Some(token)), metrics(&bed, None));
    let own = r#"vdb="own""#;
    assert!(requests(&hers, own).unwrap()[0] > 0.0);
    assert!(requests(&hers, DEV).is_none());
    assert!(requests(&all, own).is_some() && requests(&all, DEV).is_some());
    assert!(!hers.contains(FLUSHES) && !hers.contains("offshoot_pool_read_"), "{hers}");
    assert!(all.contains(FLUSHES) && all.contains("offshoot_pool_read_"));
}
