//! What is exported from one engine is opened in another: the same rows at the same moments, nothing else, and nothing of
//! an archive that is not whole.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_api::{Dsource, DsourceList, DsourceState, Job, PoolStatus, SnapshotList, Vdb};
use offshoot_rig::{CommandError, Database, Engine, EngineOptions, SourceOptions, find_newest};
use offshoot_testbed::{
    PATIENCE, Testbed, binary, load, make_noise, moment, stop_and_check, sums, wait_synced,
    wait_until,
};
use std::path::PathBuf;

/// An engine with a source, and another one elsewhere.
struct Two {
    here: Testbed,
    there: Engine,
}

fn options() -> EngineOptions {
    let mut options = EngineOptions::new(binary());
    options.cache_size = "64MiB".into();
    options
}

impl Two {
    fn start(options_here: EngineOptions, options_there: EngineOptions) -> Result<Two> {
        let source = SourceOptions { bin_dir: find_newest()?, scale: 1, settings: vec![] };
        let here = Testbed::with_engine(source, options_here)?;
        let mut there = Engine::prepare(here.scratch.path().join("there"), options_there);
        there.restart()?;
        Ok(Two { here, there })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.here.scratch.path().join(name)
    }

    fn export(&self, name: &str, file: &str) -> Result<u64> {
        let path = self.file(file);
        let words = ["replication", "export", name, "--output", path.to_str().unwrap()];
        let said = self.here.engine.command(words)?;
        assert_eq!(said["archives"][0]["name"], name);
        let bytes = said["archives"][0]["bytes"].as_u64().unwrap();
        assert_eq!(std::fs::metadata(path)?.len(), bytes);
        Ok(bytes)
    }

    fn import(&self, file: &str) -> Result<Job, CommandError> {
        let path = self.file(file);
        let words = ["replication", "import", path.to_str().unwrap(), "--as", "west"];
        let said = self.there.command(words)?;
        Ok(serde_json::from_value(said).unwrap())
    }

    fn open_there(&self, name: &str, moment: &[&str]) -> Result<Database> {
        let mut words = vec!["vdb", "provision", name, "--from", "west/shop"];
        words.extend(moment);
        let vdb: Vdb = self.there.ask(words)?;
        assert_eq!(vdb.parent, "west/shop");
        Database::connect(&vdb.uri)
    }

    fn replica(&self) -> Result<Dsource> {
        self.there.ask(["dsource", "show", "west/shop"])
    }

    /// Nothing is in the other engine.
    fn nothing_there(&self) -> Result<()> {
        let dsources: DsourceList = self.there.ask(["dsource", "list"])?;
        let snapshots: SnapshotList = self.there.ask(["snapshot", "list"])?;
        assert_eq!((dsources.dsources.len(), snapshots.snapshots.len()), (0, 0));
        Ok(())
    }

    /// Stops both, and checks all that is in their pools.
    fn check(mut self) -> Result<()> {
        self.here.check_pool()?;
        self.there.command(["pool", "scrub"])?;
        stop_and_check(&mut self.here.engine)?;
        stop_and_check(&mut self.there)
    }
}

