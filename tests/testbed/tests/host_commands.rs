//! Commands that prepare a host, or run programs on it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use offshoot_rig::{Engine, EngineOptions, Scratch};
use offshoot_testbed::{PATIENCE, Testbed, binary};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    Command::new(binary()).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What the doctor says about one thing.
fn examined(pool: &Path, what: &str) -> (bool, String, String) {
    let output = run(&["doctor", "--json", "--pool", pool.to_str().unwrap()]);
    let report: Value = serde_json::from_str(&text(&output)).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == what).unwrap();
    let word = |field: &str| found[field].as_str().unwrap().to_owned();
    (output.status.success(), word("state"), word("hint"))
}

#[test]
fn the_doctor_finds_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    for what in ["mounting", "cells", "PostgreSQL"] {
        let (well, state, hint) = examined(&dir.path().join("pool"), what);
        assert_eq!((well, state.as_str(), hint.as_str()), (true, "ok", ""), "{what}");
    }
    assert!(!dir.path().join("pool").exists(), "it makes nothing");
    let foreign = dir.path().join("photos");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("cat.jpg"), "a cat").unwrap();
    let (well, state, hint) = examined(&foreign, "pool");
    assert_eq!((well, state.as_str()), (false, "failed"));
    assert!(!hint.is_empty());
    let words = text(&run(&["doctor", "--pool", foreign.to_str().unwrap()]));
    assert!(words.contains("FAILED   pool") && words.contains("fix: "), "{words}");
}

#[test]
fn shells_and_manual_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(&["completions", shell]));
        assert!(script.contains("provision") && script.contains("offshoot"), "{shell}");
    }
    let dir = tempfile::tempdir().unwrap();
    assert!(run(&["man", dir.path().to_str().unwrap()]).status.success());
    let page = std::fs::read_to_string(dir.path().join("offshoot-vdb-provision.1")).unwrap();
    // Commands to copy: none is broken in its middle.
    let (_, examples) = page.split_once("\n.SH EXAMPLES\n.nf\n").unwrap();
    let (examples, after) = examples.split_once("\n.fi\n").unwrap();
    assert!(examples.lines().all(|line| line.starts_with("offshoot vdb provision ")), "{examples}");
    assert!(after.starts_with(".SH "), "{after}");
    for page in std::fs::read_dir(dir.path()).unwrap() {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
        assert!(text.contains("\n.SH EXAMPLES\n.nf\n") && !text.contains("\n.SH EXTRA"), "{text}");
    }
    assert!(dir.path().join("offshoot.1").exists());
    assert!(!dir.path().join("offshoot-keeper.1").exists(), "what only the engine starts is there");
}

#[test]
fn a_program_finds_a_vdb_in_its_environment() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    let dev = bed.provision("dev", "shop", &[]).unwrap();
    let exec = |command: &[&str]| {
        let pool = bed.engine.pool().to_str().unwrap();
        run(&[&["vdb", "exec", "dev", "--pool", pool, "--"], command].concat())
    };
    let shown =
        text(&exec(&["sh", "-c", "echo $DATABASE_URL $PGHOST $PGPORT $PGUSER $PGDATABASE"]));
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(words[..2], [dev.uri.as_str(), dev.host.as_str()]);
    assert_eq!(words[2], dev.port.to_string());
    let counted = exec(&["psql", "-Atc", "SELECT current_user || ' ' || current_database()"]);
    assert_eq!(text(&counted).trim(), words[3..].join(" "));
    assert_eq!(exec(&["sh", "-c", "exit 7"]).status.code(), Some(7));
    let missing = exec(&["no-such-program"]);
    assert!(!missing.status.success());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("hint: "));
    bed.engine.command(["vdb", "stop", "dev"]).unwrap();
    assert!(String::from_utf8_lossy(&exec(&["true"]).stderr).contains("offshoot vdb start dev"));
}

/// A package of a commit of that time, in seconds.
fn package_of(time: &str, dir: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/package.sh");
    let mut command = Command::new(script);
    command.arg(binary()).arg(dir).arg("-Znone").env("SOURCE_DATE_EPOCH", time);
    let made = command.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    text(&made).trim().to_owned()
}

