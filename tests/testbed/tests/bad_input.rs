//! What cannot be done is refused: exit code 1, an error that names the fix, and no trace left.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_api::{Job, Status};
use offshoot_os::process::{self, Spec};
use offshoot_os::{Clock, SystemClock, unused_port};
use offshoot_rig::{
    CommandError, Database, Engine, EngineOptions, Scratch, Source, SourceOptions, find_newest,
};
use offshoot_testbed::{PATIENCE, Testbed, binary, check_refusal, flip, other_server, wait_until};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn options(settings: &[(&str, &str)]) -> SourceOptions {
    let settings = settings.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings }
}

fn link_refused(bed: &Testbed, uri: &str, password: &str) -> CommandError {
    let error = check_refusal(bed.link_as("prod", uri, password));
    bed.assert_no_trace().unwrap();
    error
}

#[test]
fn a_source_that_cannot_be_linked_says_why() {
    let bed = Testbed::with(options(&[])).unwrap();
    let uri = bed.source.link_uri();
    let port = bed.source.port();

    let error = link_refused(&bed, &uri, "wrong");
    assert_eq!(error.code, "source_refused", "{error}");
    assert!(error.message.contains("password"), "{error}");

    let closed = unused_port().unwrap();
    let nobody = format!("postgresql://offshoot_link@127.0.0.1:{closed}/postgres");
    let error = link_refused(&bed, &nobody, "x");
    assert_eq!(error.code, "source_unreachable", "{error}");

    let db = bed.source.connect("postgres").unwrap();
    db.execute("CREATE ROLE weak LOGIN PASSWORD 'weak'").unwrap();
    let weak = format!("postgresql://weak@127.0.0.1:{port}/postgres");
    let error = link_refused(&bed, &weak, "weak");
    let said = format!("{} {}", error.message, error.hint);
    assert!(said.contains("REPLICATION"), "{error}");
    assert!(error.hint.contains("ALTER ROLE"), "the hint is the statement that mends it: {error}");

    let error = check_refusal(bed.link_as("Not A Name", &uri, bed.source.link_password()));
    assert_eq!(error.code, "invalid_input", "{error}");
    let error = bed.link_as("prod", "mysql://x@127.0.0.1/x", "x").unwrap_err();
    assert_eq!((error.exit_code, error.code.as_str()), (2, "invalid_input"), "{error}");
    bed.assert_no_trace().unwrap();

    // After all that, the right password links.
    bed.link("prod").unwrap();
    let error = check_refusal(bed.link_as("prod", &uri, bed.source.link_password()));
    assert_eq!(error.code, "already_exists", "{error}");
}

#[test]
fn a_source_without_enough_log_names_wal_level() {
    let bed =
        Testbed::with(options(&[("wal_level", "minimal"), ("max_wal_senders", "0")])).unwrap();
    let error =
        check_refusal(bed.link_as("prod", &bed.source.link_uri(), bed.source.link_password()));
    let said = format!("{} {}", error.message, error.hint);
    assert!(said.contains("wal_level"), "{error}");
    bed.assert_no_trace().unwrap();
}

mod needs_postgres_18 {
    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL 18 in OFFSHOOT_TEST_PG_BINS"]
    fn a_server_version_that_is_not_here_is_named() {
        let bin_dir = other_server(18);
        let scratch = Scratch::new("testbed").unwrap();
        let source =
            Source::start(&scratch, SourceOptions { bin_dir, scale: 0, settings: vec![] }).unwrap();
        // This engine does not find the source's programs: they are not in its PATH.
        let engine = Engine::start(&scratch, EngineOptions::new(binary())).unwrap();
        let uri = source.link_uri();
        let arguments = ["dsource", "link", "prod", "--connector", "postgres", "--source", &uri];
        let error = check_refusal(engine.command_within(
            arguments,
            &[("PGPASSWORD", source.link_password())],
            PATIENCE,
        ));
        assert!(error.message.contains("18"), "{error}");
        assert!(error.hint.contains("18"), "{error}");
    }
}

