//! `offshoot bench` from the command line: small, but with a real engine and real servers.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_os::process::{self, Spec};
use offshoot_rig::Scratch;
use offshoot_testbed::binary;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Runs a benchmark below `scratch` and returns the document it prints.
fn bench(scratch: &Scratch, words: &[&str], out: &Path) -> Result<Value> {
    let spec = Spec::new(binary())
        .arg("bench")
        .args(words)
        .args(["--json", "--cache-size", "64MiB", "--out"])
        .arg(out)
        .env("OFFSHOOT_SCRATCH_DIR", scratch.path());
    let output = process::run(&spec, Duration::from_secs(300))?;
    ensure!(output.success(), "{} {}", output.stdout_text(), output.stderr_text());
    serde_json::from_str(&output.stdout_text()).context("one document on stdout")
}

#[test]
fn compare_loads_copies_and_virtual_databases_alike() {
    let scratch = Scratch::new("bench-test").unwrap();
    let out = scratch.path().join("out");
    let words = "compare --variants plain,vdb --databases 1 --users 2 --scale 0.002 --seconds 2 --repeats 1 --no-scans";
    let words: Vec<&str> = words.split(' ').collect();
    let document = bench(&scratch, &words, &out).unwrap();

    let measurements = document["measurements"].as_array().unwrap();
    let of = |variant: &str| {
        let wanted = |one: &&Value| one["variant"] == variant;
        measurements.iter().filter(wanted).collect::<Vec<_>>()
    };
    let (plain, vdb) = (of("plain"), of("vdb"));
    assert_eq!((plain.len(), vdb.len(), measurements.len()), (2, 2, 4), "cold and warm of both");
    for one in measurements {
        assert_eq!(one["load"]["errors"], 0, "{one}");
        assert!(one["load"]["transactions"].as_u64().unwrap() > 10, "{one}");
        assert!(one["database"]["wal_bytes"].as_u64().unwrap() > 0, "orders write log: {one}");
    }
    assert!(plain[0]["engine_cache"].is_null());
    assert!(vdb[0]["engine_cache"]["hits"].as_u64().unwrap() > 0, "{}", vdb[0]);
    assert_eq!(document["settings"]["setting"]["seed"], 7);

    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("result.json")).unwrap()).unwrap();
    assert_eq!(written["figures"], document["figures"]);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("src="), "charts, and nothing to fetch");

    let left: Vec<_> = std::fs::read_dir(scratch.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "only the results are left: {left:?}");
    assert!(scratch.mounts().is_empty() && scratch.processes().is_empty());
}

#[test]
fn replication_loses_an_engine_and_measures_how_soon_the_other_goes_on() {
    let scratch = Scratch::new("bench-test").unwrap();
    let out = scratch.path().join("out");
    let words = "replication --measure failovers --failovers 1 --scale 1 --rate 100";
    let document = bench(&scratch, &words.split(' ').collect::<Vec<_>>(), &out).unwrap();

    let figures = document["figures"].as_array().unwrap();
    let of = |name: &str| {
        let figure = figures.iter().find(|figure| figure["name"] == name);
        figure.and_then(|figure| figure["median"].as_f64()).unwrap()
    };
    assert!(of("failover_kill_to_vdb_answers_ms") > of("failover_kill_to_command_end_ms"));
    assert!(of("failover_kill_to_dsource_follows_ms") > of("failover_kill_to_command_end_ms"));
    assert!(of("failover_commits_not_sent") >= 0.0 && of("failover_commits_not_sent_ms") > 0.0);
    assert!(scratch.mounts().is_empty() && scratch.processes().is_empty());
}

#[test]
fn restart_kills_the_engine_and_measures_how_long_clients_wait() {
    let scratch = Scratch::new("bench-test").unwrap();
    let out = scratch.path().join("out");
    let words = ["restart", "--scale", "1", "--vdbs", "1", "--clients", "2", "--kills", "1"];
    let document = bench(&scratch, &words, &out).unwrap();

    let figures = document["figures"].to_string();
    for name in ["kill to ready, slowest, ms", "longest statement of a client, ms"] {
        assert!(figures.contains(name), "{figures}");
    }
    assert!(scratch.mounts().is_empty() && scratch.processes().is_empty());
}

#[test]
fn many_counts_what_each_of_them_takes() {
    let scratch = Scratch::new("bench-test").unwrap();
    let out = scratch.path().join("out");
    let words: Vec<&str> = "many --defined 20 --running 2 --scale 1".split(' ').collect();
    let document = bench(&scratch, &words, &out).unwrap();
    let figures = document["figures"].to_string();
    assert!(figures.contains("memory of each idle VDB"), "{figures}");
}