#[test]
fn a_package_of_a_later_commit_is_newer_and_one_of_the_same_commit_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let made = |time: &str| {
        let package = package_of(time, dir.path());
        let field = Command::new("dpkg-deb").args(["-f", &package, "Version"]).output().unwrap();
        (std::fs::read(package).unwrap(), text(&field).trim().to_owned())
    };
    let (first, second) = (made("1764325380"), made("1764325381"));
    assert_eq!(first.1, concat!(env!("CARGO_PKG_VERSION"), "-20251128.102300"));
    let is_older = |older: &str, newer: &str| {
        let line = ["--compare-versions", older, "lt", newer];
        Command::new("dpkg").args(line).status().unwrap().success()
    };
    assert!(is_older(&first.1, &second.1) && is_older(env!("CARGO_PKG_VERSION"), &first.1));
    let again = made("1764325380").0;
    let differs = first.0.iter().zip(&again).position(|(one, other)| one != other);
    assert!(
        first.0 == again,
        "the same commit makes another package: from byte {differs:?} of {} and {}",
        first.0.len(),
        again.len()
    );
}

/// The package has what it says, and its service is told when the engine answers.
#[test]
fn a_package_holds_an_engine_that_reports_to_its_service_manager() {
    let dir = tempfile::tempdir().unwrap();
    let package = package_of("1764325380", dir.path());
    let root = dir.path().join("root");
    let unpacked = Command::new("dpkg-deb").args(["-x", &package]).arg(&root).status().unwrap();
    assert!(unpacked.success());
    let fields = text(&Command::new("dpkg-deb").args(["-f", &package]).output().unwrap());
    assert!(
        // Recommended, a server's package would start a cluster on port 5432.
        fields.contains("fuse3")
            && fields.contains("Suggests: postgresql\n")
            && !fields.replace("@localhost", "").contains('@'),
        "{fields}"
    );
    for file in [
        "etc/offshoot/offshoot.conf",
        "usr/lib/systemd/system/offshoot.service",
        "usr/lib/systemd/system/offshoot-vdbs.service",
        "usr/share/doc/offshoot/changelog.Debian.gz",
        "usr/share/man/man1/offshoot-vdb-provision.1.gz",
        "usr/share/bash-completion/completions/offshoot",
    ] {
        assert!(root.join(file).exists(), "{file}");
    }

    let copyright = std::fs::read_to_string(root.join("usr/share/doc/offshoot/copyright")).unwrap();
    assert!(
        copyright.starts_with("Format: https://www.debian.org/doc/")
            && copyright.contains("\nLicense: Apache-2.0\n")
    );

    let (socket, pool) = (dir.path().join("notify"), dir.path().join("pool"));
    let manager = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut engine = Command::new(root.join("usr/bin/offshoot"))
        .args(["serve", "--listen", "127.0.0.1:0", "--config"])
        .arg(root.join("etc/offshoot/offshoot.conf"))
        .arg("--pool")
        .arg(&pool)
        .env("NOTIFY_SOCKET", &socket)
        .env("OFFSHOOT_SECRET_KEY_FILE", dir.path().join("key"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let told = || {
        let mut buffer = [0; 256];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).trim().to_owned()
    };
    assert_eq!(told(), "READY=1");
    let stopped = Command::new("kill").arg(engine.id().to_string()).status().unwrap();
    assert!(stopped.success());
    assert_eq!(told(), "STOPPING=1");
    assert!(engine.wait().unwrap().success());
}

#[test]
fn the_log_is_json_where_that_is_asked_for() {
    let scratch = Scratch::new("json-log").unwrap();
    let mut options = EngineOptions::new(binary());
    options.env.push(("OFFSHOOT_LOG_FORMAT".to_owned(), "json".to_owned()));
    let mut engine = Engine::start(&scratch, options).unwrap();
    assert_eq!(engine.stop().unwrap(), 0);
    let log = std::fs::read_to_string(engine.log()).unwrap();
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!events.is_empty());
    for event in &events {
        assert!(event["level"].is_string() && event["message"].is_string(), "{event}");
    }
    let wrong = Command::new(binary())
        .args(["serve", "--pool", scratch.path().join("other").to_str().unwrap()])
        .env("OFFSHOOT_LOG_FORMAT", "xml")
        .output()
        .unwrap();
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(!wrong.status.success() && said.contains("OFFSHOOT_LOG_FORMAT=json"), "{said}");
}