#[test]
fn a_source_that_dies_during_the_link_leaves_nothing() {
    // Large enough to die while it is copied: what has been copied waits for its source to come back.
    let mut bed = Testbed::with(SourceOptions { scale: 60, ..options(&[]) }).unwrap();
    let uri = bed.source.link_uri();
    let arguments = ["dsource", "link", "prod", "--connector", "postgres", "--source", &uri];
    let env = [("PGPASSWORD", bed.source.link_password())];
    let limit = PATIENCE;
    let detached = arguments.iter().chain(&["--detach"]);
    let accepted = bed.engine.command_within(detached, &env, limit).unwrap();
    let id = accepted["job"].as_str().unwrap().to_owned();
    wait_until("the copy has begun", PATIENCE, || {
        let job: Job = bed.engine.ask(["job", "show", &id])?;
        assert!(!job.state.is_final(), "the link was over before the source could die: {job:?}");
        Ok(job.progress.unit == "bytes" && job.progress.done > 0)
    })
    .unwrap();
    bed.source.kill_server();
    wait_until("the link fails", PATIENCE, || {
        let job: Job = bed.engine.ask(["job", "show", &id])?;
        Ok(job.state.is_final())
    })
    .unwrap();
    let job: Job = bed.engine.ask(["job", "show", &id]).unwrap();
    let error = job.error.expect("the job says why it failed");
    assert!(!error.message.is_empty() && !error.hint.is_empty(), "{error:?}");
    bed.source.start_server().unwrap();
    // The slot could not be dropped on a source that was gone: it is once the source is back.
    wait_until("the slot is dropped", PATIENCE, || Ok(bed.source_slots()? == 0)).unwrap();
    bed.assert_no_trace().unwrap();
}

#[test]
fn a_vdb_that_cannot_be_made_says_why() {
    let bed = Testbed::with(options(&[])).unwrap();
    bed.link("prod").unwrap();
    bed.provision("one", "prod", &[]).unwrap();
    let vdbs = || bed.engine.command(["vdb", "list"]).unwrap()["vdbs"].as_array().unwrap().len();
    let refused = |name: &str, moment: &[&str]| {
        let mut arguments = vec!["vdb", "provision", name, "--from", "prod"];
        arguments.extend(moment);
        let error = bed.refused(&arguments);
        assert_eq!(vdbs(), 1, "nothing is left of '{name}'");
        error
    };
    assert_eq!(refused("one", &[]).code, "already_exists");
    assert_eq!(refused("1st!", &[]).code, "invalid_input");

    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    let error = refused("two", &["--port", &port]);
    assert_eq!(error.code, "already_exists", "{error}");
    assert!(error.message.contains(&port), "{error}");

    let first = bed.dsource("prod").unwrap().snapshots[0].time;
    let error = refused("two", &["--at", "2001-01-01T00:00:00Z"]);
    assert_eq!(error.code, "moment_unavailable", "{error}");
    let year = first.to_string()[..10].to_owned();
    let said = format!("{} {}", error.message, error.hint);
    assert!(said.contains(&year), "the first moment is named: {error}");
    assert_eq!(refused("two", &["--at", "2199-01-01T00:00:00Z"]).code, "moment_unavailable");
    assert_eq!(refused("two", &["--lsn", "0/1"]).code, "moment_unavailable");
    assert_eq!(refused("two", &["--lsn", "FFFF/0"]).code, "moment_unavailable");
    assert_eq!(refused("two", &["--snapshot", "snapshot-99999"]).code, "not_found");
    let setting = refused("two", &["--set", "no_such_setting=1"]);
    assert_eq!(setting.code, "invalid_input", "{setting}");
    let error = bed.refused(&["vdb", "provision", "two", "--from", "nothing"]);
    assert_eq!(error.code, "not_found", "{error}");
    for arguments in [
        ["vdb", "show", "nothing"],
        ["vdb", "stop", "nothing"],
        ["vdb", "delete", "nothing"],
        ["dsource", "show", "nothing"],
        ["dsource", "unlink", "nothing"],
        ["snapshot", "show", "snapshot-99999"],
        ["job", "show", "job-99999"],
    ] {
        assert_eq!(bed.refused(&arguments).code, "not_found", "{arguments:?}");
    }
    // A rewind of a VDB to another object's snapshot.
    let foreign = bed.dsource("prod").unwrap().snapshots[0].id.to_string();
    bed.refused(&["vdb", "rewind", "one", "--snapshot", &foreign]);
    assert_eq!(bed.open("one").unwrap().number("SELECT 1").unwrap(), 1, "and 'one' still works");
}

/// A `serve` that must refuse to start.
fn serve_refused(pool: &Path, more: &[&str]) -> CommandError {
    let engine = Engine::prepare(pool.to_owned(), EngineOptions::new(binary()));
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0"];
    arguments.extend(more);
    // Where the engines of tests have it, not where this user's other engines have theirs.
    let key = pool.with_extension("key");
    let key = [("OFFSHOOT_SECRET_KEY_FILE", key.to_str().unwrap())];
    let error = engine.command_within(arguments, &key, PATIENCE);
    check_refusal(error)
}

