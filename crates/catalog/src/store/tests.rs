use super::Catalog;
use crate::{Error, Fault, Keyring, SecretKey, Subject};
use jiff::Timestamp;
use offshoot_domain::{
    Bookmark, ConnectorState, Dsource, DsourceState, Owner, Parent, Policy, Position, Readiness,
    Secret, Snapshot, SnapshotKind, TiesCut, Timings, Vdb, VdbState,
};
use offshoot_types::{
    BookmarkId, DsourceId, ErrorKind, Failure, LogPosition, SnapshotId, TimeflowId, VdbId,
};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn scratch() -> (TempDir, PathBuf) {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("catalog.db");
    (dir, path)
}

fn keys() -> Keyring {
    SecretKey::of([7; 32]).into()
}

fn open(path: &Path) -> Catalog {
    Catalog::open(path, keys()).expect("the catalog opens")
}

fn now() -> Timestamp {
    "2026-11-21T14:03:27.123456Z".parse().expect("a time")
}

fn dsource(id: DsourceId, name: &str) -> Dsource {
    Dsource {
        id,
        name: name.parse().expect("a name"),
        state: DsourceState::Active,
        problem: None,
        connector: "postgres".to_owned(),
        source: "postgresql://user@host:5432/db".to_owned(),
        server_version: "15.14".to_owned(),
        identity: u64::MAX.to_string(),
        connector_state: ConnectorState { version: 1, data: u64::MAX.into() },
        reservation: None,
        created_at: now(),
        policy: Policy::default(),
        log_dataset: None,
        staging_dataset: None,
        timeflow: None,
        synced_to: Some(Position { log: LogPosition(u64::MAX), time: now() }),
        warnings: Vec::new(),
        pace: offshoot_domain::Pace::default(),
    }
}

fn vdb(id: VdbId, name: &str, parent: impl Into<Owner>) -> Vdb {
    Vdb {
        id,
        name: name.parse().expect("a name"),
        state: VdbState::Running,
        problem: None,
        connector: "postgres".to_owned(),
        parent: Parent { owner: parent.into(), name: "prod".parse().expect("a name") },
        source_identity: String::new(),
        moment: None,
        port: 5433,
        gateway: None,
        slept: false,
        user: "offshoot".to_owned(),
        server_version: "15.14".to_owned(),
        settings: [("work_mem".to_owned(), "8MB".to_owned())].into(),
        refresh_keeps: [offshoot_domain::Kept::Roles].into(),
        memory_bytes: Some(512 << 20),
        keep_source_logins: false,
        superuser: false,
        keep_foreign_servers: false,
        exposure: None,
        reaches: Vec::new(),
        certificate: String::new(),
        ties: TiesCut::default(),
        owner: None,
        warm: false,
        care: offshoot_domain::Care::default(),
        policy: Policy::of_vdb(),
        dataset: None,
        timeflow: None,
        created_at: now(),
        hooks: std::collections::BTreeMap::new(),
        hook_failure: None,
        timings: Timings::default(),
    }
}

fn snapshot(id: u64, owner: impl Into<Owner>) -> Snapshot {
    Snapshot {
        id: SnapshotId(id),
        owner: owner.into(),
        timeflow: TimeflowId(1),
        position: Position { log: LogPosition(0x3A2_B1C0), time: now() },
        replay_from: LogPosition(0x3A2_0000),
        epoch: 1,
        kind: SnapshotKind::Manual,
        taken_at: now(),
        readiness: Readiness::Ready { image: SnapshotId(id + 1), proven: false },
        unchecked: Vec::new(),
    }
}

