//! `offshoot demo` from its first step to its last, and when somebody ends it in the middle.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_os::process::{self, Line, Signal, Sink, Spec};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Scratch;
use offshoot_testbed::{PATIENCE, binary};
use serde_json::Value;
use std::time::Duration;

fn demo(scratch: &Scratch) -> Spec {
    Spec::new(binary())
        .args(["demo", "--exit", "--scale", "1"])
        .env("OFFSHOOT_SCRATCH_DIR", scratch.path())
}

fn nothing_is_left(scratch: &Scratch) {
    let files: Vec<_> = std::fs::read_dir(scratch.path()).unwrap().flatten().collect();
    assert!(files.is_empty(), "left: {files:?}");
    assert!(scratch.mounts().is_empty() && scratch.processes().is_empty());
}

#[test]
fn it_ends_with_a_second_engine_that_has_taken_over() {
    let scratch = Scratch::new("demo").unwrap();
    let output = process::run(&demo(&scratch).arg("--json"), Duration::from_secs(400)).unwrap();
    let text = output.stdout_text();
    assert!(output.success(), "{text} {}", output.stderr_text());
    let report: Value = serde_json::from_str(&text).unwrap();
    println!("{report:#}");
    assert_eq!(report["ok"], true);
    let checks: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    for wanted in [
        "masked names no customer of production",
        "first answers there, and has what was written in it",
        "what was sent is there to the last commit",
        "no commit of production is lost",
        "first is stopped there, and sample paused",
    ] {
        assert!(checks.contains(&wanted), "{checks:?}");
    }
    let takeover = &report["takeover"];
    assert!(takeover["vdb_answers_ms"].as_u64().unwrap() > 0, "{takeover}");
    assert!(takeover["follows_ms"].as_u64().unwrap() > 0, "{takeover}");
    assert!(takeover["lacking"].as_i64().unwrap() >= 0, "{takeover}");
    nothing_is_left(&scratch);
}

#[test]
fn whoever_ends_it_while_one_of_its_engines_is_lost_finds_nothing_left() {
    let scratch = Scratch::new("demo").unwrap();
    let mut child = demo(&scratch).stdout(Sink::Pipe).spawn().unwrap();
    let lines = child.take_stdout_lines().unwrap();
    let lost = wait_for_line(&lines, "the engine and all databases that it runs").unwrap();
    assert!(lost, "the engine was not lost in time");
    child.signal(Signal::Interrupt).unwrap();
    let status = child.wait_timeout(PATIENCE).unwrap().expect("it ends");
    assert_eq!(status.code(), Some(1));
    nothing_is_left(&scratch);
}

fn wait_for_line(lines: &process::Lines, part: &str) -> Result<bool> {
    let deadline = SystemClock.elapsed() + Duration::from_secs(400);
    while SystemClock.elapsed() < deadline {
        match lines.next_within(Duration::from_millis(200)) {
            Line::Text(line) if line.contains(part) => return Ok(true),
            Line::Text(_) | Line::Nothing => {}
            Line::End => break,
        }
    }
    Ok(false)
}
