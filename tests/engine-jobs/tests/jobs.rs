//! Every step of the engine's jobs: killed before it and after it, then finished or undone by the next engine, and
//! killed again while that undoes it.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::too_many_lines)]

use offshoot_os::process::{Child, Output, Sink, Spec, run};
use offshoot_toy::{Client, create};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const TOYD: &str = env!("CARGO_BIN_EXE_toyd-for-engine");
const ENGINE: &str = env!("CARGO_BIN_EXE_toy-engine");
const PATIENCE: Duration = Duration::from_secs(90);

/// A source and a pool. Dropped, everything of them is gone.
struct Bed {
    root: tempfile::TempDir,
    port: u16,
    source: Child,
}

impl Bed {
    fn new() -> Bed {
        let parent = std::env::var_os("OFFSHOOT_SCRATCH_DIR").unwrap_or_else(|| "/var/tmp".into());
        let root =
            tempfile::Builder::new().prefix("os-j").rand_bytes(5).tempdir_in(parent).unwrap();
        create(&root.path().join("source/data"), "boss", "s3cret").unwrap();
        let port = offshoot_os::unused_port().unwrap();
        let source = root.path().join("source");
        let spec = Spec::new(TOYD)
            .args(["--data".as_ref(), source.join("data").as_os_str()])
            .args(["--runtime".as_ref(), source.as_os_str()])
            .args(["--port", &port.to_string()])
            .stderr(Sink::File(source.join("log")))
            .die_with_parent(true);
        let bed = Bed { source: spec.spawn().unwrap(), root, port };
        let end = Instant::now() + PATIENCE;
        while Client::open(&bed.uri()).is_err() {
            assert!(Instant::now() < end, "the source does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        for number in 0..20 {
            bed.commit(&format!("k{number}"), &"v".repeat(number * 37 + 1));
        }
        bed
    }

    fn pool(&self) -> PathBuf {
        self.root.path().join("pool")
    }

    fn uri(&self) -> String {
        format!("toy://boss:s3cret@127.0.0.1:{}/main", self.port)
    }

    fn link(&self) -> String {
        format!("link shop {}", self.uri())
    }

    fn commit(&self, key: &str, value: &str) {
        Client::open(&self.uri()).unwrap().ask(&format!("SET {key} {value}")).unwrap();
    }

    fn content(&self) -> Value {
        let text = Client::open(&self.uri()).unwrap().ask("DUMP").unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Runs an engine that does these actions; it dies at a point where one is given.
    fn run(&self, crash: Option<&str>, actions: &[&str]) -> Output {
        let mut spec = Spec::new(ENGINE).arg(self.pool()).arg(TOYD).args(actions);
        if let Some(point) = crash {
            spec = spec.env("OFFSHOOT_CRASH_AT", point);
        }
        run(&spec, PATIENCE).unwrap()
    }

    /// The same without a death: the answers.
    fn answers(&self, actions: &[&str]) -> Vec<Value> {
        let output = self.run(None, actions);
        let text = output.stdout_text();
        assert!(output.success(), "{actions:?}: {text}\n{}", output.stderr_text());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Nothing runs, nothing is mounted, and the store is whole.
    fn check_closed(&self) {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let pool = self.pool();
        let pool = pool.to_string_lossy();
        assert!(!mounts.lines().any(|line| line.contains(&*pool)), "a mount is left");
        assert_eq!(servers(&pool), Vec::<i32>::new(), "a server is left");
        let report = offshoot_engine::check_pool(Path::new(&*pool), &mut |_, _| ()).unwrap();
        assert!(report.damage.is_empty(), "the store is damaged");
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.source.kill_group();
    }
}

/// The servers whose data lies below a directory.
fn servers(below: &str) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_ours = |pid: &i32| {
        let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.contains("toyd-for-engine") && text.contains(&format!("--data\0{below}"))
    };
    pids.filter(is_ours).collect()
}

/// An action whose job is killed at each step.
struct Case<'a> {
    /// What is done before, each time.
    before: &'a [&'a str],
    action: &'a str,
    /// Makes a finished one undone, so that the next one begins as the first did.
    after: &'a [&'a str],
    /// Whether it was done, by what the engine then shows.
    is_done: &'a dyn Fn(&Value) -> bool,
    /// What must work when it was done, by the answers that come.
    works: &'a [&'a str],
}