#[test]
fn objects_survive_a_reopen_unchanged() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    let source = dsource(catalog.allocate::<Dsource>().expect("an id"), "prod");
    let clone = vdb(catalog.allocate::<Vdb>().expect("an id"), "dev", source.id);
    let taken = snapshot(900, clone.id);
    catalog.put(&source).expect("kept");
    catalog.put(&clone).expect("kept");
    catalog.put(&taken).expect("kept");
    drop(catalog);

    let catalog = open(&path);
    assert_eq!(catalog.get::<Dsource>(source.id).expect("there"), source);
    assert_eq!(catalog.find_named::<Vdb>("dev").expect("readable"), Some(clone.clone()));
    assert_eq!(catalog.list_of::<Vdb>(source.id).expect("readable"), vec![clone.clone()]);
    assert_eq!(catalog.list_of::<Snapshot>(clone.id).expect("readable"), [taken]);
    assert_eq!(catalog.list_of::<Snapshot>(source.id).expect("readable"), []);
    assert_eq!(catalog.find_owner("dev").expect("readable"), Some(Owner::Vdb(clone.id)));
    assert_eq!(catalog.find_owner("nobody").expect("readable"), None);
    assert!(
        matches!(catalog.get::<Vdb>(VdbId(77)), Err(Error::NotFound(what)) if what == "vdb-77")
    );
}

#[test]
fn what_returned_ok_survives_a_crash() {
    let (dir, path) = scratch();
    let catalog = open(&path);
    for number in 1..=50 {
        let id = catalog.allocate::<Dsource>().expect("an id");
        catalog.put(&dsource(id, &format!("d{number}"))).expect("kept");
    }
    // The files as a kill would leave them: not closed, the log not merged.
    let after = dir.path().join("after");
    std::fs::create_dir(&after).expect("a directory");
    for name in ["catalog.db", "catalog.db-wal"] {
        std::fs::copy(dir.path().join(name), after.join(name)).expect("copied");
    }
    let recovered = open(&after.join("catalog.db"));
    assert_eq!(recovered.list::<Dsource>().expect("readable").len(), 50);
    assert_eq!(recovered.allocate::<Dsource>().expect("an id"), DsourceId(51));
}

#[test]
fn an_id_is_never_given_twice() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    let first = catalog.allocate::<Vdb>().expect("an id");
    catalog.put(&vdb(first, "dev", DsourceId(1))).expect("kept");
    assert!(catalog.delete::<Vdb>(first).expect("deleted"));
    assert!(!catalog.delete::<Vdb>(first).expect("nothing to delete"));
    drop(catalog);
    assert!(open(&path).allocate::<Vdb>().expect("an id") > first);
}

#[test]
fn dsources_and_vdbs_share_one_namespace() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    catalog.put(&dsource(DsourceId(4), "prod")).expect("kept");
    catalog.put(&dsource(DsourceId(4), "prod")).expect("the same object may be kept again");
    for error in [
        catalog.put(&vdb(VdbId(4), "prod", DsourceId(4))).expect_err("taken"),
        catalog.put(&dsource(DsourceId(5), "prod")).expect_err("taken"),
    ] {
        let failure = Failure::from(error);
        assert_eq!(failure.code, ErrorKind::AlreadyExists);
        assert!(failure.message.contains("'prod' is taken by dsource-4"), "{failure}");
    }
    assert_eq!(catalog.list::<Vdb>().expect("readable"), []);
    catalog.delete::<Dsource>(DsourceId(4)).expect("deleted");
    catalog.put(&vdb(VdbId(4), "prod", DsourceId(4))).expect("free again");
}