#[test]
fn an_engine_that_cannot_start_says_why() {
    let scratch = Scratch::new("testbed").unwrap();
    let error = serve_refused(&scratch.path().join("pool"), &["--cache-size", "900TiB"]);
    assert!(error.message.contains("memory"), "{error}");
    for (option, size) in [("--cache-size", "1KB"), ("--capacity", "10MiB")] {
        let error = serve_refused(&scratch.path().join("pool"), &[option, size]);
        assert!(error.hint.contains(option) && error.hint.contains("at least"), "{error}");
    }
    assert!(!scratch.path().join("pool").exists(), "nothing is made before that");

    // Not a place where anything can be written, not even by root.
    serve_refused(Path::new("/proc/offshoot-pool"), &[]);

    // A file where the pool should be, and a directory full of something else.
    let file = scratch.path().join("file");
    std::fs::write(&file, "x").unwrap();
    serve_refused(&file, &[]);
}

/// Everything below a directory, with what changes when it is written to, renamed, or given another mode or owner.
fn traces(dir: &Path) -> Vec<(PathBuf, u32, u32, i64, i64)> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let data = std::fs::symlink_metadata(&path).unwrap();
        if data.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.push((path, data.mode(), data.uid(), data.ctime(), data.ctime_nsec()));
    }
    found.sort();
    found
}

#[test]
fn the_data_directory_of_a_database_is_not_taken_for_a_pool() {
    let scratch = Scratch::new("testbed").unwrap();
    let mut source = Source::start(&scratch, options(&[])).unwrap();
    let data = source.data_dir().to_owned();
    source.kill_server();
    let before = traces(&data);
    for more in [&[][..], &["--takeover"]] {
        let error = serve_refused(&data, more);
        assert!(error.message.contains("is not a pool and is not empty"), "{error}");
        assert!(error.message.contains("PG_VERSION"), "it says what is there: {error}");
        assert!(error.hint.contains("--pool"), "{error}");
    }
    let engine = Engine::prepare(data.clone(), EngineOptions::new(binary()));
    engine.command_within(["keeper"], &[], Duration::from_secs(20)).unwrap_err();
    assert_eq!(traces(&data), before, "nothing of it is touched");
    source.start_server().unwrap();
}

#[test]
fn a_pool_has_one_engine_and_a_known_format() {
    let scratch = Scratch::new("testbed").unwrap();
    let mut engine = Engine::start(&scratch, EngineOptions::new(binary())).unwrap();
    let error = serve_refused(engine.pool(), &[]);
    assert!(error.message.contains("in use"), "{error}");
    assert!(engine.running(), "the first engine goes on");
    engine.command(["status"]).unwrap();
    assert_eq!(engine.stop().unwrap(), 0);

    let error = check_refusal(engine.command(["status"]));
    assert_eq!(error.code, "engine_unreachable", "{error}");
    assert!(error.hint.contains("offshoot serve"), "{error}");

    // Bytes 8 to 11 of the label are the format's version (docs/on-disk-format.md).
    let label = engine.pool().join("label");
    let known = std::fs::read(&label).unwrap();
    let mut newer = known.clone();
    newer[8] += 1;
    std::fs::write(&label, newer).unwrap();
    let error = serve_refused(engine.pool(), &[]);
    assert!(error.message.contains("version"), "{error}");
    // A label that is damaged is refused, never guessed.
    let mut damaged = known.clone();
    damaged[20] ^= 1;
    std::fs::write(&label, damaged).unwrap();
    serve_refused(engine.pool(), &[]);
    // As it was, the pool opens.
    std::fs::write(&label, known).unwrap();
    engine.restart().unwrap();
}

mod needs_root {
    use super::*;