#[test]
fn any_moment_of_an_archive_opens_elsewhere() {
    let two = Two::start(options(), options()).unwrap();
    two.here.link("shop").unwrap();
    load(&two.here).unwrap();
    let between = moment(&two.here).unwrap();
    load(&two.here).unwrap();
    let snapshot = two.here.snapshot("shop").unwrap();
    two.here.wait_ready(&snapshot).unwrap();
    load(&two.here).unwrap();
    let last = moment(&two.here).unwrap();
    wait_synced(&two.here, &last).unwrap();

    let bytes = two.export("shop", "shop.offshoot").unwrap();
    let job = two.import("shop.offshoot").unwrap();
    assert_eq!(job.object, "west/shop");
    let replica = two.replica().unwrap();
    assert_eq!((replica.name.as_str(), replica.state), ("west/shop", DsourceState::Replica));
    let snapshots = two.here.dsource("shop").unwrap().snapshots.len();
    assert_eq!(replica.snapshots.len(), snapshots);

    let id = replica.snapshots.last().unwrap().id.to_string();
    for (name, moment) in [
        ("then", vec!["--at", between.as_str()]),
        ("now", vec!["--at", last.as_str()]),
        ("latest", vec![]),
    ] {
        let there = sums(&two.open_there(name, &moment).unwrap()).unwrap();
        let here = two.here.provision(name, "shop", &moment).unwrap();
        assert_eq!(there, sums(&Database::connect(&here.uri).unwrap()).unwrap(), "{name}");
    }
    two.open_there("image", &["--snapshot", &id]).unwrap();

    // A second time nothing changes, and nothing is stored.
    let before: PoolStatus = two.there.ask(["pool", "status"]).unwrap();
    let again = two.import("shop.offshoot").unwrap();
    assert!(again.notes.iter().any(|note| note.contains("already")), "{:?}", again.notes);
    let after: PoolStatus = two.there.ask(["pool", "status"]).unwrap();
    let more = after.live_bytes.saturating_sub(before.live_bytes);
    println!("archive {bytes} bytes; live before {}, {more} more", before.live_bytes);
    assert_eq!(two.replica().unwrap().snapshots.len(), snapshots);

    // Later there is more, and what is there stays under its ids.
    load(&two.here).unwrap();
    let later = moment(&two.here).unwrap();
    wait_synced(&two.here, &later).unwrap();
    two.here.snapshot("shop").unwrap();
    let older = two.file("shop.offshoot");
    two.export("shop", "later.offshoot").unwrap();
    let renewed = two.import("later.offshoot").unwrap();
    println!("renewed: {:?}", renewed.notes);
    let there = two.replica().unwrap();
    assert_eq!(there.snapshots.len(), snapshots + 1);
    assert!(there.snapshots.iter().any(|one| one.id.to_string() == id));
    let there = sums(&two.open_there("later", &["--at", &later]).unwrap()).unwrap();
    let here = two.here.provision("later", "shop", &["--at", &later]).unwrap();
    assert_eq!(there, sums(&Database::connect(&here.uri).unwrap()).unwrap());
    // The older archive is no way back.
    assert!(older.exists());
    let refused = two.import("shop.offshoot").unwrap_err();
    assert_eq!(refused.code, "wrong_state", "{refused:?}");
    two.check().unwrap();
}

#[test]
fn a_vdb_is_carried_as_what_is_ready_of_it() {
    let two = Two::start(options(), options()).unwrap();
    two.here.link("shop").unwrap();
    two.here.provision("dev", "shop", &[]).unwrap();
    let path = two.file("dev.offshoot");
    let words = ["replication", "export", "dev", "--output", path.to_str().unwrap()];
    let early = two.here.engine.command(words).unwrap_err();
    assert_eq!(early.code, "wrong_state", "{early:?}");
    two.here.open("dev").unwrap().execute("CREATE TABLE mine AS SELECT 7 AS n").unwrap();
    two.here.wait_ready(&two.here.snapshot("dev").unwrap()).unwrap();
    two.export("dev", "dev.offshoot").unwrap();
    two.import("dev.offshoot").unwrap();
    let vdb: Vdb = two.there.ask(["vdb", "provision", "copy", "--from", "west/dev"]).unwrap();
    let copy = Database::connect(&vdb.uri).unwrap();
    assert_eq!(copy.number("SELECT n FROM mine").unwrap(), 7);
    assert_eq!(sums(&copy).unwrap(), sums(&two.here.open("dev").unwrap()).unwrap());
    let words = ["vdb", "provision", "no", "--from", "west/dev", "--at", "2026-01-01 00:00:00+00"];
    assert_eq!(two.there.command(words).unwrap_err().code, "moment_unavailable");
    two.check().unwrap();
}

#[test]
fn a_replica_is_read_only_and_outlives_its_engine() {
    let mut two = Two::start(options(), options()).unwrap();
    two.here.link("shop").unwrap();
    load(&two.here).unwrap();
    let last = moment(&two.here).unwrap();
    wait_synced(&two.here, &last).unwrap();
    two.export("shop", "shop.offshoot").unwrap();
    two.import("shop.offshoot").unwrap();
    for words in [
        vec!["dsource", "sync", "west/shop"],
        vec!["dsource", "pause", "west/shop"],
        vec!["dsource", "resume", "west/shop"],
        vec!["snapshot", "take", "west/shop"],
    ] {
        let refused = two.there.command(&words).unwrap_err();
        assert_eq!(refused.code, "wrong_state", "{words:?}: {refused:?}");
        assert!(!refused.hint.is_empty());
    }
    // Nobody else puts something into the namespace.
    let words = ["vdb", "provision", "west/mine", "--from", "west/shop"];
    assert_eq!(two.there.command(words).unwrap_err().code, "invalid_input");
    let missing = two.there.command(["replication", "export", "nobody", "--output", "/tmp/never"]);
    assert_eq!(missing.unwrap_err().code, "not_found");

    let expected = sums(&two.open_there("before", &["--at", &last]).unwrap()).unwrap();
    two.there.kill_and_restart().unwrap();
    assert_eq!(sums(&two.open_there("after", &["--at", &last]).unwrap()).unwrap(), expected);
    // VDBs stay without it.
    two.there.command(["dsource", "unlink", "west/shop"]).unwrap();
    let vdb: Vdb = two.there.ask(["vdb", "show", "after"]).unwrap();
    assert_eq!(sums(&Database::connect(&vdb.uri).unwrap()).unwrap(), expected);
    two.check().unwrap();
}