#[test]
fn a_transaction_is_all_or_nothing() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    catalog.put(&dsource(DsourceId(1), "prod")).expect("kept");
    let failed = catalog.transaction(|tx| {
        tx.put(&vdb(VdbId(1), "dev", DsourceId(1)))?;
        tx.put_secret("vdb-1", &Secret::new("x"))?;
        tx.delete::<Dsource>(DsourceId(1))?;
        tx.get::<Vdb>(VdbId(99)).map(|_| ())
    });
    assert!(matches!(failed, Err(Error::NotFound(_))));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        catalog.transaction(|tx| -> Result<(), Error> {
            tx.delete::<Dsource>(DsourceId(1))?;
            std::panic::resume_unwind(Box::new("a defect"));
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(catalog.list::<Vdb>().expect("readable"), []);
    assert_eq!(catalog.list::<Dsource>().expect("readable").len(), 1);
    assert!(catalog.secret("vdb-1").expect("readable").is_none());
}

#[test]
fn concurrent_updates_are_not_lost() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    catalog.put(&vdb(VdbId(1), "dev", DsourceId(1))).expect("kept");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    catalog.update::<Vdb>(VdbId(1), |vdb| vdb.port += 1).expect("updated");
                }
            });
        }
    });
    assert_eq!(catalog.get::<Vdb>(VdbId(1)).expect("there").port, 5433 + 100);
}

#[test]
fn only_the_owner_can_read_the_files() {
    let (dir, path) = scratch();
    std::fs::write(&path, b"").expect("a file");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("widened");
    let catalog = open(&path);
    catalog.put_secret("dsource-1", &Secret::new("x")).expect("kept");
    for entry in std::fs::read_dir(dir.path()).expect("listed") {
        let entry = entry.expect("an entry");
        let mode = entry.metadata().expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
}

#[test]
fn a_forgotten_password_leaves_the_disk() {
    const PASSWORD: &str = "correct-horse-battery-staple";
    let (dir, path) = scratch();
    let catalog = open(&path);
    catalog.put_secret("dsource-1", &Secret::new("earlier")).expect("kept");
    catalog.put_secret("dsource-1", &Secret::new(PASSWORD)).expect("kept");
    let kept = catalog.secret("dsource-1").expect("readable").expect("there");
    assert_eq!(kept.reveal(), PASSWORD);
    assert!(!format!("{kept:?}").contains("horse"));
    catalog.delete_secret("dsource-1").expect("deleted");
    assert!(catalog.secret("dsource-1").expect("readable").is_none());
    drop(catalog);
    for entry in std::fs::read_dir(dir.path()).expect("listed") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("read");
        assert!(!bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes()));
    }
}

#[test]
fn settings_keep_their_type() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    assert_eq!(catalog.setting::<u64>("cache").expect("readable"), None);
    catalog.set_setting("cache", &(4_u64 << 30)).expect("kept");
    assert_eq!(catalog.setting::<u64>("cache").expect("readable"), Some(4 << 30));
    assert!(matches!(catalog.setting::<String>("cache"), Err(Error::Damaged(_))));
}

#[test]
fn a_fault_is_raised_once_and_cleared() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    let prod = Subject::named("prod");
    let mut fault = Fault {
        subject: prod.clone(),
        topic: "logsync".to_owned(),
        time: now(),
        message: "the source is away".to_owned(),
        hint: "start it".to_owned(),
    };
    assert!(catalog.raise_fault(&fault).expect("kept"));
    let since = fault.time;
    fault.time = now() + jiff::SignedDuration::from_secs(60);
    fault.message = "the source is still away".to_owned();
    assert!(!catalog.raise_fault(&fault).expect("kept"), "it is known");
    fault.time = since;
    assert_eq!(catalog.faults().expect("readable"), [fault.clone()], "since the first time");
    assert_eq!(catalog.events(10).expect("readable").len(), 1);
    assert!(!catalog.clear_fault(&prod, "other", now()).expect("cleared"));
    assert!(catalog.clear_fault(&prod, "logsync", now()).expect("cleared"));
    assert_eq!(catalog.faults().expect("readable"), []);
    catalog.raise_fault(&fault).expect("kept");
    catalog.clear_faults(&prod, now()).expect("cleared");
    assert_eq!(catalog.faults().expect("readable"), []);
}