    #[test]
    #[ignore = "needs root"]
    fn an_engine_without_fuse_says_so() {
        let scratch = Scratch::new("testbed").unwrap();
        let devices = scratch.path().join("devices");
        std::fs::create_dir(&devices).unwrap();
        std::fs::write(devices.join("null"), "").unwrap();
        // A /dev of its own that holds nothing but null.
        let hide = format!(
            "mount --bind /dev/null {0}/null && mount --rbind {0} /dev && exec \"$@\"",
            devices.display()
        );
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = serve ] || exec '{0}' \"$@\"\n\
         exec unshare --mount --propagation private sh -c '{hide}' offshoot '{0}' \"$@\"\n",
            binary().display()
        );
        let wrapper = scratch.path().join("offshoot");
        std::fs::write(&wrapper, script).unwrap();
        std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).unwrap();
        let source = Source::start(&scratch, options(&[])).unwrap();
        let mut engine = Engine::prepare(scratch.path().join("pool"), EngineOptions::new(wrapper));
        // Either it does not start at all, or the first work that needs FUSE is refused.
        let said = match engine.restart() {
            Err(error) => format!("{error:#}"),
            Ok(()) => {
                let uri = source.link_uri();
                let arguments =
                    ["dsource", "link", "prod", "--connector", "postgres", "--source", &uri];
                let env = [("PGPASSWORD", source.link_password())];
                let limit = PATIENCE;
                let error = check_refusal(engine.command_within(arguments, &env, limit));
                let list = engine.command(["dsource", "list"]).unwrap();
                assert_eq!(list["dsources"].as_array().map(Vec::len), Some(0), "{list}");
                format!("{error}")
            }
        };
        assert!(said.contains("/dev/fuse") && said.contains("modprobe fuse"), "{said}");
    }

    #[test]
    #[ignore = "needs root"]
    fn a_full_pool_refuses_a_link_and_goes_on() {
        let scratch = Scratch::new("testbed").unwrap();
        let small = scratch.path().join("small");
        std::fs::create_dir(&small).unwrap();
        let mount = Spec::new("mount").args(["-t", "tmpfs", "-o", "size=192m,mode=755", "tmpfs"]);
        assert!(process::run(&mount.arg(&small), PATIENCE).unwrap().success());
        let _unmount = Unmount(small.clone());
        let mut engine = Engine::prepare(small.join("pool"), EngineOptions::new(binary()));
        engine.restart().unwrap();
        let source = Source::start(&scratch, options(&[])).unwrap();
        add_payload(&source.connect("postgres").unwrap(), 30_000).unwrap();
        let uri = source.link_uri();
        let arguments = ["dsource", "link", "prod", "--connector", "postgres", "--source", &uri];
        let error = check_refusal(engine.command_within(
            arguments,
            &[("PGPASSWORD", source.link_password())],
            Duration::from_secs(200),
        ));
        assert_eq!(error.code, "pool_full", "{error}");
        let list = engine.command(["dsource", "list"]).unwrap();
        assert_eq!(list["dsources"].as_array().map(Vec::len), Some(0), "{list}");
        assert_eq!(engine.stop().unwrap(), 0);
    }
}

/// A table of rows that do not compress, one to a page, so that the pool stores the pages as they are.
fn add_payload(db: &Database, rows: u32) -> Result<()> {
    db.execute("CREATE TABLE payload (n int, data bytea)")?;
    db.execute("ALTER TABLE payload ALTER data SET STORAGE PLAIN")?;
    db.execute(&format!(
        "INSERT INTO payload SELECT n, (SELECT decode(string_agg(md5(n || '-' || i), ''), 'hex')
         FROM generate_series(1, 480) i) FROM generate_series(1, {rows}) n"
    ))
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = process::run(&Spec::new("umount").arg("-l").arg(&self.0), PATIENCE);
    }
}

#[test]
fn a_flipped_bit_is_an_error_of_that_read_alone() {
    let mut bed = Testbed::with(options(&[])).unwrap();
    let source = bed.source.connect("postgres").unwrap();
    add_payload(&source, 60).unwrap();
    let hex = source.text("SELECT encode(substr(data, 1000, 24), 'hex') FROM payload WHERE n = 30");
    let hex = hex.unwrap();
    let bytes: Vec<u8> =
        (0..24).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
    bed.link("prod").unwrap();
    let snapshot = bed.snapshot("prod").unwrap();
    bed.wait_ready(&snapshot).unwrap();
    bed.provision("damaged", "prod", &["--snapshot", &snapshot.id.to_string()]).unwrap();
    // The cache must be cold: a block in memory is right whatever the disk says.
    assert_eq!(bed.engine.stop().unwrap(), 0);
    let flipped = flip(&bed.engine.pool().join("segments"), &bytes).unwrap();
    assert!(flipped > 0, "the page is stored as it is somewhere");
    bed.engine.restart().unwrap();
    wait_until("the VDB runs", PATIENCE, || Ok(bed.open("damaged").is_ok())).unwrap();

    let db = bed.open("damaged").unwrap();
    let error = db.text("SELECT md5(data) FROM payload WHERE n = 30").unwrap_err();
    println!("the read said: {error:#}");
    let db = bed.open("damaged").unwrap();
    let others = "SELECT count(*) FROM (SELECT md5(data) FROM payload WHERE ctid < '(28,1)') x";
    assert!(db.number(others).unwrap() > 20, "other pages are read");
    db.execute("CREATE TABLE goes_on AS SELECT 1 AS n").unwrap();
    wait_until("the damaged block is a fault with a hint", PATIENCE, || {
        let status: Status = bed.engine.ask(["status"])?;
        Ok(status.faults.iter().any(|fault| !fault.hint.is_empty()))
    })
    .unwrap();
    assert!(bed.engine.running());
}

#[test]
fn waiting_has_an_end() {
    let began = SystemClock.elapsed();
    assert!(wait_until("never", Duration::from_millis(200), || Ok(false)).is_err());
    assert!(SystemClock.elapsed() - began < PATIENCE);
}