fn kill_at_each_step(bed: &Bed, case: &Case<'_>) {
    let actions: Vec<&str> = [case.before, &[case.action]].concat();
    let job = bed.answers(&actions).pop().unwrap();
    let kind = job["job"].as_str().unwrap();
    let steps: Vec<&str> =
        job["steps"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    bed.answers(case.after);
    bed.check_closed();
    let mut done = 0;
    for (at, step) in steps.iter().enumerate() {
        for point in ["before", "after"] {
            bed.answers(case.before);
            let place = format!("{kind}/{step}:{point}");
            assert!(!bed.run(Some(&place), &[case.action]).success(), "{place}: it did not die");
            // The next engine dies, too, where it undoes that: a step that was begun, or one before.
            let undo = steps[at / 2];
            let second = if point == "before" { "before-undo" } else { "after-undo" };
            bed.run(Some(&format!("{kind}/{undo}:{second}")), &["settle"]);
            let shown = bed.answers(&["settle"]).pop().unwrap();
            assert_eq!(shown["open"], serde_json::json!([]), "{place}");
            if (case.is_done)(&shown) {
                done += 1;
            } else {
                // What was undone can be done.
                bed.answers(&[case.action]);
            }
            let answers = bed.answers(&[case.works, case.after].concat());
            if case.works.last().is_some_and(|last| last.starts_with("content")) {
                assert_eq!(answers[case.works.len() - 1], bed.content(), "{place}");
            }
            bed.check_closed();
        }
    }
    println!("{kind}: {} steps, done in the end {done} times, else undone", steps.len());
}

fn is_running(shown: &Value) -> bool {
    shown["vdbs"]["dev"] == "Running"
}

/// A source that is linked, and a VDB of it.
fn provisioned() -> Bed {
    let bed = Bed::new();
    bed.answers(&[&bed.link(), "provision dev shop", "put dev own change"]);
    bed
}

#[test]
fn a_link_is_killed_at_each_step() {
    let bed = Bed::new();
    let link = bed.link();
    let case = Case {
        before: &[],
        action: &link,
        after: &["unlink shop"],
        is_done: &|shown| shown["dsources"]["shop"].is_string(),
        works: &["sync shop", "provision probe shop", "delete probe"],
    };
    kill_at_each_step(&bed, &case);
}

#[test]
fn an_unlink_is_killed_at_each_step() {
    let bed = Bed::new();
    let link = bed.link();
    let case = Case {
        before: &[&link],
        action: "unlink shop",
        after: &[],
        is_done: &|shown| shown["dsources"]["shop"].is_null(),
        works: &[],
    };
    kill_at_each_step(&bed, &case);
}

#[test]
fn a_provision_is_killed_at_each_step() {
    let bed = Bed::new();
    bed.answers(&[&bed.link()]);
    let case = Case {
        before: &["sync shop"],
        action: "provision dev shop",
        after: &["delete dev"],
        is_done: &|shown| shown["vdbs"]["dev"].is_string(),
        works: &["content dev"],
    };
    kill_at_each_step(&bed, &case);
}

#[test]
fn a_deletion_is_killed_at_each_step() {
    let bed = Bed::new();
    bed.answers(&[&bed.link()]);
    let case = Case {
        before: &["provision dev shop"],
        action: "delete dev",
        after: &[],
        is_done: &|shown| shown["vdbs"]["dev"].is_null(),
        works: &[],
    };
    kill_at_each_step(&bed, &case);
}

#[test]
fn a_refresh_is_killed_at_each_step() {
    let bed = provisioned();
    let case = Case {
        before: &["put dev own change"],
        action: "refresh dev",
        after: &[],
        is_done: &is_running,
        works: &["put dev more changes", "refresh dev", "content dev"],
    };
    kill_at_each_step(&bed, &case);
}

#[test]
fn a_rewind_is_killed_at_each_step() {
    let bed = provisioned();
    let case = Case {
        before: &["snapshot dev", "put dev own change"],
        action: "rewind dev",
        after: &[],
        is_done: &is_running,
        works: &["put dev more changes", "refresh dev", "content dev"],
    };
    kill_at_each_step(&bed, &case);
}

#[test]
fn stop_and_start_are_killed_at_each_step() {
    let bed = provisioned();
    let stop = Case {
        before: &[],
        action: "stop dev",
        after: &["start dev"],
        is_done: &|shown| shown["vdbs"]["dev"] == "Stopped",
        works: &[],
    };
    kill_at_each_step(&bed, &stop);
    let start = Case {
        before: &["stop dev"],
        action: "start dev",
        after: &[],
        is_done: &is_running,
        works: &["refresh dev", "content dev"],
    };
    kill_at_each_step(&bed, &start);
}

#[test]
fn syncs_and_snapshots_are_killed_at_each_step() {
    let bed = provisioned();
    for action in ["sync shop", "snapshot shop", "snapshot dev"] {
        let case = Case {
            before: &["put dev own change"],
            action,
            after: &[],
            is_done: &is_running,
            works: &["refresh dev", "content dev"],
        };
        kill_at_each_step(&bed, &case);
    }
}

#[test]
fn a_proof_is_killed_at_each_step() {
    let bed = provisioned();
    let case = Case {
        before: &["put dev own change"],
        action: "prove shop",
        after: &[],
        is_done: &is_running,
        works: &["prove shop", "refresh dev", "content dev"],
    };
    kill_at_each_step(&bed, &case);
}

#[test]
fn pause_and_resume_are_killed_at_each_step() {
    let bed = provisioned();
    let paused = |shown: &Value| shown["dsources"]["shop"] != "Active";
    let pause = Case {
        before: &[],
        action: "pause shop",
        after: &["resume shop"],
        is_done: &paused,
        works: &[],
    };
    kill_at_each_step(&bed, &pause);
    let resume = Case {
        before: &["pause shop"],
        action: "resume shop",
        after: &[],
        is_done: &|shown| !paused(shown),
        works: &["sync shop", "refresh dev", "content dev"],
    };
    kill_at_each_step(&bed, &resume);
}