#[test]
fn an_archive_that_there_is_no_room_for_is_refused_before_any_of_it_is_kept() {
    let mut small = options();
    small.arguments = vec!["--capacity".into(), "128MiB".into()];
    let two = Two::start(options(), small).unwrap();
    make_noise(&two.here.source.connect("postgres").unwrap(), "noise", 100_000).unwrap();
    two.here.link("shop").unwrap();
    let bytes = two.export("shop", "shop.offshoot").unwrap();
    let refused = two.import("shop.offshoot").unwrap_err();
    assert_eq!(refused.code, "pool_full", "{bytes} bytes: {refused:?}");
    let takes = format!("'west/shop' takes about {} MiB", bytes.div_ceil(1 << 20));
    assert!(refused.message.contains(&takes), "{refused:?}");
    two.nothing_there().unwrap();
    two.check().unwrap();
}

#[test]
fn nothing_stays_of_an_archive_that_is_not_whole() {
    let two = Two::start(options(), options()).unwrap();
    two.here.link("shop").unwrap();
    two.export("shop", "shop.offshoot").unwrap();
    let bytes = std::fs::read(two.file("shop.offshoot")).unwrap();
    let manifest = String::from_utf8_lossy(&bytes[..bytes.len().min(16 << 10)]).into_owned();
    assert!(manifest.contains("\"shop\""), "{manifest:.200}");
    assert!(!manifest.contains(two.here.source.link_password()), "it tells the password");
    let before: PoolStatus = two.there.ask(["pool", "status"]).unwrap();
    for (what, at) in
        [("beginning", 3), ("manifest", 100), ("middle", bytes.len() / 2), ("end", bytes.len() - 1)]
    {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x10;
        std::fs::write(two.file("wrong.offshoot"), &wrong).unwrap();
        let refused = two.import("wrong.offshoot").unwrap_err();
        assert_eq!(refused.code, "invalid_input", "{what}: {refused:?}");
        assert!(!refused.hint.is_empty(), "{what}: {refused:?}");
    }
    for len in [0, 10, 1000, bytes.len() / 3, bytes.len() - 1] {
        std::fs::write(two.file("wrong.offshoot"), &bytes[..len]).unwrap();
        let refused = two.import("wrong.offshoot").unwrap_err();
        assert_eq!(refused.code, "invalid_input", "{len} bytes: {refused:?}");
    }
    two.nothing_there().unwrap();
    wait_until("what came is given back", PATIENCE, || {
        let after: PoolStatus = two.there.ask(["pool", "status"])?;
        Ok(after.live_bytes < before.live_bytes + (64 << 10))
    })
    .unwrap();
    // What is in the way of an export stays as it is.
    std::fs::write(two.file("there.offshoot"), "mine").unwrap();
    let path = two.file("there.offshoot");
    let words = ["replication", "export", "shop", "--output", path.to_str().unwrap()];
    assert_eq!(two.here.engine.command(words).unwrap_err().code, "already_exists");
    assert_eq!(std::fs::read(path).unwrap(), b"mine");
    // The sound one is taken in.
    two.import("shop.offshoot").unwrap();
    two.check().unwrap();
}

#[test]
fn an_encrypted_pool_says_what_an_archive_is() {
    let mut encrypted = options();
    encrypted.arguments = vec!["--encrypt".to_owned()];
    let two = Two::start(encrypted.clone(), encrypted).unwrap();
    two.here.link("shop").unwrap();
    let path = two.file("shop.offshoot");
    let words = ["replication", "export", "shop", "--output", path.to_str().unwrap()];
    let refused = two.here.engine.command(words).unwrap_err();
    assert_eq!(refused.code, "forbidden", "{refused:?}");
    assert!(refused.hint.contains("--plain"), "{refused:?}");
    assert!(!path.exists());
    two.here.engine.command(words.into_iter().chain(["--plain"])).unwrap();
    two.import("shop.offshoot").unwrap();
    let there = sums(&two.open_there("dev", &[]).unwrap()).unwrap();
    let here = two.here.source.connect("postgres").unwrap();
    assert_eq!(there, sums(&here).unwrap());
    two.check().unwrap();
}