#[test]
fn a_vdb_named_pool_has_faults_of_its_own() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    let fault = |subject: &Subject, message: &str| Fault {
        subject: subject.clone(),
        topic: "topic".to_owned(),
        time: now(),
        message: message.to_owned(),
        hint: String::new(),
    };
    let vdb = Subject::named("pool");
    let of_vdb = fault(&vdb, "its server does not start");
    let of_pool = fault(&Subject::Pool, "a block is damaged");
    assert!(catalog.raise_fault(&of_vdb).expect("kept"));
    assert!(catalog.raise_fault(&of_pool).expect("kept"), "another one");
    assert!(catalog.clear_fault(&vdb, "topic", now()).expect("cleared"));
    assert_eq!(catalog.faults().expect("readable"), std::slice::from_ref(&of_pool));
    catalog.raise_fault(&of_vdb).expect("kept");
    catalog.clear_faults(&vdb, now()).expect("cleared");
    assert_eq!(catalog.faults().expect("readable"), [of_pool], "who deletes the VDB keeps it");
}

#[test]
fn a_newer_format_is_refused() {
    let (_dir, path) = scratch();
    drop(open(&path));
    let sql = rusqlite::Connection::open(&path).expect("opened");
    sql.pragma_update(None, "user_version", 99).expect("set");
    drop(sql);
    let Err(error) = Catalog::open(&path, keys()) else { panic!("opened a newer format") };
    assert!(matches!(error, Error::Newer { found: 99, .. }), "{error}");
    assert!(Failure::from(error).hint.contains("version"));
}

#[test]
fn another_programs_database_is_left_alone() {
    let (_dir, path) = scratch();
    let sql = rusqlite::Connection::open(&path).expect("opened");
    sql.execute_batch("CREATE TABLE precious (x)").expect("made");
    drop(sql);
    assert!(matches!(Catalog::open(&path, keys()), Err(Error::Damaged(_))));
    let sql = rusqlite::Connection::open(&path).expect("opened");
    let tables: u64 =
        sql.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).expect("counted");
    assert_eq!(tables, 1);
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    for number in 1..=40 {
        catalog.put(&dsource(DsourceId(number), &format!("d{number}"))).expect("kept");
    }
    drop(catalog);
    let sound = std::fs::read(&path).expect("read");
    let mut refused = 0;
    for start in (0..sound.len()).step_by(997) {
        let mut damaged = sound.clone();
        for byte in damaged.iter_mut().skip(start).take(64) {
            *byte ^= 0xA5;
        }
        std::fs::write(&path, &damaged).expect("written");
        let result = Catalog::open(&path, keys()).and_then(|catalog| {
            catalog.list::<Dsource>()?;
            catalog.put(&dsource(DsourceId(99), "another"))
        });
        refused += usize::from(result.is_err());
        for rest in ["catalog.db-wal", "catalog.db-shm"] {
            let _ = std::fs::remove_file(path.with_file_name(rest));
        }
    }
    assert!(refused > 5, "only {refused} damages were noticed");
    std::fs::write(&path, &sound[..sound.len() / 2]).expect("written");
    assert!(matches!(Catalog::open(&path, keys()), Err(Error::Damaged(_))), "half a file");
    std::fs::write(&path, b"this is not a database at all, but long enough to be read as one")
        .expect("written");
    assert!(matches!(Catalog::open(&path, keys()), Err(Error::Damaged(_))), "no database");
}

#[test]
fn a_body_that_makes_no_sense_is_named() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    catalog.put(&dsource(DsourceId(3), "prod")).expect("kept");
    drop(catalog);
    let sql = rusqlite::Connection::open(&path).expect("opened");
    sql.execute("UPDATE object SET body = '{}'", []).expect("changed");
    drop(sql);
    let error = open(&path).get::<Dsource>(DsourceId(3)).expect_err("nonsense");
    assert!(error.to_string().contains("dsource-3"), "{error}");
    assert_eq!(Failure::from(error).code, ErrorKind::DataDamaged);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let Err(error) = Catalog::open(Path::new("/nonexistent/catalog.db"), keys()) else {
        panic!("opened")
    };
    assert!(error.to_string().contains("/nonexistent/catalog.db"), "{error}");
}

