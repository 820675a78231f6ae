//! What the user of a VDB puts in the place of its files: the engine reads some of them at each start.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_api::VdbState;
use offshoot_os::process::{Spec, run};
use offshoot_rig::{EngineOptions, Scratch, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, binary};
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Far more than there is memory; it takes nothing of the pool.
const SPARSE_BYTES: u64 = 500 << 30;

/// Replaces a file.
type Attack = fn(&Path);

fn sparse(path: &Path) {
    File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .open(path)
        .unwrap()
        .set_len(SPARSE_BYTES)
        .unwrap();
}

fn pipe(path: &Path) {
    std::fs::remove_file(path).unwrap();
    assert!(run(&Spec::new("mkfifo").arg(path), PATIENCE).unwrap().success());
}

fn link(path: &Path) {
    std::fs::remove_file(path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path).unwrap();
}

/// Files of a data directory with what a VDB's user does to them, and whether it can still be started.
const ATTACKS: &[(&str, &[&str], Attack, bool)] = &[
    ("settings", &["postgresql.auto.conf", "postgresql.conf"], sparse, false),
    ("written", &["offshoot.conf", "pg_hba.conf", "postmaster.pid"], sparse, true),
    ("inherited", &["offshoot.inherited.conf"], sparse, false),
    ("version", &["PG_VERSION"], sparse, false),
    ("control", &["global/pg_control"], sparse, false),
    ("piped", &["postgresql.auto.conf", "PG_VERSION"], pipe, false),
    ("linked", &["postgresql.auto.conf", "pg_hba.conf"], link, false),
];

#[test]
fn files_of_any_kind_and_size_stop_neither_the_engine_nor_other_vdbs() {
    let mut options = EngineOptions::new(binary());
    options.cache_size = "64MiB".into();
    let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
    let mut bed = Testbed::with_engine(source, options).unwrap();
    bed.link("prod").unwrap();
    bed.provision("good", "prod", &[]).unwrap();
    let mut places = Vec::new();
    for (name, files, attack, starts) in ATTACKS {
        bed.provision(name, "prod", &["--superuser"]).unwrap();
        let data = bed.open(name).unwrap().text("SHOW data_directory").unwrap();
        places.push((name, Path::new(&data).to_owned(), files, attack, starts));
    }
    for (_, data, files, attack, _) in &places {
        files.iter().for_each(|file| attack(&data.join(file)));
    }
    assert_eq!(bed.engine.stop().unwrap(), 0);
    bed.engine.restart().unwrap();
    assert_eq!(bed.open("good").unwrap().number("SELECT 1").unwrap(), 1);
    let vdb = |name: &str| -> Result<_> { bed.vdb(name) };
    for (name, _, files, _, starts) in places {
        let vdb = vdb(name).unwrap();
        let expected = if *starts { VdbState::Running } else { VdbState::Failed };
        assert_eq!(vdb.state, expected, "{name}: {:?}", vdb.error);
        if let Some(problem) = vdb.error {
            assert!(files.iter().any(|file| problem.message.contains(file)), "{name}: {problem:?}");
            assert!(problem.hint.contains("rewind"), "{name}: {problem:?}");
            // The way out that the error names.
            bed.engine.command(["vdb", "refresh", name]).unwrap();
            assert_eq!(bed.open(name).unwrap().number("SELECT 1").unwrap(), 1);
        }
    }
}

/// Replaces files of a data directory by links to a file, and back, until told to end.
fn swap_until(end: &AtomicBool, data: &Path, outside: &Path) {
    let own = data.join("swapped");
    while !end.load(Ordering::Relaxed) {
        for file in ["PG_VERSION", "postgresql.auto.conf", "pg_hba.conf", "postmaster.pid"] {
            let _ = std::fs::rename(data.join(file), &own);
            let _ = std::os::unix::fs::symlink(outside, data.join(file));
            let _ = std::fs::rename(&own, data.join(file));
        }
    }
}

#[test]
fn links_that_come_and_go_lead_the_engine_to_nothing_outside() {
    let mut options = EngineOptions::new(binary());
    options.cache_size = "64MiB".into();
    let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
    let bed = Testbed::with_engine(source, options).unwrap();
    bed.link("prod").unwrap();
    bed.provision("good", "prod", &[]).unwrap();
    bed.provision("bad", "prod", &["--superuser"]).unwrap();
    let data = bed.open("bad").unwrap().text("SHOW data_directory").unwrap();
    let outside = Scratch::new("outside").unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "nobody-should-see-this").unwrap();
    std::fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let before = std::fs::metadata(&secret).unwrap();
    let end = AtomicBool::new(false);
    let told = std::thread::scope(|scope| {
        scope.spawn(|| swap_until(&end, Path::new(&data), &secret));
        let mut told = String::new();
        for action in ["stop", "start", "restart", "reset-password", "show", "stop", "start"] {
            // It may fail, but it ends.
            told += &format!("{:?}", bed.engine.command(["vdb", action, "bad"]));
        }
        end.store(true, Ordering::Relaxed);
        told
    });
    let after = std::fs::metadata(&secret).unwrap();
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "nobody-should-see-this");
    assert_eq!(
        (after.mode(), after.uid(), after.mtime_nsec(), after.len()),
        (before.mode(), before.uid(), before.mtime_nsec(), before.len())
    );
    assert!(!told.contains("nobody-should-see"), "{told}");
    assert_eq!(bed.open("good").unwrap().number("SELECT 1").unwrap(), 1);
    bed.engine.command(["vdb", "refresh", "bad"]).unwrap();
    assert_eq!(bed.open("bad").unwrap().number("SELECT 1").unwrap(), 1);
}
