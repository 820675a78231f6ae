//! What the user of a VDB puts in the place of its files: the engine reads some of them at each start.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_api::VdbState;
use offshoot_os::process::{Spec, run};
use offshoot_rig::{EngineOptions, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, binary};
use std::fs::File;
use std::path::Path;

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