/// As catalogs were written before there were policies: `settings` of dSources, nothing with VDBs.
#[test]
fn objects_of_an_older_catalog_are_read() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    catalog.put(&dsource(DsourceId(1), "prod")).unwrap();
    catalog.put(&vdb(VdbId(1), "dev", DsourceId(1))).unwrap();
    drop(catalog);
    let sql = rusqlite::Connection::open(&path).unwrap();
    sql.execute_batch(
        r#"UPDATE object SET body = json_set(json_remove(body, '$.policy'), '$.settings', json(
               '{"snapshot_policy":{"every_ms":1000},"retention":{"keep_ms":60000}}'))
           WHERE kind = 'dsource';
           UPDATE object SET body = json_remove(body, '$.policy') WHERE kind = 'vdb';"#,
    )
    .unwrap();
    drop(sql);
    let catalog = open(&path);
    let policy = catalog.get::<Dsource>(DsourceId(1)).unwrap().policy;
    assert_eq!((policy.snapshots.every_ms, policy.retention.log_ms), (Some(1000), 60_000));
    assert_eq!(catalog.get::<Vdb>(VdbId(1)).unwrap().policy, Policy::of_vdb());
}

#[test]
fn a_bookmark_has_its_name_for_itself_and_is_found_by_what_it_is_on() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    let bookmark = |id, owner: Owner| Bookmark {
        id: BookmarkId(id),
        name: "release".parse().unwrap(),
        owner,
        snapshot: SnapshotId(7),
        position: Position { log: LogPosition(1), time: now() },
        created_at: now(),
    };
    // dSources and VDBs have separate names.
    catalog.put(&dsource(DsourceId(1), "release")).unwrap();
    catalog.put(&bookmark(1, DsourceId(1).into())).unwrap();
    let taken = catalog.put(&bookmark(2, VdbId(1).into())).unwrap_err();
    assert!(matches!(taken, Error::NameTaken { .. }), "{taken}");
    drop(catalog);
    let catalog = open(&path);
    assert_eq!(catalog.list_of::<Bookmark>(DsourceId(1)).unwrap().len(), 1);
    assert_eq!(catalog.find_named::<Bookmark>("release").unwrap().unwrap().id, BookmarkId(1));
}

#[test]
fn a_list_kept_in_memory_follows_every_change() {
    let (_dir, path) = scratch();
    let catalog = open(&path);
    let ids = || -> Vec<u64> {
        let all = catalog.all::<Snapshot>().expect("a list");
        all.iter().map(|one| one.id.0).collect()
    };
    assert_eq!(ids(), [0; 0]);
    let one = snapshot(1, DsourceId(1));
    catalog.put(&one).expect("kept");
    catalog.put(&snapshot(2, DsourceId(2))).expect("kept");
    assert_eq!(ids(), [1, 2]);
    assert_eq!(catalog.list_of::<Snapshot>(DsourceId(1)).expect("a list"), [one]);
    let failed: Result<(), Error> = catalog.transaction(|tx| {
        tx.delete::<Snapshot>(SnapshotId(1))?;
        Err(Error::Unusable("changed its mind".to_owned()))
    });
    assert!(failed.is_err());
    assert_eq!(ids(), [1, 2], "what was not done is not seen");
    catalog.update::<Snapshot>(SnapshotId(2), |one| one.epoch = 7).expect("changed");
    let lines: Vec<u32> =
        catalog.list().expect("a list").iter().map(|one: &Snapshot| one.epoch).collect();
    assert_eq!(lines, [1, 7]);
    catalog.delete::<Snapshot>(SnapshotId(1)).expect("deleted");
    assert_eq!(ids(), [2]);
}
